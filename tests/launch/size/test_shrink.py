"""Many workers made few: only such bundles are left out as are sure to be there, and to fit."""

from __future__ import annotations

import pytest

from taskgraph_workers.launch.model import Demand
from taskgraph_workers.launch.size.build import build
from taskgraph_workers.launch.size.kinds import Instance, Kind
from taskgraph_workers.launch.size.shrink import shrink
from taskgraph_workers.launch.size.work import Work
from taskgraph_workers.launch.size.worst import Climb
from taskgraph_workers.machines import Node
from tests.launch.size.making import group


@pytest.mark.parametrize(
    ("node", "number", "demands"),
    [
        (Node(6, 2), 12, [Demand("a", 1, 4, 1), Demand("b", 2, 3)]),
        (Node(8, 4), 12, [Demand("a", 2, 4, 2), Demand("b", 1, 7, 3)]),
        (Node(8, 2), 14, [Demand("a", 2, 4), Demand("b", 1, 8, 1)]),
    ],
)
def test_workers_that_may_differ_are_kept(node: Node, number: int, demands: list[Demand]):
    """Were bundles taken to the last one, the bound would be a node short of what is needed."""
    instance = build([group("w", number, *demands)], node)
    climb = Climb(instance, Work(10**6))
    fewer, saved = shrink(instance, climb.corner.picks, climb.corner.packing.runs, Work(10**6))
    assert saved > 0
    assert saved + Climb(fewer, Work(10**6)).run().upper >= climb.run().lower


def test_a_bundle_has_to_fit_whatever_its_workers_run():
    """Four tasks of a GPU fill a node; the same four workers could run tasks of whole nodes."""
    kinds = (Kind(1, (1, 1)), Kind(1, (8, 0)))
    instance = Instance((8, 4), kinds, (40,), (frozenset({0, 1}),))
    assert shrink(instance, (0,), [((4, 0), 10)], Work(1000)) == (instance, 0)


def test_what_is_saved_is_what_is_left_out():
    """Of 40 workers, two a node, enough stay to be sure that two run the same."""
    kinds = (Kind(1, (4, 0)), Kind(1, (1, 2)))
    instance = Instance((8, 4), kinds, (40,), (frozenset({0, 1}),))
    fewer, saved = shrink(instance, (0,), [((2, 0), 20)], Work(1000))
    assert (fewer.numbers, saved) == ((4,), 18)
