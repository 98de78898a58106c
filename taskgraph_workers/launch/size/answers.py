"""The four answers, each with the sentences that say how it came about."""

from __future__ import annotations

from collections.abc import Sequence

from taskgraph_workers.errors import counted
from taskgraph_workers.launch.model import Demand, Size, Stage, WorkerGroup
from taskgraph_workers.launch.size import words
from taskgraph_workers.launch.size.build import AXES, asked, build, counting, is_split, kind_of
from taskgraph_workers.launch.size.certain import Certain, certain
from taskgraph_workers.launch.size.kinds import Counts, Kind, Problem, leanest
from taskgraph_workers.launch.size.rounding import rounded_up
from taskgraph_workers.launch.size.shrink import shrink
from taskgraph_workers.launch.size.work import OutOfWork, Work
from taskgraph_workers.launch.size.worst import Climb, Worst
from taskgraph_workers.machines import Node

#: Steps of work for one answer: some tenths of a second at the most.
WORK = 60_000


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


def packed_size(groups: Sequence[WorkerGroup], node: Node) -> Size:
    """The fewest nodes that hold every mixture of tasks that the workers may run at once."""
    problem = leanest(build(groups, node))
    found = worst_of(problem, Work(WORK))
    return Size(
        found.upper,
        found.lower == found.upper,
        (*_takes(groups), *_explained(found, groups, problem)),
    )


def worst_of(problem: Problem, work: Work) -> Worst:
    """The worst mixture: found directly, and for many workers by way of fewer of them."""
    climb = Climb(problem, work)
    few = _by_fewer(problem, climb, work)
    if few is not None and few <= climb.lower:
        return climb.found(climb.lower)
    found = climb.run()
    if found.lower == found.upper:
        return found
    bounds = [found.upper, few, rounded_up(problem)]
    return found._replace(upper=max(found.lower, min(each for each in bounds if each is not None)))


def _by_fewer(problem: Problem, climb: Climb, work: Work) -> int | None:
    """A bound for every mixture, from the worst mixture of fewer workers."""
    if not climb.corner.picks or problem.ways == 1:
        return None
    picks, runs = climb.corner.picks, climb.corner.packing.runs
    try:
        with work.part(work.left // 2) as part:
            smaller, saved = shrink(problem, picks, runs, part)
            return saved + Climb(smaller, part).run().upper if saved else None
    except OutOfWork:
        return None


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


def _explained(found: Worst, groups: Sequence[WorkerGroup], problem: Problem) -> list[str]:
    if not found.counts or not any(found.counts):
        return ["there are no tasks"]
    who = "all at once"
    if sum(map(len, problem.free)) + len(problem.lots) > len(problem.numbers):
        who = f"at worst, {mixture(found.counts, groups, problem)} at once"
    lines = [f"{who}: {_bounds(found.counts, found.lower, groups, problem)}"]
    if found.lower < found.upper:
        lines.append(
            f"{counted(found.upper, 'node')} are enough for all that can run at once, and"
            f" {found.lower} are needed; the search for what is between was cut short"
        )
    return lines


def mixture(counts: Counts, groups: Sequence[WorkerGroup], problem: Problem) -> str:
    """So many tasks of each kind, by the names of the steps that are such."""
    axes = asked(groups)
    named: dict[Kind, dict[str, None]] = {}
    for group in groups:
        for demand in counting(group):
            named.setdefault(kind_of(demand, axes), {})[demand.step] = None
    return ", ".join(
        f"{count} x {' or '.join(named[kind])}"
        for count, kind in zip(counts, problem.kinds)
        if count
    )


def _bounds(counts: Counts, nodes: int, groups: Sequence[WorkerGroup], problem: Problem) -> str:
    """What tasks take of so many nodes, axis by axis."""
    parts = [count * kind.nodes for count, kind in zip(counts, problem.kinds)]
    taken = []
    for place, axis in enumerate(asked(groups)):
        total = sum(n * kind.need[place] for n, kind in zip(parts, problem.kinds))
        if total:
            have = problem.capacity[place] * nodes
            taken.append(f"{words.amount(AXES[axis], total)} of {words.bare(AXES[axis], have)}")
    return f"{' and '.join(taken)} on {counted(nodes, 'node')}; fewer won't do"


# --- certain --------------------------------------------------------------------------------


def certain_size(groups: Sequence[WorkerGroup], node: Node, packed: Size) -> Size:
    """The fewest nodes on which no order of arrival leaves a task waiting."""
    if all(group.holds for group in groups):
        why = "every worker holds what its tasks take from its start on, so that none ever waits"
        return Size(packed.nodes, packed.exact, (why,))
    problem = build(groups, node)
    found = certain(problem, Work(WORK))
    nodes = max(found.upper, packed.nodes if packed.exact else 0)
    exact = found.lower == found.upper or (packed.exact and packed.nodes == nodes)
    return Size(nodes, exact, tuple(_waits(found, groups, problem)))


def _waits(found: Certain, groups: Sequence[WorkerGroup], problem: Problem) -> list[str]:
    group = groups[found.group]
    axes = asked(groups)
    step = next(d.step for d in counting(group) if kind_of(d, axes) == found.kind)
    lines = []
    if found.blocked.runs:
        ways = "; ".join(
            f"{counted(times, 'node')} with {mixture(pattern, groups, problem)}"
            for pattern, times in found.blocked.runs
        )
        lines.append(
            f"the other workers' tasks can leave no room for {step} on"
            f" {counted(found.blocked.lower, 'node')} ({ways})"
        )
    else:
        lines.append(f"the other workers' tasks always leave room for {step}")
    lines.append(f"and a task of it takes {counted(found.kind.nodes, 'node')} more")
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
    work = WORK // max(len(stages), 1)
    stages = _distinct(stages)
    for number, stage in enumerate(stages, 1):
        problem = leanest(build(groups, node, stages, stage))
        found = worst_of(problem, Work(work)) if problem.kinds else Worst(0, 0, (), ())
        upper = max(upper, found.upper)
        if found.lower > lower or not why:
            lower = max(lower, found.lower)
            head = f"stage {number} of {len(stages)} takes most: {', '.join(stage.tasks)}"
            why = (head, *_explained(found, groups, problem))
    # Workers need one node to be on, and never more than all of them at their worst.
    upper = min(max(upper, 1), packed.nodes)
    return Size(upper, upper == max(lower, 1) and not is_split(groups), why)


def _distinct(stages: Sequence[Stage]) -> list[Stage]:
    return [stage for at, stage in enumerate(stages) if stage not in stages[:at]]
