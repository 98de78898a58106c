"""From worker groups, a node and a stage to the numbers that are sized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taskgraph_workers.launch.model import Demand, Stage, WorkerGroup
from taskgraph_workers.launch.size.kinds import Instance, Kind, Lot
from taskgraph_workers.machines import Node

#: What a node has, and a task takes of it.
AXES = ("cores", "gpus", "memory_mib")


def needs(demand: Demand) -> tuple[int, ...]:
    """What a task takes on each of its nodes, by axis."""
    return (demand.cores, demand.gpus, demand.memory_mib)


def nodes_of(demand: Demand) -> int:
    """On how many nodes a task is: without a launcher it can't leave its worker's."""
    return demand.nodes if demand.launcher else 1


def has(node: Node | None) -> tuple[int | None, ...]:
    """What a node has, by axis; None where that is unknown."""
    return (node.cores, node.gpus, node.memory_mib) if node else (None,) * len(AXES)


def bound(group: WorkerGroup) -> tuple[Demand, ...]:
    """What a worker that holds keeps for good: the most that any of its tasks takes, by axis."""
    demands = group.demands
    if not demands:
        return ()
    return (
        Demand(
            step=", ".join(dict.fromkeys(demand.step for demand in demands)),
            cores=max(demand.cores for demand in demands),
            gpus=max(demand.gpus for demand in demands),
            memory_mib=max(demand.memory_mib for demand in demands),
            launcher=False,
            line=next((demand.line for demand in demands if demand.line), 0),
        ),
    )


def counting(group: WorkerGroup) -> tuple[Demand, ...]:
    """The demands of a group as they count: its binding where its workers hold, else its tasks'."""
    return bound(group) if group.holds else group.demands


def asked(groups: Sequence[WorkerGroup]) -> tuple[int, ...]:
    """The axes that any task takes something of."""
    totals = [needs(demand) for group in groups for demand in group.demands]
    return tuple(axis for axis in range(len(AXES)) if any(need[axis] for need in totals))


def unknown(groups: Sequence[WorkerGroup], node: Node | None) -> tuple[str, ...]:
    """The axes that tasks take something of, while nobody says what a node has."""
    return tuple(AXES[axis] for axis in asked(groups) if has(node)[axis] is None)


def kind_of(demand: Demand, axes: Sequence[int]) -> Kind:
    """A demand as a kind, over these axes alone."""
    need = needs(demand)
    return Kind(nodes_of(demand), tuple(need[axis] for axis in axes))


def build(
    groups: Sequence[WorkerGroup],
    node: Node,
    stages: Sequence[Stage] = (),
    stage: Stage | None = None,
) -> Instance:
    """The instance of all tasks that there may be, or of those that there are in a stage."""
    axes = asked(groups)
    limits = _limits(groups, stages, stage)
    at: dict[Kind, int] = {}
    free: list[set[int]] = [set() for _ in groups]
    limited: dict[str, list[tuple[int, int]]] = {}
    for index, group in enumerate(groups):
        whole = bound(group)[0] if group.holds else None
        for demand in group.demands:
            most = limits.get(demand.step)
            if most == 0:
                continue
            kind = at.setdefault(kind_of(whole or demand, axes), len(at))
            if most is None:
                free[index].add(kind)
            else:
                limited.setdefault(demand.step, []).append((index, kind))
    return Instance(
        tuple(has(node)[axis] or 0 for axis in axes),
        tuple(at),
        tuple(group.number for group in groups),
        tuple(map(frozenset, free)),
        _lots(limited, limits),
    )


def _limits(
    groups: Sequence[WorkerGroup], stages: Sequence[Stage], stage: Stage | None
) -> dict[str, int | None]:
    """How many tasks of a step there are in a stage; None where there may be any number."""
    if stage is None:
        return {}
    placed = {step for each in stages for step in each.tasks}
    steps = {demand.step for group in groups for demand in group.demands}
    return {step: stage.tasks.get(step, 0) for step in steps if step in placed}


def _lots(
    limited: Mapping[str, Sequence[tuple[int, int]]], limits: Mapping[str, int | None]
) -> tuple[Lot, ...]:
    """Lots of tasks; those of one kind that the same groups run are one.

    What is one kind in one group and another in another (see :func:`is_split`) is counted as both.
    """
    most: dict[tuple[int, tuple[int, ...]], int] = {}
    for step, runs in limited.items():
        for each in dict.fromkeys(kind for _, kind in runs):
            key = (each, tuple(sorted({group for group, kind in runs if kind == each})))
            most[key] = most.get(key, 0) + (limits[step] or 0)
    return tuple(Lot(count, kind, run) for (kind, run), count in most.items())


def is_split(groups: Sequence[WorkerGroup]) -> bool:
    """Whether a step takes more in one group than in another, since some hold more."""
    takes: dict[str, set[tuple[int, ...]]] = {}
    for group in groups:
        for demand in group.demands:
            whole = bound(group)[0] if group.holds else demand
            takes.setdefault(demand.step, set()).add((nodes_of(whole), *needs(whole)))
    return any(len(each) > 1 for each in takes.values())
