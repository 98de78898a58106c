"""So many nodes that no task ever waits, however tasks come and go and wherever they are placed.

A task of n nodes waits where fewer than n nodes have room for one of its parts. Any legal placement
of the other workers' tasks may come about, so what counts is how many nodes they can block. On the
nodes that are blocked, and n - 1 more, a task can be made to wait: whatever of the others' tasks
lies elsewhere can be moved there, or else one of them waits itself. On n more it can't.
So the answer is the largest of *blocked nodes + n* over all tasks.
"""

from __future__ import annotations

from typing import NamedTuple

from taskgraph_workers.launch.size.blocking import Blocked, blocked, plain
from taskgraph_workers.launch.size.kinds import Instance, Kind
from taskgraph_workers.launch.size.work import Work


class Certain(NamedTuple):
    """Between how many nodes the answer is; who waits on fewer, and how he is kept from them."""

    lower: int
    upper: int
    group: int
    kind: Kind
    blocked: Blocked


class _Case(NamedTuple):
    """A task that may have to wait, beside all workers but its own."""

    upper: int
    group: int
    kind: Kind
    others: Instance


def certain(instance: Instance, work: Work) -> Certain:
    """The fewest nodes on which no order of arrival leaves a task waiting."""
    cases = sorted(_cases(instance), key=lambda case: (-case.upper, case.group, case.kind))
    best: Certain | None = None
    unsure = 0
    for case in cases:
        lower = best.lower if best else 0
        if case.upper <= lower:
            break
        with work.part(work.left // 2) as part:
            found = blocked(case.others, case.kind, lower - case.kind.nodes, part)
        unsure = max(unsure, found.upper + case.kind.nodes)
        if best is None or found.lower + case.kind.nodes > best.lower:
            nodes = found.lower + case.kind.nodes
            best = Certain(nodes, nodes, case.group, case.kind, found)
    assert best is not None
    return best._replace(upper=max(unsure, best.lower))


def _cases(instance: Instance) -> list[_Case]:
    cases = []
    homes = set(instance.homes)
    for group, number in enumerate(instance.numbers):
        kinds = [instance.kinds[kind] for kind in instance.free[group] - homes]
        others = instance.without(group)
        for kind in kinds:
            covered = any(other != kind and other.covers(kind) for other in kinds)
            if number and not covered:
                upper = int(plain(others, kind).total) + kind.nodes
                cases.append(_Case(upper, group, kind, others))
    return cases
