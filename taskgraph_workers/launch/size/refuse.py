"""Tasks that can never run: refused before anything is submitted, all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from taskgraph_workers.errors import Problem
from taskgraph_workers.launch.model import Demand, WorkerGroup
from taskgraph_workers.launch.size.build import AXES, bound, has, needs
from taskgraph_workers.launch.size.words import amount, needed
from taskgraph_workers.model import Node

_OPTIONS = {"cores": "cores=N", "gpus": "gpus=N", "memory_mib": "memory=SIZE"}


def refusals(
    groups: Sequence[WorkerGroup], node: Node | None, given: int | None
) -> tuple[Problem, ...]:
    """Every demand that no node, or no number of given nodes, can meet."""
    found = (
        problem
        for group in groups
        for demand in (bound(group) if group.holds else group.demands)
        for problem in (*_too_large(group, demand, node), *_too_many(demand, given))
    )
    return tuple(dict.fromkeys(found))


def _too_large(group: WorkerGroup, demand: Demand, node: Node | None) -> Iterator[Problem]:
    over = [
        axis
        for axis, need, have in zip(AXES, needs(demand), has(node))
        if have is not None and need > have
    ]
    if not over:
        return
    have = " and ".join(amount(axis, has(node)[AXES.index(axis)] or 0) for axis in over)
    what = f"a worker of {group.name} holds" if group.holds else f"a task of {demand.step} takes"
    spread = "" if group.holds else "spread it over more nodes, or "
    options = ",".join(_OPTIONS[axis] for axis in over)
    yield Problem(
        f"{what} {needed(demand)}, and no node has more than {have}",
        hint=f"{spread}ask for less; --node {options} says what a node really has",
        line=demand.line or group.line,
    )


def _too_many(demand: Demand, given: int | None) -> Iterator[Problem]:
    if given is not None and demand.launcher and demand.nodes > given:
        yield Problem(
            f"a task of {demand.step} takes {demand.nodes} nodes, and the allocation has {given}",
            hint=f"--nodes {demand.nodes} or more, or leave the number out and it is worked out",
            line=demand.line,
        )
