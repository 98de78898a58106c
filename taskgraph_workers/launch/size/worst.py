"""The mixture of tasks that takes most nodes, among all that the workers may run at once.

Mixtures are looked at in boxes: so many tasks of each kind at least, so many at most. What holds
the box's upper corner holds every mixture in it, so most boxes need no closer look.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from taskgraph_workers.launch.size.kinds import Counts, Instance, Kind
from taskgraph_workers.launch.size.pack import (
    Packing,
    Run,
    filled,
    orders,
    pack,
    quick,
    quick_bound,
    width,
)
from taskgraph_workers.launch.size.patterns import Load, share, used_of
from taskgraph_workers.launch.size.rounding import rounded_up
from taskgraph_workers.launch.size.shrink import shrink
from taskgraph_workers.launch.size.work import OutOfWork, Work


class Worst(NamedTuple):
    """Between how many nodes the answer is, a mixture that needs ``lower``, and its packing."""

    lower: int
    upper: int
    counts: Counts
    runs: tuple[Run, ...]


class _Corner(NamedTuple):
    """A mixture, the kind that each group runs where it is one each, and how it is packed."""

    counts: Counts
    picks: tuple[int, ...]
    packing: Packing


def load_of(instance: Instance, counts: Counts) -> Load:
    """A mixture as a load."""
    return Load(instance.capacity, instance.kinds, counts)


def nodes_taken(kind: Kind, capacity: Sequence[int]) -> float:
    """How many nodes a task takes, by its tightest axis."""
    return kind.nodes * share(kind.need, capacity)


def worst_of(instance: Instance, work: Work) -> Worst:
    """The worst mixture: found directly, and for many workers by way of fewer of them."""
    climb = Climb(instance, work)
    few = _by_fewer(instance, climb, work)
    if few is not None and few <= climb.lower:
        return climb.found(climb.lower)
    found = climb.run()
    if found.lower == found.upper:
        return found
    bounds = [found.upper, few, rounded_up(instance)]
    return found._replace(upper=max(found.lower, min(each for each in bounds if each is not None)))


def _by_fewer(instance: Instance, climb: Climb, work: Work) -> int | None:
    """A bound for every mixture, from the worst mixture of fewer workers."""
    if not climb.corner.picks or instance.ways == 1:
        return None
    picks, runs = climb.corner.picks, climb.corner.packing.runs
    try:
        with work.part(work.left // 2) as part:
            smaller, saved = shrink(instance, picks, runs, part)
            return saved + Climb(smaller, part).run().upper if saved else None
    except OutOfWork:
        return None


class Climb:
    """The best corner, and then box after box until no mixture can take more nodes."""

    def __init__(self, instance: Instance, work: Work) -> None:
        self.instance, self._work = instance, work
        self._packings: dict[Counts, Packing] = {}
        self.corner = self._corner()
        self._boxes: list[tuple[int, int, Counts, Counts]]
        self._made = 0

    @property
    def lower(self) -> int:
        """The nodes that the worst mixture so far needs at least."""
        return self.corner.packing.lower

    def _corner(self) -> _Corner:
        sizes = [nodes_taken(kind, self.instance.capacity) for kind in self.instance.kinds]
        first = sorted(range(len(sizes)), key=lambda kind: -sizes[kind])
        best, self._unsure = _Corner((), (), Packing(-1, ())), 0
        corners = [
            (quick_bound(load_of(self.instance, counts)), counts, picks)
            for counts, picks in self.instance.corners(first)
        ]
        for _, counts, picks in sorted(corners, key=lambda corner: -corner[0]):
            load = used_of(load_of(self.instance, counts))
            if width(quick(load, best.packing.lower)) <= best.packing.lower:
                continue
            packing = self._pack(counts)
            self._unsure = max(self._unsure, packing.nodes)
            if packing.lower > best.packing.lower:
                best = _Corner(counts, picks, packing)
        return best

    def _pack(self, counts: Counts) -> Packing:
        if counts not in self._packings:
            # Where nobody has a choice there is no other mixture to keep work for.
            alone = self.instance.ways == 1 and not self.instance.lots
            with self._work.part(self._work.left // (1 if alone else 4)) as part:
                self._packings[counts] = pack(load_of(self.instance, counts), part)
            self._work.left -= min(20, self._work.left)
        return self._packings[counts]

    def run(self) -> Worst:
        """The worst mixture. ``upper`` is above ``lower`` where the work ran out."""
        unsure = self._unsure
        high = tuple(self.instance.rank(1 << kind) for kind in range(len(self.instance.kinds)))
        load = load_of(self.instance, high)
        first = width(filled(load, load.parts, next(orders(load))))
        self._boxes = [(-first, 0, (0,) * len(high), high)]
        while self._boxes and -self._boxes[0][0] > self.lower:
            above, _, low, high = heappop(self._boxes)
            try:
                unsure = max(unsure, self._look(low, high))
            except OutOfWork:
                unsure = max(unsure, -above)
                break
        left = self.lower if not self._boxes else -self._boxes[0][0]
        return self.found(max(self.lower, left, unsure))

    def found(self, upper: int) -> Worst:
        """The worst mixture so far, where none takes more nodes than this."""
        counts, _, packing = self.corner
        return Worst(self.lower, upper, counts, packing.runs)

    def _look(self, low: Counts, high: Counts) -> int:
        """Look into a box; if it is one mixture, the nodes that it takes at the most."""
        if self.instance.allows(high):
            packing = self._pack(high)
            if packing.lower > self.lower and self.instance.can_run(high):
                self.corner = _Corner(high, (), packing)
            return packing.nodes
        kind = max(range(len(low)), key=lambda at: high[at] - low[at])
        middle = (low[kind] + high[kind]) // 2
        self._add(low, _with(high, kind, middle))
        self._add(_with(low, kind, middle + 1), high)
        return 0

    def _above(self, load: Load) -> int:
        """Nodes that hold a load; found quickly where they may be more than are known to do."""
        bound = quick_bound(load)
        self._work.spend(10 + 2 * len(load.kinds))
        if bound > self.lower:
            return width(filled(load, load.parts, next(orders(load))))
        return width(quick(load, self.lower, self._work))

    def _at_most(self, low: Counts, high: Counts) -> Load:
        """The tasks that there are at least, and for each that there may be besides the largest."""
        kinds, counts = list(self.instance.kinds), list(low)
        for members, rank in self.instance.clusters:
            more = rank - sum(low[kind] for kind in members)
            some = [self.instance.kinds[kind] for kind in members if high[kind] > low[kind]]
            if more and some:
                kinds.append(_largest(some))
                counts.append(more)
        return used_of(Load(self.instance.capacity, tuple(kinds), tuple(counts)))

    def _add(self, low: Counts, high: Counts) -> None:
        """A box to look into, unless its upper corner takes no more nodes than are known."""
        if not self.instance.allows(low):
            return
        high = tuple(min(most, self.instance.most_of(kind, low)) for kind, most in enumerate(high))
        above = self._above(load_of(self.instance, high))
        if above > self.lower:
            above = min(above, self._above(self._at_most(low, high)))
        if above > self.lower:
            self._made += 1
            heappush(self._boxes, (-above, self._made, low, high))


def _largest(kinds: Sequence[Kind]) -> Kind:
    """What covers all of these."""
    return Kind(
        max(kind.nodes for kind in kinds), tuple(map(max, zip(*(kind.need for kind in kinds))))
    )


def _with(counts: Counts, kind: int, count: int) -> Counts:
    return (*counts[:kind], count, *counts[kind + 1 :])
