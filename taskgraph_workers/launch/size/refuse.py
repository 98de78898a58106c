"""Tasks that can never run: refused before anything is submitted, all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from taskgraph_workers.errors import Problem, counted
from taskgraph_workers.launch.model import MOST, Demand, WorkerGroup
from taskgraph_workers.launch.size.build import AXES, counting, has, needs
from taskgraph_workers.launch.size.words import amount, needed, node_option
from taskgraph_workers.machines import Node

#: No node has more cores, or more GPUs.
MOST_OF_A_NODE = 100_000


def too_many_nodes(nodes: int) -> Problem:
    """The problem that no machine has so many nodes."""
    what = f"{counted(nodes, 'node')} are more than any machine has"
    return Problem(what, hint=f"up to {MOST} can be worked with")


def beyond(
    groups: Sequence[WorkerGroup], node: Node | None, given: int | None
) -> tuple[Problem, ...]:
    """Every number that is more than any machine has: to work with it would take for ever."""
    return tuple(dict.fromkeys((*_of_all(groups, node, given), *_of_tasks(groups))))


def _of_all(
    groups: Sequence[WorkerGroup], node: Node | None, given: int | None
) -> Iterator[Problem]:
    if given is not None and given > MOST:
        yield too_many_nodes(given)
    for axis, have in zip(AXES, has(node)):
        if axis != "memory_mib" and have is not None and have > MOST_OF_A_NODE:
            what = f"no node has {amount(axis, have)}"
            yield Problem(what, hint=f"{node_option([axis])} says what a node really has")
    workers = sum(group.number for group in groups)
    if workers > MOST:
        most = max(groups, key=lambda group: group.number)
        what = f"{workers} workers are more than can be started"
        yield Problem(what, hint=f"up to {MOST} can be worked with", line=most.line)


def _of_tasks(groups: Sequence[WorkerGroup]) -> Iterator[Problem]:
    for demand in (demand for group in groups for demand in group.demands):
        if demand.nodes > MOST:
            what = f"a task of {demand.step} takes {demand.nodes} nodes, more than any machine has"
            yield Problem(what, line=demand.line)


def refusals(
    groups: Sequence[WorkerGroup], node: Node | None, given: int | None
) -> tuple[Problem, ...]:
    """Every demand that no node, or no number of given nodes, can meet."""
    found = (
        problem
        for group in groups
        for demand in counting(group)
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
    yield Problem(
        f"{what} {needed(demand)}, and no node has more than {have}",
        hint=f"{spread}ask for less; {node_option(over)} says what a node really has",
        line=demand.line or group.line,
    )


def _too_many(demand: Demand, given: int | None) -> Iterator[Problem]:
    if given is not None and demand.launcher and demand.nodes > given:
        yield Problem(
            f"a task of {demand.step} takes {demand.nodes} nodes, and the allocation has {given}",
            hint=f"--nodes {demand.nodes} or more, or leave the number out and it is worked out",
            line=demand.line,
        )
