"""The four answers, each with the sentences that say how it came about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from taskgraph_workers.errors import counted
from taskgraph_workers.launch.model import Demand, Size, Stage, WorkerGroup
from taskgraph_workers.launch.size import words
from taskgraph_workers.launch.size.beside import Beside, Fewest, beside
from taskgraph_workers.launch.size.build import AXES, asked, build, counting, is_split, kind_of
from taskgraph_workers.launch.size.certain import Certain, certain
from taskgraph_workers.launch.size.kinds import Counts, Instance, Kind, leanest
from taskgraph_workers.launch.size.pack import width
from taskgraph_workers.launch.size.work import Work
from taskgraph_workers.launch.size.worst import Worst, worst_of
from taskgraph_workers.machines import Node

#: Steps of work for one answer: less than a second.
WORK = 200_000


# --- exclusive ------------------------------------------------------------------------------


def exclusive_size(groups: Sequence[WorkerGroup]) -> Size | None:
    """Every task on nodes of its own; None where no step says anything of nodes."""
    demands = [demand for group in groups for demand in group.demands]
    if not any(demand.launcher or demand.written_nodes for demand in demands):
        return None
    why, parts, total = [], [], 0
    for group in groups:
        widest = max(group.demands, key=_as_written)
        nodes = group.number * _as_written(widest)
        total += nodes
        each = counted(_as_written(widest), "node")
        why.append(f"{group.name}: {group.number} x {each} ({widest.step}) = {nodes}")
        parts.append(str(nodes))
    if len(parts) > 1:
        why.append(f"{' + '.join(parts)} = {counted(total, 'node')}")
    return Size(total, True, tuple(why))


def _as_written(demand: Demand) -> int:
    """Whole nodes of a task: also those that are written for one that runs inside its worker."""
    return max(demand.nodes, demand.written_nodes)


# --- packed ---------------------------------------------------------------------------------


def packed_size(groups: Sequence[WorkerGroup], node: Node, both: Beside | None = None) -> Size:
    """The fewest nodes that hold every mixture of tasks that the workers may run at once.

    ``both`` are the workers that hold and the others, where there are both: see
    :func:`~taskgraph_workers.launch.size.beside.beside`.
    """
    instance = leanest(build(groups, node))
    found = worst_of(instance, Work(WORK))
    both = both or beside(groups, node)
    if both is None:
        lines = _explained(found, groups, instance)
        exact = found.lower == found.upper
        return Size(found.upper, exact, (*_takes(groups), *lines), cut_short=not exact)
    few = both.fewest(found.lower, sure=False)
    exact = few.lower == few.upper
    found = found._replace(upper=found.lower if exact else few.upper)
    lines = [*_explained(found, groups, instance), *_kept(few, found.lower)]
    return Size(few.upper, exact, (*_takes(groups), *lines), found.lower < found.upper)


def _kept(few: Fewest, lower: int) -> Iterator[str]:
    """Why it takes more nodes where some workers can't move any more."""
    if lower < few.lower == few.upper:
        nodes = counted(few.upper, "node")
        yield f"wherever workers that hold are, some mixture of the others' tasks takes {nodes}"


def _takes(groups: Sequence[WorkerGroup]) -> list[str]:
    """What each group's workers may run at once, step by step."""
    lines = []
    for group in groups:
        for at, demand in enumerate(counting(group)):
            # The workers of a cluster's group have no step but themselves.
            need = words.needed(demand)
            what = f"({need})" if demand.step == group.name else f"{demand.step}: {need}"
            lines.append(f"{group.name}: {'or ' if at else ''}{group.number} x {what}")
    return lines


def _explained(found: Worst, groups: Sequence[WorkerGroup], instance: Instance) -> list[str]:
    if not found.counts or not any(found.counts):
        return ["there are no tasks"]
    who = "all at once"
    if sum(map(len, instance.free)) + len(instance.lots) > len(instance.numbers):
        who = f"at worst, {mixture(found.counts, groups, instance)} at once"
    lines = [f"{who}: {_bounds(found.counts, found.lower, groups, instance)}"]
    if found.lower < found.upper:
        lines.append(
            f"{counted(found.upper, 'node')} are enough for all that can run at once, and"
            f" {found.lower} are needed; the search for what is between was cut short"
        )
    return lines


def mixture(counts: Counts, groups: Sequence[WorkerGroup], instance: Instance) -> str:
    """So many tasks of each kind, by the names of the steps that are such."""
    axes = asked(groups)
    named: dict[Kind, dict[str, None]] = {}
    for group in groups:
        for demand in counting(group):
            named.setdefault(kind_of(demand, axes), {})[demand.step] = None
    parts = []
    for at, (kind, count) in enumerate(zip(instance.kinds, counts)):
        plain = _plain(kind, axes)
        if at in instance.homes:
            parts += ["workers that hold"] if count and any(plain.need) else []
        elif count:
            parts.append(f"{count} x {' or '.join(named[plain])}")
    return ", ".join(parts)


