"""Runs scripts for Flux, LSF and PBS on this machine, with stand-ins for what starts workers."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from taskgraph_workers.launch.script import Script, render
from taskgraph_workers.schedulers.base import Job, Scheduler, Start

STAND_INS = Path(__file__).parent / "stand_ins"

# A worker with a task, which would end at once if a TERM reached it. Nobody waits for it for ever.
WORKER = """\
say() { echo "$1 $WORKER_NAME $2" >>"$LOG"; }
trap 'asked=1' TERM
bash -c 'trap "echo killed $WORKER_NAME >>$LOG; exit 1" TERM
    while ! [ -e "$DONE" ]; do sleep 0.1; done; echo finished $WORKER_NAME >>$LOG' &
cores=$(sed -n 's/^Cpus_allowed_list:\\s*//p' /proc/self/status)
say up "rank=${FLUX_STAND_IN_RANK-}${NODE-} cuda=${CUDA_VISIBLE_DEVICES-unset} cores=$cores"
until wait && [ -n "$asked" ] || [ "$SECONDS" -gt 120 ]; do sleep 0.1; done
say down
"""
COMMAND = "exec bash worker.sh"


def notes(log: Path, word: str) -> list[str]:
    """What workers noted that begins with a word, without it."""
    lines = log.read_text().splitlines() if log.exists() else []
    return sorted(rest for first, _, rest in (x.partition(" ") for x in lines) if first == word)


@dataclass
class Run:
    """A script that runs in a folder: what it said, and what its workers noted."""

    folder: Path
    process: subprocess.Popen[str]
    output: str = ""
    log: Path = field(init=False)
    #: What was left on nodes when the script had ended.
    left: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log = self.folder / "log"

    def noted(self, word: str) -> list[str]:
        """See :func:`notes`."""
        return notes(self.log, word)

    def until(self, word: str, count: int) -> list[str]:
        """Wait until as many workers noted it."""
        limit = time.monotonic() + 60
        while len(self.noted(word)) < count:
            ended = self.process.poll() is not None
            if ended or time.monotonic() > limit:
                self.end()
                raise AssertionError(f"{self.noted(word)} of {count}\n{self.output}")
            time.sleep(0.05)
        return self.noted(word)

    def stop(self, job: str) -> None:
        """Ask for a warm end, and let the tasks be done a while after that."""
        (self.folder / f"workers-{job}.stop").touch()

    def finish_tasks(self) -> None:
        (self.folder / "done").touch()

    def end(self, timeout_s: float = 60) -> int:
        """The script's exit code, by itself."""
        try:
            said, _ = self.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.finish_tasks()
            said, _ = self.process.communicate()
        self.output += said
        self.left = [folder.name for folder in self._folders()]
        for folder in self._folders():
            shutil.rmtree(folder, ignore_errors=True)
        return self.process.returncode

    def _folders(self) -> list[Path]:
        """Where nodes have kept the ids of this script's workers."""
        return list(Path("/tmp").glob(f"workers-*-{self.process.pid}-*"))


def commands(folder: Path, stand_ins: Mapping[str, str]) -> str:
    """A PATH on which these commands are the stand-ins of these files."""
    bin_ = folder / "bin"
    bin_.mkdir(exist_ok=True)
    for name, file in stand_ins.items():
        (bin_ / name).symlink_to(STAND_INS / file)
    return f"{bin_}:{os.environ['PATH']}"


def start(
    folder: Path,
    scheduler: Scheduler,
    groups: Iterable[Start],
    env: Mapping[str, str],
    cwd: str | None = None,
) -> Run:
    """Start the script for these groups, in a process group of its own."""
    (folder / "worker.sh").write_text(WORKER)
    script = folder / "script"
    job = Job(nodes=1, walltime_s=600)
    script.write_text(render(Script(job, tuple(groups), every_s=0.2), scheduler))
    process = subprocess.Popen(
        ["bash", str(script)],
        cwd=cwd or folder,
        env={**os.environ, "LOG": str(folder / "log"), "DONE": str(folder / "done"), **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    return Run(folder, process)


def assert_ends_warmly(run: Run) -> None:
    """A TERM to the script reaches no task of two workers: these end once they are done."""
    run.until("up", 2)
    run.process.send_signal(signal.SIGTERM)
    with pytest.raises(Exception, match="timed out"):
        run.process.wait(timeout=2)
    assert run.noted("finished") == run.noted("killed") == []
    run.finish_tasks()
    assert run.end() == 0, run.output
    assert (len(run.noted("finished")), run.noted("killed")) == (2, [])


def fields(note: str) -> dict[str, str]:
    """What a worker noted of itself: ``NAME rank=0 cuda=1``."""
    name, *rest = note.split()
    return {"name": name, **dict(part.split("=", 1) for part in rest)}


def index_of(name: str) -> int:
    """The number in ``GROUP.jJOB.INDEX.NODE``."""
    found = re.fullmatch(r"[\w-]+\.j\w+\.(\d+)\.[\w-]+", name)
    assert found, name
    return int(found[1])
