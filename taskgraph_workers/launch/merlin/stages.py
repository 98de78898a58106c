"""What tasks can be at the same time: the stages of a study, for the size that is useful.

Between two groups of chains there is a barrier, so a stage is one such group. Of a chain only one
step runs at a time. Where a chain leads through several groups of workers, there is a stage for
each way in which its tasks can be spread over them as far as these workers go; within one group
of workers, for each step that no other of them exceeds.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from math import prod

from taskgraph_workers.launch.merlin.chains import Chain
from taskgraph_workers.launch.model import Demand, Stage, WorkerGroup

#: With more ways than these, a stage has all of them at once, which is more than can be.
MOST = 64

_Tasks = Mapping[str, int]


def stages(chains: Sequence[Chain], groups: Sequence[WorkerGroup]) -> tuple[Stage, ...]:
    """The stages of what these groups run. Where samples aren't known, workers are counted."""
    workers = _Workers(groups)
    found: dict[frozenset[tuple[str, int]], Stage] = {}
    for _, alike in itertools.groupby(chains, key=lambda chain: chain.depth):
        ways = [way for way in map(workers.ways, alike) if way]
        if prod(map(len, ways)) > MOST:
            ways = [[_most(way)] for way in ways]
        for chosen in itertools.product(*ways):
            tasks = _sum(chosen)
            if tasks:
                found.setdefault(frozenset(tasks.items()), Stage(tasks))
    return tuple(found.values())


def _sum(parts: Iterable[_Tasks]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for step, count in part.items():
            total[step] = total.get(step, 0) + count
    return total


def _most(ways: Sequence[_Tasks]) -> dict[str, int]:
    steps = dict.fromkeys(step for way in ways for step in way)
    return {step: max(way.get(step, 0) for way in ways) for step in steps}


class _Workers:
    """Which workers run which step, and what its task takes."""

    def __init__(self, groups: Sequence[WorkerGroup]) -> None:
        self.number: dict[str, int] = {}
        self.groups: dict[str, tuple[str, ...]] = {}
        self.demands: dict[str, Demand] = {}
        for group in groups:
            self.number[group.name] = group.number
            for demand in group.demands:
                self.groups[demand.step] = (*self.groups.get(demand.step, ()), group.name)
                self.demands[demand.step] = demand

    def ways(self, chain: Chain) -> list[_Tasks]:
        """Each way in which the tasks of chains of one kind can be at once."""
        served: dict[tuple[str, ...], list[str]] = {}
        for step in chain.steps:
            if step in self.groups:
                served.setdefault(self.groups[step], []).append(step)
        found: list[_Tasks] = []
        for order in _orders(list(served)):
            for steps in itertools.product(*(self._largest(served[owner]) for owner in order)):
                way = self._spread(chain.number, order, steps)
                if way not in found:
                    found.append(way)
        # Whoever is in no stage at all counts as a step of which nothing is known.
        nothing = dict.fromkeys((step for each in served.values() for step in each), 0)
        return [{**nothing, **way} for way in found if way]

    def _spread(
        self, count: int | None, order: Sequence[tuple[str, ...]], steps: Sequence[str]
    ) -> _Tasks:
        """As many tasks as the first workers take, then as many of the rest as the next do."""
        way: dict[str, int] = {}
        left = count
        for owner, step in zip(order, steps):
            most = sum(self.number[name] for name in owner)
            taken = most if left is None else min(left, most)
            if taken:
                way[step] = taken
            left = None if left is None else left - taken
        return way

    def _largest(self, steps: Sequence[str]) -> list[str]:
        """The steps that no other one exceeds in everything."""
        kept: list[str] = []
        for step in dict.fromkeys(steps):
            if not any(self._covers(other, step) for other in kept):
                kept = [other for other in kept if not self._covers(step, other)] + [step]
        return kept

    def _covers(self, large: str, small: str) -> bool:
        one, other = self.demands[large], self.demands[small]
        return all(
            getattr(one, axis) >= getattr(other, axis)
            for axis in ("nodes", "cores", "gpus", "memory_mib")
        )


def _orders(owners: list[tuple[str, ...]]) -> Iterable[Sequence[tuple[str, ...]]]:
    """The orders in which they may be filled: all of up to four, else each of them once first."""
    if len(owners) <= 4:
        return itertools.permutations(owners)
    return [owners[index:] + owners[:index] for index in range(len(owners))]
