"""What is said of sizes too large to try everything: bounds hold, and limits are kept."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskgraph_workers.launch.model import Demand, WorkerGroup
from taskgraph_workers.launch.size.answers import certain_size, packed_size
from taskgraph_workers.launch.size.build import build
from taskgraph_workers.launch.size.kinds import Instance, Kind, leanest
from taskgraph_workers.launch.size.pack import pack, relaxed
from taskgraph_workers.launch.size.patterns import Load
from taskgraph_workers.launch.size.rounding import rounded_up
from taskgraph_workers.launch.size.shrink import shrink
from taskgraph_workers.launch.size.work import OutOfWork, Work
from taskgraph_workers.launch.size.worst import Climb, Worst
from taskgraph_workers.machines import Node
from tests.launch.size.making import LASSEN, cases, group


def worst(instance: Instance, steps: int = 10**6) -> Worst:
    return Climb(instance, Work(steps)).run()


@settings(max_examples=100)
@given(cases(workers=16))
def test_bounds_for_all_mixtures_hold(case: tuple[list[WorkerGroup], Node]):
    """By fewer workers, and by rounding up: never less than what is needed."""
    instance = leanest(build(*case))
    found = worst(instance)
    assert found.lower == found.upper
    assert (rounded_up(instance) or 0) >= found.upper
    climb = Climb(instance, Work(10**6))
    if climb.corner.picks:
        runs = climb.corner.packing.runs
        fewer, saved = shrink(instance, climb.corner.picks, runs, Work(10**6))
        assert saved + worst(fewer).upper >= found.upper


@settings(max_examples=100)
@given(cases(workers=12))
def test_a_search_that_is_cut_short_stays_on_the_safe_side(case: tuple[list[WorkerGroup], Node]):
    """However little work there is, the answer lies between what it says."""
    instance = leanest(build(*case))
    nodes = worst(instance).upper
    for steps in (0, 30, 300):
        short = worst(instance, steps)
        assert short.lower <= nodes <= short.upper


ODD = [Demand("a", cores=7), Demand("b", cores=11), Demand("c", cores=13), Demand("d", 3, 5, 1)]
PLAIN = [group(demand.step, 2500, demand) for demand in ODD]
MIXED = [
    group(
        "all",
        10_000,
        Demand("a", 1, 7),
        Demand("b", 1, 11, 1),
        Demand("c", 1, 6, 2),
        Demand("d", 3, 5, 1),
    )
]


@pytest.mark.parametrize(("groups", "nodes"), [(PLAIN, 3334), (MIXED, 7500)])
def test_ten_thousand_workers_are_sized_exactly(groups: list[WorkerGroup], nodes: int):
    """Of four kinds, in four groups and in one, whose tasks don't cover each other."""
    found = packed_size(groups, LASSEN)
    assert (found.nodes, found.exact) == (nodes, True)
    assert certain_size(groups, LASSEN, found).nodes >= nodes


def test_fifty_groups_of_different_kinds_are_sized_exactly():
    """The bound of a linear program tells it, which no axis alone does."""
    groups = [
        group(
            f"g{i}", 5 + i * 37 % 290, Demand(f"s{i}", 1 + i % 3 // 2, 1 + i * 11 % 36, i * 5 % 4)
        )
        for i in range(50)
    ]
    found = packed_size(groups, LASSEN)
    assert found.exact
    cores = sum(each.number * d.nodes * d.cores for each in groups for d in each.demands)
    assert found.nodes > 1.05 * cores / 36


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(1, 36), st.integers(0, 4), st.integers(1, 400)),
        min_size=5,
        max_size=12,
    )
)
def test_bounds_by_floats_are_those_by_fractions(tasks: list[tuple[int, int, int]]):
    """What floats tell is checked in whole numbers, and is as much as fractions tell."""
    kinds = tuple(dict.fromkeys(Kind(1, (cores, gpus)) for cores, gpus, _ in tasks))
    load = Load((36, 4), kinds, tuple(number for _, (*_, number) in zip(kinds, tasks)))
    fractions = relaxed(load, load.limits, Work(10**6))
    least = sum(amount for column, amount in fractions.amounts if column.cost)
    packing = pack(load, Work(10**6))
    assert least <= packing.nodes
    assert packing.lower >= ceil(least)


def test_many_groups_and_kinds_keep_to_their_work():
    """Where no search can end, there is an answer all the same, and it says that it is none."""
    groups = [
        group(
            f"g{i}",
            90 + i,
            *(Demand(f"s{i}{j}", 1 + j, 3 + 2 * i + j, (4 - i) % 5 + j % 2) for j in range(3)),
        )
        for i in range(5)
    ]
    node = Node(36, 8)
    found = packed_size(groups, node)
    assert not found.exact
    assert "cut short" in found.why[-1]
    assert 0 < found.nodes <= sum(each.number * 3 for each in groups)


def test_work_ends():
    """It is counted, and one step too many is refused."""
    work = Work(2)
    work.spend(2)
    with pytest.raises(OutOfWork):
        work.spend()
