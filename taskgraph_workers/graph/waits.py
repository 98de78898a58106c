"""Which tasks of a graph wait for which, and where they run, as plain values for another door."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from taskgraph_workers.graph.compare import TaskJson, where


@dataclass(frozen=True)
class Waits:
    """``pools`` gives each task's, by label; ``edges`` are a task and one that it waits for."""

    pools: Mapping[str, str]
    edges: tuple[tuple[str, str], ...]


def waits(tasks: Mapping[str, TaskJson]) -> Waits:
    """Read off tasks as ``Task.to_json()`` gives them."""
    pools = {label: where(task).pool for label, task in tasks.items()}
    return Waits(pools, tuple(_edges(tasks)))


def _edges(tasks: Mapping[str, TaskJson]) -> Iterator[tuple[str, str]]:
    for label, task in tasks.items():
        yield from ((label, before) for before in task["dependencies"].values())
        # Taskgraph makes real ones of these where the task is in the graph (taskgraph.optimize).
        soft = task.get("soft_dependencies") or ()
        yield from ((label, before) for before in soft if before in tasks)
