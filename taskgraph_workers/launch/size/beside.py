"""Workers that hold have their place before any task comes: what is beside them.

They may sit in many ways. On so many nodes, a way will do where the others' tasks have room beside
it whatever they are, or however they come and go. The nodes are sized by such ways, and the workers
are put there: both ask here, with the same words.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import islice
from typing import NamedTuple

from taskgraph_workers.launch.model import WorkerGroup
from taskgraph_workers.launch.size.build import build
from taskgraph_workers.launch.size.certain import Certain, certain
from taskgraph_workers.launch.size.kinds import Instance, Kind, in_use, leanest
from taskgraph_workers.launch.size.nowhere import nowhere
from taskgraph_workers.launch.size.pack import pack, quick_bound, width
from taskgraph_workers.launch.size.patterns import Load, Pattern, less, room_beside
from taskgraph_workers.launch.size.seats import Seats, every, quickly, spread_out
from taskgraph_workers.launch.size.work import OutOfWork, Work
from taskgraph_workers.launch.size.worst import Worst, worst_of
from taskgraph_workers.machines import Node

#: Steps of work to look at the way to sit that is likely to be the best.
CHECK = 12_000
#: Steps of work to look at all ways, where they are few; each takes so many of them at least.
ALL = 10_000
EACH = 150
#: Of so many mixtures of tasks it is looked at how they are best packed.
MIXTURES = 3


class Found(NamedTuple):
    """A way to sit, or None; and whether there is none for sure."""

    seats: Seats | None
    none: bool


class Fewest(NamedTuple):
    """So many nodes will do, and fewer than ``lower`` won't."""

    lower: int
    upper: int
    seats: Seats


