"""How many nodes one mixture of tasks takes: bounds, quick ways, and a search between the two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from math import lcm
from typing import NamedTuple

from taskgraph_workers.launch.size.linear import NOTHING, Column, Optimum, cheapest
from taskgraph_workers.launch.size.patterns import Load, Pattern, dearest, used_of
from taskgraph_workers.launch.size.search import MOST_NODES, Weights, search
from taskgraph_workers.launch.size.work import OutOfWork, Work

#: A pattern, and on how many nodes it is.
Run = tuple[Pattern, int]

#: Of so many kinds every order is tried.
MOST_ORDERED = 4


#: A price of one, as a whole number.
ONE = 1 << 26
#: No less than this is more than one.
MORE = ONE + (1 << 8)


def width(runs: Sequence[Run]) -> int:
    """On how many nodes these patterns are."""
    return sum(times for _, times in runs)


class Packing(NamedTuple):
    """Nodes, pattern by pattern, and the number that no other way can undercut."""

    lower: int
    runs: tuple[Run, ...]

    @property
    def nodes(self) -> int:
        """How many nodes these are."""
        return width(self.runs)


def pack(load: Load, work: Work) -> Packing:
    """The fewest nodes for a load, or what was found until the work ran out."""
    used = [kind for kind, count in enumerate(load.counts) if count]
    if not used:
        return Packing(0, ())
    lower, runs = _pack(used_of(load), work)
    return Packing(lower, tuple((_widened(p, used, len(load.counts)), n) for p, n in runs))


def _widened(pattern: Pattern, used: Sequence[int], size: int) -> Pattern:
    wide = [0] * size
    for kind, count in zip(used, pattern):
        wide[kind] = count
    return tuple(wide)


def _pack(load: Load, work: Work) -> Packing:
    lower = quick_bound(load)
    runs = quick(load, lower)
    if width(runs) == lower:
        return Packing(lower, runs)
    program = _Program(load, runs, work)
    try:
        optimum = cheapest(load.parts, program.start, program.price, exact=False)
        weights, lower = program.weights, max(lower, program.lower)
        runs = min(runs, _rounded(load, optimum, lower), key=width)
        while lower < width(runs) and lower <= MOST_NODES:
            found = search(load, load.parts, lower, weights, work)
            if found is not None:
                return Packing(lower, found)
            lower += 1
    except OutOfWork:
        lower = max(lower, program.lower)
    return Packing(lower, runs)


# --- Bounds ---------------------------------------------------------------------------------


def quick_bound(load: Load) -> int:
    """No fewer nodes than this: by each axis, by each task's nodes, by each kind alone."""
    parts = load.parts
    sums = [
        -(-sum(count * kind.need[axis] for count, kind in zip(parts, load.kinds)) // have)
        for axis, have in enumerate(load.capacity)
        if have
    ]
    alone = [-(-count // most) for count, most in zip(parts, load.limits) if count]
    return max([*sums, *alone], default=0)


class _Program:
    """The fewest nodes in fractions, by floats; and what bound any of its prices give.

    No fewer nodes will do than what all parts are worth, by the dearest pattern (Farley's bound),
    whatever the prices: so nothing hangs on how these were found.
    """

    def __init__(self, load: Load, runs: Sequence[Run], work: Work) -> None:
        """``runs`` are a packing: better ones are looked for, and first of all by its patterns."""
        self._load, self._enough, self._work = load, width(runs), work
        self._patterns = [pattern for pattern, _ in runs]
        self._size = len(load.kinds)
        self.start = [
            Column(1, _unit(self._size, kind, limit)) for kind, limit in enumerate(load.limits)
        ]
        self.lower = 0
        self.weights: Weights = ((0,) * self._size, 0)

    def price(self, prices: Sequence[float]) -> Column | None:
        """A pattern worth more than a node; None where the bound is as high as it can get."""
        below = next((kind for kind, price in enumerate(prices) if price < -NOTHING), None)
        if below is not None:
            return Column(0, _unit(self._size, below, -1))
        self._work.spend(self._size * self._size // 20)
        worth = tuple(max(int(price * ONE), 0) for price in prices)
        known, pattern = max(
            (sum([each * count for each, count in zip(worth, pattern)]), pattern)
            for pattern in self._patterns
        )
        if known > MORE:
            return Column(1, pattern)
        best, pattern = dearest(self._load, self._load.limits, worth, self._work)
        total = sum(each * count for each, count in zip(worth, self._load.parts))
        lower = -(-total // best) if best else 0
        if lower >= self.lower:
            self.lower, self.weights = lower, (worth, best)
        done = best <= MORE or lower >= self._enough
        return None if done else Column(1, pattern)


def relaxed(load: Load, limits: Sequence[int], work: Work) -> Optimum:
    """The fewest nodes if they could be had in fractions (Gilmore and Gomory's program).

    ``limits`` are how many parts of each kind a node may have.
    """
    size = len(load.kinds)
    start = [Column(1, _unit(size, kind, limit)) for kind, limit in enumerate(limits)]

    def price(prices: Sequence[Fraction]) -> Column | None:
        below = next((kind for kind, price in enumerate(prices) if price < 0), None)
        if below is not None:
            return Column(0, _unit(size, below, -1))
        work.spend(size * size // 4)
        scale = lcm(*(price.denominator for price in prices))
        worth = tuple(int(price * scale) for price in prices)
        best, pattern = dearest(load, limits, worth, work)
        return Column(1, pattern) if best > scale else None

    return cheapest(load.parts, start, price)


def _unit(size: int, at: int, value: int) -> Pattern:
    return tuple(value if index == at else 0 for index in range(size))


# --- Quick ways -----------------------------------------------------------------------------


def quick(load: Load, target: int, work: Work | None = None) -> tuple[Run, ...]:
    """The best of some first-fit ways, or the first that takes no more nodes than the target."""
    best: tuple[Run, ...] = ()
    for order in orders(load):
        if work is not None:
            work.spend(5 + 3 * len(order))
        runs = filled(load, load.parts, order)
        if not best or width(runs) < width(best):
            best = runs
        if width(best) <= target:
            break
    return best


def orders(load: Load) -> Iterator[Sequence[int]]:
    """Orders of the kinds: largest first, and then the others, all of them where they are few."""
    shares = [
        [need / have if have else 0.0 for need, have in zip(kind.need, load.capacity)]
        for kind in load.kinds
    ]
    kinds = range(len(shares))
    largest = sorted(kinds, key=lambda kind: (-max(shares[kind]), -sum(shares[kind])))
    if len(shares) <= MOST_ORDERED:
        yield from permutations(largest)
        return
    yield largest
    yield sorted(kinds, key=lambda kind: -sum(shares[kind]))
    for axis in range(len(load.capacity)):
        yield sorted(kinds, key=lambda kind: (-shares[kind][axis], -sum(shares[kind])))
    for first in largest:
        yield [first, *(kind for kind in largest if kind != first)]


def filled(load: Load, parts: Sequence[int], order: Sequence[int]) -> tuple[Run, ...]:
    """Nodes filled one after another, each kind of node as often as its parts last."""
    left, limits = list(parts), load.limits
    needs = [[(axis, n) for axis, n in enumerate(kind.need) if n] for kind in load.kinds]
    order = [kind for kind in order if left[kind]]
    runs = []
    while order:
        pattern, room = [0] * len(left), list(load.capacity)
        for kind in order:
            need = needs[kind]
            count = min([room[axis] // n for axis, n in need], default=limits[kind])
            count = min(count, limits[kind], left[kind])
            if count:
                pattern[kind] = count
                for axis, n in need:
                    room[axis] -= count * n
        used = [kind for kind in order if pattern[kind]]
        times = min([left[kind] // pattern[kind] for kind in used])
        for kind in used:
            left[kind] -= times * pattern[kind]
        order = [kind for kind in order if left[kind]]
        runs.append((tuple(pattern), times))
    return tuple(runs)


def _rounded(load: Load, optimum: Optimum, target: int) -> tuple[Run, ...]:
    """The fractions of nodes rounded down, and the rest packed quickly and by a short search."""
    runs = [
        (column.rows, int(amount + NOTHING))
        for column, amount in optimum.amounts
        if column.cost and amount + NOTHING >= 1
    ]
    left = list(load.parts)
    for pattern, times in runs:
        left = [max(have - times * each, 0) for have, each in zip(left, pattern)]
    best = min((filled(load, left, order) for order in orders(load)), key=width)
    room = target - width(runs)
    if width(best) > room > 0:
        # Some whole nodes are opened again: the rest may need their room.
        best = _repaired(load, runs, left, room) or best
    return (*runs, *best)


def _repaired(load: Load, runs: list[Run], left: list[int], room: int) -> tuple[Run, ...] | None:
    for opened in (0, 1, 2, 4):
        parts, nodes, kept = list(left), room, []
        for pattern, times in runs:
            again = min(opened, times)
            parts = [have + again * each for have, each in zip(parts, pattern)]
            nodes += again
            kept.append((pattern, times - again))
        try:
            found = search(load, parts, nodes, None, Work(4_000)) if nodes <= MOST_NODES else None
        except OutOfWork:
            found = None
        if found is not None:
            runs[:] = kept
            return found
    return None
