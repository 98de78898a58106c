"""What one node can hold: how many parts of each kind, without exceeding any axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from taskgraph_workers.launch.size.kinds import Kind
from taskgraph_workers.launch.size.work import Work

#: How many parts of each kind are on a node.
Pattern = tuple[int, ...]


class Load(NamedTuple):
    """So many tasks of each kind, to be put on nodes of one capacity."""

    capacity: tuple[int, ...]
    kinds: tuple[Kind, ...]
    counts: tuple[int, ...]

    @property
    def parts(self) -> tuple[int, ...]:
        """How many parts there are of each kind."""
        return tuple(count * kind.nodes for count, kind in zip(self.counts, self.kinds))

    @property
    def limits(self) -> tuple[int, ...]:
        """How many parts of each kind one node takes: those of a task are on different nodes.

        The other way round, too: where no node has more than ``counts`` parts of a kind, its tasks
        can be told apart so that this holds (Gale and Ryser's theorem, for equal tasks).
        """
        return tuple(
            min(count, most(kind.need, self.capacity))
            for count, kind in zip(self.counts, self.kinds)
        )


def used_of(load: Load) -> Load:
    """A load without the kinds that it has no task of."""
    used = [kind for kind, count in enumerate(load.counts) if count]
    return Load(
        load.capacity,
        tuple(load.kinds[kind] for kind in used),
        tuple(load.counts[kind] for kind in used),
    )


def most(need: Sequence[int], room: Sequence[int]) -> int:
    """How often a need goes into a room. A need of nothing goes in as often as anybody asks.

    >>> most((4, 0), (9, 2))
    2
    """
    return min((free // each for each, free in zip(need, room) if each), default=1 << 60)


def less(room: Sequence[int], need: Sequence[int], times: int = 1) -> tuple[int, ...]:
    """The room that is left."""
    return tuple(free - times * each for free, each in zip(room, need))


def room_beside(
    capacity: tuple[int, ...], kinds: Sequence[Kind], pattern: Pattern
) -> tuple[int, ...]:
    """The room that these parts leave of a node."""
    for kind, count in zip(kinds, pattern):
        capacity = less(capacity, kind.need, count)
    return capacity


def share(need: Sequence[int], capacity: Sequence[int]) -> float:
    """How much of a node one part takes, by its tightest axis.

    >>> share((9, 1), (36, 2))
    0.5
    """
    return max((each / have for each, have in zip(need, capacity) if have), default=0.0)


def full(load: Load, limits: Sequence[int], order: Sequence[int]) -> Iterator[Pattern]:
    """All full nodes with at least one part of the first kind of the order.

    Full: nothing more goes in, within ``limits``.
    """
    yield from _full(load, limits, order, [0] * len(limits), load.capacity)


def _full(
    load: Load,
    limits: Sequence[int],
    order: Sequence[int],
    pattern: list[int],
    room: tuple[int, ...],
    at: int = 0,
) -> Iterator[Pattern]:
    if at == len(order):
        if not any(
            pattern[kind] < limits[kind] and most(load.kinds[kind].need, room) for kind in order
        ):
            yield tuple(pattern)
        return
    kind = order[at]
    need = load.kinds[kind].need
    top = min(limits[kind], most(need, room))
    bottom = 1 if at == 0 else top if at == len(order) - 1 else 0
    for count in range(top, bottom - 1, -1):
        pattern[kind] = count
        yield from _full(load, limits, order, pattern, less(room, need, count), at + 1)
    pattern[kind] = 0


def dearest(
    load: Load, limits: Sequence[int], worth: Sequence[int], work: Work
) -> tuple[int, Pattern]:
    """The pattern that is worth most, and what it is worth, exactly."""
    search = _Dearest(load, limits, worth, work)
    search.go(0, 0, load.capacity)
    return search.best, search.pattern


class _Dearest:
    """A search, kind by kind, that leaves what can't become better than the best so far."""

    def __init__(self, load: Load, limits: Sequence[int], worth: Sequence[int], work: Work) -> None:
        self.best, self.pattern = 0, (0,) * len(limits)
        self._now, self._limits, self._work = [0] * len(limits), limits, work
        self._worth, self._needs = worth, [kind.need for kind in load.kinds]
        share = {
            kind: max((n / c for n, c in zip(self._needs[kind], load.capacity) if n), default=1e-9)
            for kind in range(len(limits))
        }
        kinds = [kind for kind in range(len(limits)) if limits[kind] and worth[kind] > 0]
        self._order = sorted(kinds, key=lambda kind: -worth[kind] / share[kind])
        self._rates = [
            [self._rate(kind, axis) for axis in range(len(load.capacity))]
            for kind in range(len(self._order))
        ]

    def _rate(self, at: int, axis: int) -> float:
        """The most that one unit of an axis can bring, by the kinds from here on."""
        return max(
            self._worth[kind] / self._needs[kind][axis] if self._needs[kind][axis] else float("inf")
            for kind in self._order[at:]
        )

    def go(self, at: int, value: int, room: tuple[int, ...]) -> None:
        """Look at all that can be added to the pattern so far."""
        self._work.spend()
        if value > self.best:
            self.best, self.pattern = value, tuple(self._now)
        if at == len(self._order):
            return
        kind = self._order[at]
        for count in range(min(self._limits[kind], most(self._needs[kind], room)), -1, -1):
            left = less(room, self._needs[kind], count)
            now = value + count * self._worth[kind]
            # Floats are wrong by less than is added here.
            if (now + self._hope(at + 1, left)) * (1 + 1e-9) < self.best + 1:
                continue
            self._now[kind] = count
            self.go(at + 1, now, left)
        self._now[kind] = 0

    def _hope(self, at: int, room: Sequence[int]) -> float:
        if at == len(self._order):
            return 0.0
        return min(
            (
                free * rate if free else 0.0
                for free, rate in zip(room, self._rates[at])
                if free or rate != float("inf")
            ),
            default=float("inf"),
        )
