"""A proof that workers that hold can't sit such that nobody else ever waits, on so many nodes.

Not every way to sit can be looked at where they are many. But whoever wants a task of *n* nodes to
wait on *N* of them, by tasks of one kind alone, blocks the *m = N - n + 1* nodes where that takes
least. What these take together is, for some *t*, *m t* less the sum over all nodes of what they
take less than *t*; and how little that sum can be is a linear program over the ways to fill a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil

from taskgraph_workers.launch.size.kinds import Instance, Kind
from taskgraph_workers.launch.size.linear import Column, cheapest
from taskgraph_workers.launch.size.patterns import Load, Pattern, less, most, room_beside
from taskgraph_workers.launch.size.seats import patterns_of
from taskgraph_workers.launch.size.work import OutOfWork, Work

#: What no way may cost: a program that has to take it has no way.
_NEVER = 10**9


def nowhere(load: Load, others: Instance, nodes: int, work: Work) -> bool:
    """Whether that is proved for the workers of a load; False where nobody knows."""
    try:
        patterns = [(0,) * len(load.kinds), *patterns_of(load, work)]
        return any(
            _waits(load, patterns, costs, (nodes, nodes - wanted + 1, parts), work)
            for wanted, parts, costs in _plots(load, others, patterns)
        )
    except OutOfWork:
        return False


def _plots(
    load: Load, others: Instance, patterns: Sequence[Pattern]
) -> Iterator[tuple[int, int, list[int]]]:
    """The nodes of a task, the parts of a kind that there are beside it, what each node takes."""
    rooms = [room_beside(load.capacity, load.kinds, pattern) for pattern in patterns]
    for group, free in enumerate(others.free):
        rest = others.without(group)
        for kind in (others.kinds[kind] for kind in sorted(free)):
            for at, by in enumerate(others.kinds):
                tasks = rest.rank(1 << at)
                parts = tasks * by.nodes
                yield kind.nodes, parts, [_cost(kind, by, room, tasks, parts) for room in rooms]


def _cost(kind: Kind, by: Kind, room: tuple[int, ...], tasks: int, parts: int) -> int:
    """How many parts block a node with so much room; more than there are where they can't."""
    for count in range(min(tasks, most(by.need, room)) + 1):
        if not most(kind.need, less(room, by.need, count)):
            return count
    return parts + 1


def _waits(
    load: Load,
    patterns: Sequence[Pattern],
    costs: Sequence[int],
    sizes: tuple[int, int, int],
    work: Work,
) -> bool:
    """Whether so few parts are enough, however workers sit.

    ``sizes`` are the nodes, how many of them are to be blocked, and the parts.
    """
    nodes, blocked, parts = sizes
    for top in sorted(set(costs)):
        spare = blocked * top - parts - 1
        if spare < 0:
            continue
        less_than = [max(top - cost, 0) for cost in costs]
        if _least(load, patterns, less_than, nodes, work) <= spare:
            return False
    return True


def _least(
    load: Load, patterns: Sequence[Pattern], costs: Sequence[int], nodes: int, work: Work
) -> int:
    """No less than this do so many nodes cost on which all workers sit."""
    size = len(load.kinds) + 1
    columns = [Column(cost, (*pattern, 1)) for cost, pattern in zip(costs, patterns)]
    start = [
        Column(_NEVER, tuple(int(row == other) for other in range(size))) for row in range(size)
    ]

    def price(prices: Sequence[Fraction]) -> Column | None:
        work.spend(len(columns) * size // 4)
        gain, column = min(
            (column.cost - sum(n * each for n, each in zip(column.rows, prices)), column)
            for column in columns
        )
        return column if gain < 0 else None

    totals = (*load.counts, nodes)
    prices = cheapest(totals, start, price).prices
    if price(prices) is not None:
        raise OutOfWork
    least: Fraction = sum((total * each for total, each in zip(totals, prices)), Fraction())
    return ceil(least)
