"""The nodes that others' tasks can keep a task from: how many, at the worst."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from taskgraph_workers.launch.size.kinds import Instance, Kind
from taskgraph_workers.launch.size.linear import Column, cheapest
from taskgraph_workers.launch.size.patterns import Pattern, less, most, room_beside
from taskgraph_workers.launch.size.work import OutOfWork, Work

#: More ways than these to block a node are not looked at one by one.
MOST_PATTERNS = 3000
#: So many nodes below the bound are looked at near to where it comes from.
NEAR = 6


class Blocked(NamedTuple):
    """Between how many nodes can be blocked, and the patterns that block ``lower`` of them."""

    lower: int
    upper: int
    runs: tuple[tuple[Pattern, int], ...] = ()


class Prices(NamedTuple):
    """What a part of each kind is worth, such that no node is blocked for less than 1.

    No more nodes can be blocked than all workers are worth together: ``total``. ``runs`` are how
    often each pattern is used where the prices come from, rounded down.
    """

    parts: tuple[Fraction, ...]
    total: Fraction
    runs: tuple[tuple[Pattern, int], ...] = ()


def blocked(instance: Instance, kind: Kind, floor: int, work: Work) -> Blocked:
    """The most nodes that tasks of this instance's workers can block for a part of a kind.

    Blocked: too little is left of some axis. Nodes are as many as anybody likes, so a task's parts
    that block nothing are elsewhere. Nothing up to ``floor`` is of interest.
    """
    prices = plain(instance, kind)
    upper = int(prices.total)
    if upper <= floor:
        return Blocked(0, upper)
    try:
        patterns = tuple(minimal(instance, kind, work))
        if not patterns:
            return Blocked(0, 0)
        prices = min(_priced(instance, patterns, work), prices, key=lambda each: each.total)
    except OutOfWork:
        return Blocked(0, upper)
    return _between(_Search(instance, patterns, prices, work), floor, int(prices.total))


def _between(search: _Search, floor: int, upper: int) -> Blocked:
    """Search below ``upper``: first near to where the bound comes from, then everywhere."""
    lower = 0
    runs: tuple[tuple[Pattern, int], ...] = ()
    for target in range(upper, max(floor, upper - NEAR), -1):
        found = search.near(target)
        if found is not None:
            lower, runs = target, found
            break
    try:
        while upper > max(lower, floor):
            found = search.run(upper)
            if found is not None:
                return Blocked(upper, upper, found)
            upper -= 1
    except OutOfWork:
        pass
    return Blocked(lower, upper, runs)


# --- Ways to block a node -------------------------------------------------------------------


def minimal(instance: Instance, kind: Kind, work: Work) -> Iterator[Pattern]:
    """The patterns that block a node for a part of a kind, and without any of their parts don't.

    What is at home on a node stays there. Raises OutOfWork where they are too many.
    """
    limits = [
        min(instance.rank(1 << at), most(each.need, instance.capacity)) * (at not in instance.homes)
        for at, each in enumerate(instance.kinds)
    ]
    found = 0
    for home in instance.starts:
        for pattern in _blocking(instance, kind, limits, home, work):
            if instance.can_run(pattern) and _is_minimal(instance, kind, pattern):
                found += 1
                if found > MOST_PATTERNS:
                    raise OutOfWork
                yield pattern


def _blocking(
    instance: Instance, kind: Kind, limits: Sequence[int], home: int | None, work: Work
) -> Iterator[Pattern]:
    """Patterns that block, none with more than it takes of its last kind."""
    pattern, capacity = [0] * len(limits), instance.capacity
    if home is not None:
        pattern[home], capacity = 1, less(capacity, instance.kinds[home].need)

    def below(at: int, room: tuple[int, ...]) -> Iterator[Pattern]:
        work.spend()
        if not most(kind.need, room):
            yield tuple(pattern)
            return
        if at == len(limits):
            return
        if not limits[at]:
            yield from below(at + 1, room)
            return
        need = instance.kinds[at].need
        for count in range(min(limits[at], most(need, room)) + 1):
            pattern[at] = count
            left = less(room, need, count)
            yield from below(at + 1, left)
            if not most(kind.need, left):
                break
        pattern[at] = 0

    yield from below(0, capacity)


def _is_minimal(instance: Instance, kind: Kind, pattern: Pattern) -> bool:
    room = room_beside(instance.capacity, instance.kinds, pattern)
    return all(
        most(kind.need, less(room, each.need, -1))
        for at, (each, count) in enumerate(zip(instance.kinds, pattern))
        if count and at not in instance.homes
    )


# --- Bounds ---------------------------------------------------------------------------------


def _worth(instance: Instance, parts: Sequence[Fraction]) -> Fraction:
    """What all workers are worth: each of them runs what is worth most to it, of what there is."""
    tasks = [price * kind.nodes for price, kind in zip(parts, instance.kinds)]
    total, mask, before = Fraction(), 0, 0
    for kind in sorted(range(len(tasks)), key=lambda at: -tasks[at]):
        mask |= 1 << kind
        total += tasks[kind] * (instance.rank(mask) - before)
        before = instance.rank(mask)
    return total


def plain(instance: Instance, kind: Kind) -> Prices:
    """Each part is worth the largest share of what it takes to block a node, of any axis."""
    least = [have - need + 1 if need else 0 for have, need in zip(instance.capacity, kind.need)]
    parts = tuple(
        max((Fraction(n, few) for n, few in zip(each.need, least) if few), default=Fraction())
        for each in instance.kinds
    )
    parts = tuple(min(price, Fraction(1)) for price in parts)
    return Prices(parts, _worth(instance, parts))


def _priced(instance: Instance, patterns: Sequence[Pattern], work: Work) -> Prices:
    """Prices from the linear program: as many blocked nodes as can be had in fractions.

    Its rows are the parts of each kind, then the workers of each group. Whatever comes out is made
    such that every pattern is worth 1 at least.
    """
    kinds = len(instance.kinds)
    totals = [0] * kinds + list(instance.numbers)
    size = len(totals)
    columns = [Column(-1, (*pattern, *(0 for _ in instance.numbers))) for pattern in patterns]
    for group, free in enumerate(instance.free):
        for at in free:
            row = [0] * size
            row[at], row[kinds + group] = -instance.kinds[at].nodes, 1
            columns.append(Column(0, tuple(row)))
    start = [Column(0, tuple(int(i == j) for j in range(size))) for i in range(size)]

    def price(prices: Sequence[Fraction]) -> Column | None:
        work.spend(size * size // 4 + len(columns) // 4)
        if any(each > 0 for each in prices):
            return start[next(at for at, each in enumerate(prices) if each > 0)]
        values = [(at, each) for at, each in enumerate(prices) if each]
        gains = (
            (column.cost - sum(each * column.rows[at] for at, each in values), index)
            for index, column in enumerate(columns)
        )
        gain, index = min(gains)
        return columns[index] if gain < 0 else None

    optimum = cheapest(totals, start, price)
    runs = ((column.rows[:kinds], int(n)) for column, n in optimum.amounts if column.cost)
    prices = [max(-each, Fraction()) for each in optimum.prices[:kinds]]
    least = min(sum(n * each for n, each in zip(pattern, prices)) for pattern in patterns)
    if not least:
        return Prices(tuple(prices), Fraction(sum(instance.numbers) * 10**9))
    parts = tuple(each / least for each in prices)
    return Prices(parts, _worth(instance, parts), tuple(run for run in runs if run[1]))


# --- Search ---------------------------------------------------------------------------------


class _Search:
    """Whether so many nodes can be blocked: how often each pattern is used, pattern by pattern."""

    def __init__(
        self, instance: Instance, patterns: Sequence[Pattern], prices: Prices, work: Work
    ) -> None:
        self._problem, self._work, self._prices = instance, work, prices
        worth = [
            (sum((n * each for n, each in zip(pattern, prices.parts)), Fraction()), pattern)
            for pattern in patterns
        ]
        self._worth = sorted(worth)
        self._runs: list[tuple[Pattern, int]] = []

    def run(self, target: int) -> tuple[tuple[Pattern, int], ...] | None:
        """The patterns that block so many nodes; None where none do. Raises OutOfWork."""
        return self._from((), target, self._work)

    def near(self, target: int) -> tuple[tuple[Pattern, int], ...] | None:
        """The same, but only near to where the prices come from, and not for long."""
        whole = self._prices.runs
        for opened in (0, 1, 3):
            runs = [(pattern, max(times - opened, 0)) for pattern, times in whole]
            try:
                with self._work.part(2_000) as part:
                    found = self._from(runs, target, part)
            except OutOfWork:
                found = None
            if found is not None:
                return found
        return None

    def _from(
        self, runs: Sequence[tuple[Pattern, int]], target: int, work: Work
    ) -> tuple[tuple[Pattern, int], ...] | None:
        """Go on from these runs."""
        kinds = range(len(self._problem.kinds))
        self._runs, self._part = [], work
        used = tuple(sum(times * pattern[kind] for pattern, times in runs) for kind in kinds)
        peak = tuple(max((p[kind] for p, n in runs if n), default=0) for kind in kinds)
        left = target - sum(times for _, times in runs)
        if left < 0 or not self._problem.can_run(self._tasks(used, peak)):
            return None
        if not self._go(0, left, self._waste(runs, target), used, peak):
            return None
        counts: dict[Pattern, int] = {}
        for pattern, times in (*runs, *self._runs):
            counts[pattern] = counts.get(pattern, 0) + times
        return tuple((pattern, times) for pattern, times in counts.items() if times)

    def _waste(self, runs: Sequence[tuple[Pattern, int]], target: int) -> Fraction:
        """What may be wasted besides what these runs are worth."""
        parts = self._prices.parts
        worth = (
            times * (sum((n * each for n, each in zip(pattern, parts)), Fraction()) - 1)
            for pattern, times in runs
        )
        return self._prices.total - target - sum(worth, Fraction())

    def _go(self, at: int, target: int, waste: Fraction, used: Pattern, top: Pattern) -> bool:
        """Block ``target`` more nodes by the patterns from here on, which waste at most so much."""
        if not target:
            return True
        if at == len(self._worth):
            return False
        worth, pattern = self._worth[at]
        over = worth - 1
        if over * target > waste:
            return False
        for times in range(target, -1, -1):
            self._part.spend()
            if over * times > waste:
                continue
            now = tuple(a + times * b for a, b in zip(used, pattern))
            peak = tuple(map(max, top, pattern)) if times else top
            if not self._problem.can_run(self._tasks(now, peak)):
                continue
            if times:
                self._runs.append((pattern, times))
            if self._go(at + 1, target - times, waste - over * times, now, peak):
                return True
            if times:
                self._runs.pop()
        return False

    def _tasks(self, parts: Pattern, top: Pattern) -> tuple[int, ...]:
        """The tasks that have so many parts, and so many of them on one node."""
        return tuple(
            max(-(-count // kind.nodes), peak)
            for count, kind, peak in zip(parts, self._problem.kinds, top)
        )