def _plain(kind: Kind, axes: Sequence[int]) -> Kind:
    """A kind without the axis of homes."""
    return Kind(kind.nodes, kind.need[: len(axes)])


def _bounds(counts: Counts, nodes: int, groups: Sequence[WorkerGroup], instance: Instance) -> str:
    """What tasks take of so many nodes, axis by axis."""
    parts = [count * kind.nodes for count, kind in zip(counts, instance.kinds)]
    taken = []
    for place, axis in enumerate(asked(groups)):
        total = sum(n * kind.need[place] for n, kind in zip(parts, instance.kinds))
        if total:
            have = instance.capacity[place] * nodes
            taken.append(f"{words.amount(AXES[axis], total)} of {words.bare(AXES[axis], have)}")
    return f"{' and '.join(taken)} on {counted(nodes, 'node')}; fewer won't do"


# --- certain --------------------------------------------------------------------------------


def certain_size(
    groups: Sequence[WorkerGroup], node: Node, packed: Size, both: Beside | None = None
) -> Size:
    """The fewest nodes on which no order of arrival leaves a task waiting."""
    if all(group.holds for group in groups):
        why = "every worker holds what its tasks take from its start on, so that none ever waits"
        return Size(packed.nodes, packed.exact, (why,))
    both = both or beside(groups, node)
    low = packed.nodes if packed.exact else 0
    if both is not None:
        few = both.fewest(low, sure=True)
        lines, cut_short = _seated(few, groups, node, both)
        return Size(few.upper, few.lower == few.upper, lines, cut_short)
    instance = build(groups, node)
    found = certain(instance, Work(WORK))
    nodes = max(found.upper, low)
    exact = nodes in (found.lower, low)
    lines = tuple(_waits(found, groups[found.group], groups, instance))
    return Size(nodes, exact, lines, found.lower < found.upper)


def _seated(
    few: Fewest, groups: Sequence[WorkerGroup], node: Node, both: Beside
) -> tuple[tuple[str, ...], bool]:
    """Where workers that hold are, and what may become of the other nodes.

    And whether the search for fewer of these was cut short.
    """
    found, instance = both.certain(few.seats), both.instance(few.seats)
    if found.upper > few.upper:
        found = both.certain(few.seats, few.upper)
        instance = both.instance(few.seats, few.upper)
    if few.lower == few.upper:
        found = found._replace(upper=found.lower)
    others = [group for group in groups if not group.holds]
    on = counted(width(few.seats), "node")
    head = f"with workers that hold on {on}, where they stay, and others' tasks beside them:"
    lines = _waits(found, others[found.group], groups, instance)
    return (head, *lines), found.lower < found.upper


def _waits(
    found: Certain, group: WorkerGroup, groups: Sequence[WorkerGroup], instance: Instance
) -> list[str]:
    """Who waits on one node less, and how the others' tasks keep it from its nodes."""
    axes = asked(groups)
    kind = _plain(found.kind, axes)
    step = next(demand.step for demand in counting(group) if kind_of(demand, axes) == kind)
    nodes = counted(found.blocked.lower, "node")
    lines = [f"the other workers' tasks always leave room for {step}"]
    if found.blocked.runs:
        ways = "; ".join(
            f"{counted(times, 'node')} with {mixture(pattern, groups, instance)}"
            for pattern, times in found.blocked.runs
        )
        lines = [f"the other workers' tasks can leave no room for {step} on {nodes} ({ways})"]
    lines.append(f"and a task of it takes {counted(kind.nodes, 'node')} more")
    if found.lower < found.upper:
        lines = [
            f"{counted(found.upper, 'node')} are surely enough, and"
            f" {found.lower} are needed; the search for what is between was cut short"
        ]
    return lines


# --- useful ---------------------------------------------------------------------------------


def useful_size(
    groups: Sequence[WorkerGroup], node: Node, stages: Sequence[Stage], packed: Size
) -> Size:
    """The packed size of the worst stage: no more workers than there can be tasks."""
    lower = upper = 0
    why: tuple[str, ...] = ()
    cut_short = False
    work = WORK // max(len(stages), 1)
    stages = _distinct(stages)
    for number, stage in enumerate(stages, 1):
        instance = leanest(build(groups, node, stages, stage))
        found = worst_of(instance, Work(work)) if instance.kinds else Worst(0, 0, (), ())
        upper = max(upper, found.upper)
        if found.lower > lower or not why:
            lower = max(lower, found.lower)
            head = f"stage {number} of {len(stages)} takes most: {', '.join(stage.tasks)}"
            why = (head, *_explained(found, groups, instance))
            cut_short = found.lower < found.upper
    # Workers need one node to be on, and never more than all of them at their worst.
    upper = min(max(upper, 1), packed.nodes)
    exact = upper == max(lower, 1) and not is_split(groups)
    return Size(upper, exact, why, cut_short)


def _distinct(stages: Sequence[Stage]) -> list[Stage]:
    return [stage for at, stage in enumerate(stages) if stage not in stages[:at]]
