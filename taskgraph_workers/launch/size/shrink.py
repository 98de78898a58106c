"""Many workers, made few: a bound for all mixtures of many from all mixtures of few.

Take a *bundle*: so many workers of each group that, whichever tasks they run, each group's alike,
one node (or a few) holds them. Among many workers there is always a bundle whose tasks are alike.
So where F(N) is the worst of N workers, F(N) <= F(N - bundle) + the bundle's nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import lcm
from typing import NamedTuple

from taskgraph_workers.launch.size.kinds import Instance
from taskgraph_workers.launch.size.pack import Run, quick, width
from taskgraph_workers.launch.size.patterns import Load, Pattern, used_of
from taskgraph_workers.launch.size.work import Work

#: So many ways for the groups of a bundle to choose their tasks are tried.
MOST_WAYS = 300


class Bundle(NamedTuple):
    """So many workers of each group, which never take more nodes than these."""

    workers: tuple[int, ...]
    nodes: int


def shrink(
    instance: Instance, picks: Sequence[int], runs: Sequence[Run], work: Work
) -> tuple[Instance, int]:
    """The instance with as few workers as can be, and the nodes that hold those left out.

    ``runs`` pack a mixture in which each group runs what it ``picks``: there, bundles are found.
    """
    numbers, saved = list(instance.numbers), 0
    for pattern, times in sorted(runs, key=lambda run: -run[1]):
        bundle = _bundle(instance, picks, pattern)
        if bundle is None or not _holds(instance, bundle, work):
            continue
        taken = min(times // bundle.nodes, _times(instance, bundle, numbers))
        numbers = [n - taken * each for n, each in zip(numbers, bundle.workers)]
        saved += taken * bundle.nodes
    return instance._replace(numbers=tuple(numbers)), saved


def _bundle(instance: Instance, picks: Sequence[int], pattern: Pattern) -> Bundle | None:
    """The workers whose tasks fill nodes with this pattern, whole tasks of them."""
    used = [kind for kind, count in enumerate(pattern) if count]
    nodes = lcm(*(instance.kinds[kind].nodes for kind in used))
    workers = [0] * len(instance.numbers)
    for kind in used:
        runs = [group for group, picked in enumerate(picks) if picked == kind]
        if not runs:
            return None
        group = max(runs, key=lambda g: instance.numbers[g])
        workers[group] += pattern[kind] * nodes // instance.kinds[kind].nodes
    return Bundle(tuple(workers), nodes)


def _holds(instance: Instance, bundle: Bundle, work: Work) -> bool:
    """Whether the bundle's nodes hold it, whichever tasks each group runs."""
    for way, counts in enumerate(_ways(instance, bundle)):
        work.spend(20)
        load = Load(instance.capacity, instance.kinds, counts)
        held = width(quick(used_of(load), bundle.nodes))
        if way == MOST_WAYS or held > bundle.nodes:
            return False
    return True


def _ways(instance: Instance, bundle: Bundle) -> Iterator[tuple[int, ...]]:
    groups = [group for group, count in enumerate(bundle.workers) if count]
    for kinds in product(*(sorted(instance.free[group]) for group in groups)):
        counts = [0] * len(instance.kinds)
        for group, kind in zip(groups, kinds):
            counts[kind] += bundle.workers[group]
        yield tuple(counts)


def _times(instance: Instance, bundle: Bundle, numbers: Sequence[int]) -> int:
    """How often the bundle is sure to be among the workers, one after another.

    Of ``k * (b - 1) + 1`` workers that run k kinds of tasks, b run the same. One bundle more is
    left in, so that those who are left have room to be packed well.
    """
    return max(
        min(
            (number - len(free) * (each - 1) - 1) // each
            for number, each, free in zip(numbers, bundle.workers, instance.free)
            if each
        ),
        0,
    )