class Beside:
    """Workers that hold, as a load, and the others, whose tasks come and go.

    To block nodes, small tasks may be worse than those that cover them; to take nodes they are not.
    """

    def __init__(self, load: Load, others: Instance) -> None:
        self.load, self.others, self._lean = load, others, leanest(others)
        self._worst: dict[Seats, Worst] = {}
        self._certain: dict[tuple[Seats, int | None], Certain] = {}
        self._known: tuple[Seats, ...] | None = None

    def instance(self, seats: Seats, nodes: int | None = None) -> Instance:
        """The others' tasks beside such a way to sit, on nodes without end, or on so many."""
        return self._instance(self.others, seats, nodes)

    def _instance(self, others: Instance, seats: Seats, nodes: int | None = None) -> Instance:
        """One more axis says that no node is two homes."""
        times: dict[tuple[int, ...], int] = {}
        for pattern, count in seats:
            need = self.taken(pattern)
            times[need] = times.get(need, 0) + count
        nothing = (0,) * len(self.load.capacity)
        times.pop(nothing, None)
        if nodes is not None:
            times[nothing] = nodes - sum(times.values())
        first = len(others.kinds)
        homes = tuple(range(first, first + len(times)))
        kinds = (Kind(kind.nodes, (*kind.need, 0)) for kind in others.kinds)
        return Instance(
            (*self.load.capacity, 1),
            (*kinds, *(Kind(1, (*need, 1)) for need in times)),
            (*others.numbers, *times.values()),
            (*others.free, *(frozenset({home}) for home in homes)),
            homes=homes,
        )

    def taken(self, pattern: Pattern) -> tuple[int, ...]:
        """What workers take of their node."""
        capacity = self.load.capacity
        return less(capacity, room_beside(capacity, self.load.kinds, pattern))

    def worst(self, seats: Seats) -> Worst:
        """The mixture that takes most nodes beside those who sit so."""
        if seats not in self._worst:
            self._worst[seats] = worst_of(self._instance(self._lean, seats), self._work(seats))
        return self._worst[seats]

    def certain(self, seats: Seats, nodes: int | None = None) -> Certain:
        """So many nodes that nobody ever waits beside those who sit so."""
        key = seats, nodes
        if key not in self._certain:
            self._certain[key] = certain(self.instance(seats, nodes), self._work(seats))
        return self._certain[key]

    def _work(self, seats: Seats) -> Work:
        """Less for each way that is less likely to be the best; always the same for the same."""
        quick = self._quick()
        return Work(CHECK // (1 + quick.index(seats) if seats in quick else 4))

    def seats(self, nodes: int) -> Seats | None:
        """How those that hold sit on so many nodes: nobody ever waits, if that can be had."""
        return self.seated(nodes, sure=True).seats or self.seated(nodes, sure=False).seats

    def homes(self, seats: Seats) -> list[tuple[int, ...]]:
        """What is taken of each node on which anybody sits."""
        return [self.taken(pattern) for pattern, times in seats for _ in range(times)]

    def seated(self, nodes: int, sure: bool) -> Found:
        """A way to sit on so many nodes that will do: spread out, if that does.

        ``sure``: no order of arrival makes a task wait. Else every mixture has a placement.
        """
        if sure and nowhere(self.load, self.others, nodes, Work(ALL)):
            return Found(None, True)
        none = True
        few = dict.fromkeys((*spread_out(self.load, nodes), *self._quick()))
        for seats in few:
            if width(seats) <= nodes:
                does = self._will_do(seats, nodes, sure)
                if does:
                    return Found(seats, False)
                none = none and does is False
        try:
            found = self._searched(nodes, sure, few)
            return found._replace(none=found.none and none)
        except OutOfWork:
            return Found(None, False)

    def _will_do(self, seats: Seats, nodes: int, sure: bool) -> bool | None:
        found: Worst | Certain = self.certain(seats) if sure else self.worst(seats)
        if sure and found.upper > nodes:
            found = self.certain(seats, nodes)
        return _does(found, nodes)

    def _searched(self, nodes: int, sure: bool, seen: Container[Seats]) -> Found:
        """The same by all ways to sit. Raises OutOfWork where they are too many."""
        work, none = Work(ALL), True
        for seats in list(every(self.load, nodes, work)):
            if seats in seen:
                continue
            work.spend(EACH)
            with work.part(work.left // 2) as part:
                found: Worst | Certain = (
                    certain(self.instance(seats, nodes), part)
                    if sure
                    else worst_of(self._instance(self._lean, seats), part)
                )
            does = _does(found, nodes)
            if does:
                return Found(seats, False)
            none = none and does is False
        return Found(None, none)

    def fewest(self, low: int, sure: bool) -> Fewest:
        """On how few nodes some way to sit will do; fewer than ``low`` are known not to."""
        upper = 0
        best: Seats = ()
        for seats in self._quick():
            found = self.certain(seats) if sure else self.worst(seats)
            nodes = max(found.upper, width(seats), low)
            if not best or nodes < upper:
                upper, best = nodes, seats
            if upper == low:
                break
        step = 1
        while upper > low:
            fewer = self.seated(max(upper - step, low), sure)
            if fewer.seats is not None:
                upper, best, step = max(upper - step, low), fewer.seats, 2 * step
            elif step == 1:
                return Fewest(upper if fewer.none else low, upper, best)
            else:
                step = max(step // 4, 1)
        return Fewest(upper, upper, best)

    def _quick(self) -> tuple[Seats, ...]:
        if self._known is None:
            packings = [self._packed(counts) for counts in self._mixtures()]
            self._known = tuple(dict.fromkeys(quickly(self.load, packings)))
        return self._known

    def _mixtures(self) -> list[tuple[int, ...]]:
        """Some of the largest mixtures of the others' tasks."""
        others = self._lean
        corners = (counts for counts, _ in others.corners(range(len(others.kinds))))
        loads = [Load(others.capacity, others.kinds, counts) for counts in islice(corners, 256)]
        return [load.counts for load in sorted(loads, key=quick_bound, reverse=True)[:MIXTURES]]

    def _packed(self, counts: tuple[int, ...]) -> Seats:
        """How workers sit where they are best packed together with such tasks."""
        size = len(self.load.kinds)
        kinds, all_counts = (*self.load.kinds, *self._lean.kinds), (*self.load.counts, *counts)
        runs = pack(Load(self.load.capacity, kinds, all_counts), Work(CHECK)).runs
        return tuple((pattern[:size], times) for pattern, times in runs)


def _does(found: Worst | Certain, nodes: int) -> bool | None:
    return True if found.upper <= nodes else False if found.lower > nodes else None


def beside(groups: Sequence[WorkerGroup], node: Node) -> Beside | None:
    """Those that hold and the others, where there are both."""
    groups = [group for group in groups if group.number and group.demands]
    if len({group.holds for group in groups}) < 2:
        return None
    instance = build(groups, node)
    rows = list(zip(groups, instance.numbers, instance.free))
    held = [(number, min(free)) for group, number, free in rows if group.holds]
    kinds = tuple(dict.fromkeys(kind for _, kind in held))
    counts = tuple(sum(number for number, its in held if its == kind) for kind in kinds)
    load = Load(instance.capacity, tuple(instance.kinds[kind] for kind in kinds), counts)
    rest = [(number, free) for group, number, free in rows if not group.holds]
    numbers, frees = zip(*rest)
    return Beside(load, in_use(Instance(instance.capacity, instance.kinds, numbers, frees)))
