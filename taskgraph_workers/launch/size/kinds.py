"""What is to be sized, as numbers: kinds of tasks, and the mixtures of them that workers may run.

Steps that need the same are one kind. The mixtures are a polymatroid: those that the workers can
run are those where no set of kinds has more tasks than its *rank*, the most tasks of these kinds
that all workers together can run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import permutations, product
from math import prod
from typing import NamedTuple

from taskgraph_workers.launch.size.flow import most_tasks

#: Of more kinds than these, not every set of them is looked at: what follows is a bound.
MOST_KINDS = 8
#: Of so many kinds every order is looked at.
MOST_ORDERED = 4
#: So many corners of the mixtures are looked at.
MOST_CORNERS = 256

#: How many tasks of each kind.
Counts = tuple[int, ...]


class Kind(NamedTuple):
    """What a task takes: so many different nodes, and on each of them these needs, by axis."""

    nodes: int
    need: tuple[int, ...]

    def covers(self, other: Kind) -> bool:
        """Whether the other fits wherever this one does."""
        return self.nodes >= other.nodes and all(a >= b for a, b in zip(self.need, other.need))


class Lot(NamedTuple):
    """Tasks of a kind that there are only so many of, and the groups that run them."""

    most: int
    kind: int
    groups: tuple[int, ...]


class _Given(NamedTuple):
    capacity: tuple[int, ...]
    kinds: tuple[Kind, ...]
    numbers: tuple[int, ...]
    free: tuple[frozenset[int], ...]
    lots: tuple[Lot, ...] = ()
    homes: tuple[int, ...] = ()


class Instance(_Given):
    """Nodes of one capacity, kinds of tasks, and groups of workers that run them.

    ``free`` are, for each group, the kinds that there may be any number of; ``lots`` are the
    others. ``homes`` are kinds that are there from the start, and which no node has two of: what
    workers that hold take of a node, together. On other nodes there is no such part, unless one
    of the homes takes nothing: then every node is one of them.
    """

    @cached_property
    def _ranks(self) -> dict[int, int]:
        return {}

    def rank(self, mask: int) -> int:
        """The most tasks at once of the kinds in a set (bit by bit)."""
        if mask not in self._ranks:
            self._ranks[mask] = self._rank(mask)
        return self._ranks[mask]

    def _rank(self, mask: int) -> int:
        free = [any(mask >> kind & 1 for kind in kinds) for kinds in self.free]
        sure = sum(number for number, is_free in zip(self.numbers, free) if is_free)
        left = [0 if is_free else number for number, is_free in zip(self.numbers, free)]
        lots = [
            (lot.most, [group for group in lot.groups if left[group]])
            for lot in self.lots
            if mask >> lot.kind & 1
        ]
        return sure + most_tasks(left, [lot for lot in lots if lot[0] and lot[1]])

    @cached_property
    def family(self) -> tuple[tuple[tuple[int, ...], int], ...]:
        """Sets of kinds, each with its rank, that tell whether there are too many tasks.

        Where the kinds that workers choose between are few these are all sets whose rank no
        others' ranks imply.
        """
        masks: set[int] = set()
        for part in self._parts:
            if bin(part).count("1") <= MOST_KINDS:
                masks.update(mask for mask in _subsets(part) if self._tells(mask, part))
            else:
                single = {1 << kind for kind in range(len(self.kinds))}
                masks |= {mask & part for mask in {*single, part, *map(_mask, self.free)}} - {0}
        kinds = range(len(self.kinds))
        return tuple(
            (tuple(kind for kind in kinds if mask >> kind & 1), self.rank(mask))
            for mask in sorted(masks)
        )

    @cached_property
    def _parts(self) -> tuple[int, ...]:
        """The kinds, in sets that share no worker."""
        runs = [_mask(kinds) for kinds in self.free]
        for lot in self.lots:
            for group in lot.groups:
                runs[group] |= 1 << lot.kind
        parts = [1 << kind for kind in range(len(self.kinds))]
        for run in runs:
            joined = [part for part in parts if part & run]
            parts = [part for part in parts if not part & run]
            parts += [sum(joined)] if joined else []
        return tuple(parts)

    def _tells(self, mask: int, within: int) -> bool:
        """Whether a set has less rank than any larger one, and less than its parts together.

        Larger ones are only looked at within a set; the kinds outside of it share no worker. They
        don't count where they are larger by kinds that nobody can run: that such a set is the sum
        of its parts would be told by this one.
        """
        rank = self.rank(mask)
        more = (1 << kind for kind in range(len(self.kinds)) if within & ~mask & 1 << kind)
        if any(self.rank(bit) and self.rank(mask | bit) == rank for bit in more):
            return False
        return all(
            self.rank(part) + self.rank(mask ^ part) != rank
            for part in _subsets(mask)
            if part != mask
        )

    @cached_property
    def clusters(self) -> tuple[tuple[tuple[int, ...], int], ...]:
        """Kinds that workers choose between, and how many tasks of them there are together."""
        parts: list[set[int]] = []
        for members, _ in self.family:
            joined = set(members).union(*(part for part in parts if part & set(members)))
            parts = [part for part in parts if not part & joined] + [joined]
        return tuple((tuple(sorted(part)), self.rank(_mask(part))) for part in parts)

    def allows(self, counts: Sequence[int]) -> bool:
        """Whether nothing that is looked at tells that these are too many tasks at once."""
        return all(sum([counts[k] for k in members]) <= rank for members, rank in self.family)

    def can_run(self, counts: Sequence[int]) -> bool:
        """Whether the workers can surely run so many tasks of each kind at once."""
        if all(bin(part).count("1") <= MOST_KINDS for part in self._parts):
            return self.allows(counts)
        groups = [[g for g, free in enumerate(self.free) if k in free] for k in range(len(counts))]
        return most_tasks(self.numbers, list(zip(counts, groups))) == sum(counts)

    def most_of(self, kind: int, counts: Sequence[int]) -> int:
        """How many tasks of a kind there may be beside those of the other kinds."""
        return counts[kind] + min(
            rank - sum([counts[k] for k in members])
            for members, rank in self.family
            if kind in members
        )

    @property
    def starts(self) -> tuple[int | None, ...]:
        """How a node can be before any task comes: a home, or None where there is nothing."""
        every = any(not any(self.kinds[home].need[:-1]) for home in self.homes)
        some = tuple(home for home in self.homes if self.rank(1 << home))
        return some if every else (None, *some)

    @property
    def ways(self) -> int:
        """In how many ways the groups can each choose one kind, where each has a choice."""
        return prod(len(free) or 1 for free in self.free)

    @property
    def has_all_corners(self) -> bool:
        """Whether all corners of the mixtures are looked at."""
        return self.ways <= MOST_CORNERS if not self.lots else len(self.kinds) <= MOST_ORDERED

    def corners(self, first: Sequence[int]) -> Iterator[tuple[Counts, tuple[int, ...]]]:
        """Mixtures among which all corners are, or many; ``first`` are the kinds by size.

        With each goes what kind each group runs, where they run one each.
        """
        if self.lots or self.ways > MOST_CORNERS:
            yield from dict.fromkeys((self._corner(order), ()) for order in self._orders(first))
            return
        place = {kind: at for at, kind in enumerate(first)}
        picks = (sorted(free, key=lambda kind: place[kind]) or [-1] for free in self.free)
        for picked in product(*picks):
            counts = [0] * len(self.kinds)
            for kind, number in zip(picked, self.numbers):
                counts[kind] += number if kind >= 0 else 0
            yield tuple(counts), picked

    def _corner(self, order: Sequence[int]) -> Counts:
        """In this order each group has as many tasks of a kind as it can."""
        counts, mask, before = [0] * len(self.kinds), 0, 0
        for kind in order:
            mask |= 1 << kind
            counts[kind], before = self.rank(mask) - before, self.rank(mask)
        return tuple(counts)

    def _orders(self, first: Sequence[int]) -> Iterator[Sequence[int]]:
        if len(first) <= MOST_ORDERED:
            yield from permutations(first)
            return
        for start in first[:MOST_CORNERS]:
            yield [start, *(kind for kind in first if kind != start)]

    def without(self, group: int) -> Instance:
        """The same with one worker of a group less."""
        numbers = tuple(n - (at == group) for at, n in enumerate(self.numbers))
        return Instance(self.capacity, self.kinds, numbers, self.free, self.lots, self.homes)


def leanest(instance: Instance) -> Instance:
    """The same without the kinds that a group need not run to be at its worst: covered ones."""
    free = tuple(
        frozenset(k for k in kinds if not _is_covered(instance.kinds, k, kinds))
        for kinds in instance.free
    )
    lots = []
    for most, kind, groups in instance.lots:
        run = [g for g in groups if not _is_covered(instance.kinds, kind, free[g], True)]
        if run:
            lots.append(Lot(most, kind, tuple(run)))
    return in_use(instance._replace(free=free, lots=tuple(lots)))


def in_use(instance: Instance) -> Instance:
    """The same without the kinds that nobody runs."""
    used = {kind for kinds in instance.free for kind in kinds} | {lot.kind for lot in instance.lots}
    at = {kind: index for index, kind in enumerate(sorted(used))}
    return Instance(
        instance.capacity,
        tuple(instance.kinds[kind] for kind in at),
        instance.numbers,
        tuple(frozenset(at[kind] for kind in kinds) for kinds in instance.free),
        tuple(Lot(most, at[kind], groups) for most, kind, groups in instance.lots),
    )


def _is_covered(kinds: Sequence[Kind], kind: int, by: Iterable[int], itself: bool = False) -> bool:
    return any(kinds[other].covers(kinds[kind]) for other in by if itself or other != kind)


def _mask(kinds: Iterable[int]) -> int:
    return sum(1 << kind for kind in kinds)


def _subsets(mask: int) -> Iterator[int]:
    """Every set of some of these kinds, but the empty one."""
    part = mask
    while part:
        yield part
        part = (part - 1) & mask
