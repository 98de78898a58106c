"""What working out an allocation costs: its nodes, and where every worker is.

Run by hand, from the root of the tree, with the package installed::

    python -m benchmarks sizing --workers 10000 --runs 5

Prints a table in Markdown: CPU seconds inside the process, for workers whose tasks' cores don't
divide the node's 36, in one group of four kinds of tasks, in four groups of one, and in four that
have a choice of two each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from benchmarks import tables
from taskgraph_workers.launch.layout import layout
from taskgraph_workers.launch.model import Demand, WorkerGroup
from taskgraph_workers.launch.size import size
from taskgraph_workers.machines import Node

NODE = Node(cores=36, gpus=4)
DEMANDS = (
    Demand("seven", cores=7),
    Demand("eleven", cores=11, gpus=1),
    Demand("six", cores=6, gpus=2),
    Demand("wide", nodes=3, cores=5, gpus=1),
)
OTHERS = (
    Demand("three", cores=3, gpus=2),
    Demand("thirteen", cores=13),
    Demand("all", cores=1, gpus=4),
    Demand("pair", nodes=2, cores=8),
)


def groups(shape: str, workers: int) -> list[WorkerGroup]:
    """Worker groups of one of the shapes."""
    if shape == "one group":
        return [WorkerGroup("all", workers, DEMANDS, "work")]
    some = [(one, other) if shape == "choice" else (one,) for one, other in zip(DEMANDS, OTHERS)]
    return [WorkerGroup(each[0].step, workers // len(some), each, "work") for each in some]


def seconds(shape: str, workers: int) -> tuple[float, float]:
    """CPU seconds to size and to lay out."""
    asked = groups(shape, workers)
    start = time.process_time()
    nodes = size(asked, NODE).nodes
    sized = time.process_time()
    layout(asked, NODE, nodes)
    return sized - start, time.process_time() - sized


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks sizing", description="What sizing costs.")
    parser.add_argument("--workers", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args(argv)
    rows: list[tables.Row] = []
    for shape in ("one group", "four groups", "choice"):
        taken = [seconds(shape, given.workers) for _ in range(given.runs)]
        rows.append((f"size, {shape}, CPU s", [sized for sized, _ in taken], 3))
        rows.append((f"lay out, {shape}, CPU s", [placed for _, placed in taken], 3))
    tables.show(f"{given.workers} workers of 4 kinds or more, {given.runs} runs", *rows)


if __name__ == "__main__":
    main()
