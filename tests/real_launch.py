"""The command `launch` as a user of a real cluster has it, and what stands in for workers."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Callable

from slurm_cluster import SlurmCluster

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data" / "launch"

#: A name of which a shell would run a part, if it were to read it.
HOSTILE = 'it\'s $(touch owned) `touch owned` "x" ;touch owned; #y -N9 é'


@dataclass
class Site:
    """A user of the cluster: the folder that he works in, and the environment of his shell."""

    slurm: SlurmCluster
    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def launch(self, *words: object, code: int = 0) -> CompletedProcess[str]:
        """Run `taskgraph-workers launch`; fails the test where it ends with another code."""
        command = [sys.executable, "-m", "taskgraph_workers", "launch", *map(str, words)]
        env = {"PYTHONPATH": str(ROOT), "COLUMNS": "200", **self.env}
        done = self.slurm.run(*command, cwd=self.folder, env=env)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    @contextmanager
    def starting(self, *words: object) -> Iterator[None]:
        """Run it while the block does its part; fails the test where it does not end well."""
        with ThreadPoolExecutor(1) as pool:
            ended = pool.submit(self.launch, *words)
            yield
            ended.result()

    def submit(self, script: str, **env: str) -> str:
        """Submit a script as it was printed; the id of its job."""
        done = self.slurm.run(
            "sbatch", "--parsable", cwd=self.folder, env={**self.env, **env}, stdin=script
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def copy(self, name: str, **texts: object) -> Path:
        """A file of the test data in the folder; each ``NAME: value`` of YAML is replaced."""
        file = self.folder / name
        shutil.copy(DATA / name, file)
        if texts:
            text = file.read_text()
            for old, new in texts.items():
                assert f"{old}: ./" in text
                text = text.replace(f"{old}: ./{old.lower()}", f"{old}: {new}")
            file.write_text(text)
        return file

    def stand_in(self, name: str, text: str) -> None:
        """A program of bash in the folder ``bin``, which is first on PATH."""
        file = self.folder / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/bash\n{text}\n")
        file.chmod(0o755)


def per_node(script: str) -> dict[str, list[int]]:
    """How many workers of each group a script means to have on each node."""
    found = {}
    for group, on in re.findall(r"^tw_start_group (\S+) on=(\S+)", script, re.MULTILINE):
        parts = [part.split("x") for part in on.split(",")]
        found[group] = [int(count) for count, nodes in parts for _ in range(int(nodes))]
    return found


def on_nodes(site: Site, job: str, names: list[str]) -> dict[str, list[int]]:
    """How many workers of each group are on each node of a job, by their names."""
    said = site.slurm.ask("scontrol", "show", "hostnames", site.slurm.job(job)["NodeList"])
    there = Counter((name.partition(".")[0], name.rpartition(".")[2]) for name in names)
    groups = {group for group, _ in there}
    return {group: [there[group, node] for node in said.split()] for group in groups}


def until(condition: Callable[[], object], what: Callable[[], str], timeout_s: float = 120) -> None:
    """Wait until something is so; fails the test, and says how things are, where it never is."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.2)
