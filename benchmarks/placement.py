"""What placement costs: per task inside the process, and for a whole ``taskgraph full``.

Run by hand, from the root of the tree, with the package installed::

    python -m benchmarks placement --tasks 20000 --kinds 50 --runs 5

Prints a table in Markdown. ``per task`` is the time that the three transforms add to the same
tasks going through three transforms that do nothing, the work on each kind (configuration, choice,
aliases) included. ``whole run`` is the CPU time, children included, of ``taskgraph full`` with the
plugin over that without it, run in turn.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Callable

from benchmarks import project, tables

Step = Callable[[Any, Iterable[dict[str, Any]]], Iterable[dict[str, Any]]]


def through(config: Any, tasks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A transform that does nothing."""
    yield from tasks


def sample(kind: str, count: int) -> list[dict[str, Any]]:
    """Tasks as they reach the ``task`` transforms."""
    return [
        {
            "label": f"{kind}-{index}",
            "worker-type": project.name_of(kind),
            "worker": {"env": {"LANG": "C.UTF-8"}, "max-run-time": 3600, "docker-image": "x"},
        }
        for index in range(count)
    ]


def seconds(steps: tuple[Step, ...], graph_config: Any, batches: dict[str, list[Any]]) -> float:
    """How long the tasks of all kinds take through some transforms, in CPU seconds."""
    from taskgraph.transforms.base import TransformConfig

    start = time.process_time()
    for kind, tasks in batches.items():
        config = TransformConfig(
            kind, "", {}, project.PARAMETERS, {}, graph_config, write_artifacts=False
        )
        items: Iterable[dict[str, Any]] = tasks
        for step in steps:
            items = step(config, items)
        for _ in items:
            pass
    return time.process_time() - start


def per_task(tasks: int, kinds: int, runs: int) -> list[float]:
    """Microseconds added to each task, run by run."""
    from taskgraph.config import load_graph_config

    from taskgraph_workers.graph.transforms import after_run, before_run, place

    added = []
    with tempfile.TemporaryDirectory() as folder:
        project.write(Path(folder), kinds, kinds, placed=True)
        for _ in range(runs):
            graph_config = load_graph_config(str(Path(folder) / "taskcluster"))
            names = [f"kind-{index:03}" for index in range(kinds)]
            batches = {name: sample(name, tasks // kinds) for name in names}
            still = seconds((through,) * 3, graph_config, batches)
            moved = seconds((before_run, after_run, place), graph_config, batches)
            done = sum(map(len, batches.values()))
            added.append((moved - still) / done * 1e6)
    return added


def cpu(folder: Path, parameters: Path) -> float:
    """CPU seconds of one ``taskgraph full``, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    script = "from taskgraph.main import main; main()"
    command = [sys.executable, "-c", script, "full", "-p", str(parameters)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TASKGRAPH_")}
    environment |= {"TASKCLUSTER_ROOT_URL": "https://tc.example.com", "PYTHONHASHSEED": "0"}
    environment.pop("TASK_ID", None)
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def whole_run(tasks: int, kinds: int, runs: int) -> tuple[list[float], list[float]]:
    """CPU seconds without and with the plugin, pair by pair, after one warm-up of each."""
    without, placed = [], []
    with tempfile.TemporaryDirectory() as folder:
        plain, moved = Path(folder, "plain"), Path(folder, "placed")
        parameters = [project.write(r, tasks, kinds, r is moved) for r in (plain, moved)]
        for run in range(runs + 1):
            pair = [cpu(root, file) for root, file in zip((plain, moved), parameters)]
            if run:
                without.append(pair[0])
                placed.append(pair[1])
    return without, placed


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        prog="benchmarks placement", description="What placement costs."
    )
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--kinds", type=int, default=50)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args(argv)
    inside = per_task(given.tasks, given.kinds, given.runs)
    without, placed = whole_run(given.tasks, given.kinds, given.runs)
    tables.show(
        f"{given.tasks} tasks of {given.kinds} kinds, {given.runs} runs",
        ("per task, microseconds", inside, 2),
        ("whole run without the plugin, CPU s", without, 2),
        ("whole run with the plugin, CPU s", placed, 2),
        ("ratio, pair by pair", [b / a for a, b in zip(without, placed)], 3),
    )


if __name__ == "__main__":
    main()
