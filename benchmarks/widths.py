"""What ``number: auto`` costs once there is a graph: the width of graphs of several shapes.

Run by hand, from the root of the tree, with the package and its extra ``widths`` installed::

    python -m benchmarks widths --tasks 25000 --runs 5

Prints a table in Markdown. Every third task counts; the others are of other pools. Each run has a
graph of its own.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from typing import Callable

from benchmarks import tables

Edges = list[tuple[str, str]]


def chains(tasks: int, chance: random.Random) -> Edges:
    """Chains of ten tasks."""
    return [_edge(n, n - 1) for n in range(tasks) if n % 10]


def layers(tasks: int, chance: random.Random) -> Edges:
    """Ten layers, each task with four dependencies in the one before: a training pipeline."""
    size = max(tasks // 10, 1)
    return [
        _edge(n, (n // size - 1) * size + chance.randrange(size))
        for n in range(size, tasks)
        for _ in range(4)
    ]


def near(tasks: int, chance: random.Random) -> Edges:
    """Three dependencies for each task, among the twenty before it: long and narrow."""
    return [_edge(n, max(0, n - 1 - chance.randrange(20))) for n in range(1, tasks) for _ in "123"]


def anywhere(tasks: int, chance: random.Random) -> Edges:
    """Three dependencies for each task, anywhere before it."""
    return [_edge(n, chance.randrange(n)) for n in range(1, tasks) for _ in "123"]


def _edge(task: int, before: int) -> tuple[str, str]:
    return f"task-{task}", f"task-{before}"


SHAPES: tuple[Callable[[int, random.Random], Edges], ...] = (chains, layers, near, anywhere)


def seconds(labels: Sequence[str], edges: Edges) -> float:
    """How long one answer takes."""
    from taskgraph_workers.launch.widths import widest

    start = time.perf_counter()
    widest(labels, edges)
    return time.perf_counter() - start


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks widths", description="What a width costs.")
    parser.add_argument("--tasks", type=int, default=25_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args(argv)
    labels = [f"task-{number}" for number in range(0, given.tasks, 3)]
    seconds(["warm"], [])  # SciPy is loaded
    rows: list[tables.Row] = []
    for shape in SHAPES:
        graphs = [shape(given.tasks, random.Random(run)) for run in range(given.runs)]
        what = f"{shape.__name__}, {len(graphs[0])} edges, s"
        rows.append((what, [seconds(labels, edges) for edges in graphs], 3))
    tables.show(f"{given.tasks} tasks, {given.runs} runs", *rows)


if __name__ == "__main__":
    main()
