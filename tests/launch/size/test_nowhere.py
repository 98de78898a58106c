"""The proof that workers that hold can't sit so that nobody waits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from taskgraph_workers.launch.model import Demand, WorkerGroup
from taskgraph_workers.launch.size.beside import beside
from taskgraph_workers.launch.size.nowhere import nowhere
from taskgraph_workers.launch.size.work import Work
from taskgraph_workers.machines import Node
from tests.launch.size import brute
from tests.launch.size.making import LASSEN, group, inside, mixed


def proved(groups: list[WorkerGroup], node: Node, nodes: int, steps: int = 10**5) -> bool:
    both = beside(groups, node)
    assert both is not None
    return nowhere(both.load, both.others, nodes, Work(steps))


@settings(max_examples=150)
@given(mixed())
def test_nothing_is_proved_that_is_not_so(case: tuple[list[WorkerGroup], list[WorkerGroup], Node]):
    """Where it says that somebody waits, every way to sit is such."""
    held, others, node = case
    have = (node.cores or 0, node.gpus or 0, node.memory_mib or 0)
    for nodes in range(1, 5):
        if proved([*held, *others], node, nodes):
            ways = brute.rooms(held, have, nodes)
            assert all(brute.waits_in(brute.plain(others), rooms) for rooms in ways)


@pytest.mark.parametrize(("number", "nodes"), [(4, 4), (60, 41), (100, 68)])
def test_one_kind_of_task_is_enough_to_prove_it(number: int, nodes: int):
    """On so many nodes someone waits, wherever 36 workers of a core are; on one more nobody may."""
    groups = [group("w", 36, inside("post")), group("sim", number, Demand("sim", 2, 12))]
    assert proved(groups, LASSEN, nodes)
    assert not proved(groups, LASSEN, nodes + 1)


def test_without_work_nothing_is_proved():
    """It says that it doesn't know."""
    groups = [group("w", 36, inside("post")), group("sim", 4, Demand("sim", 2, 12))]
    assert not proved(groups, LASSEN, 4, steps=40)
