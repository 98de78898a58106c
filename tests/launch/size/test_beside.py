"""Workers that hold beside others: against every way to sit, and every order of arrival."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from taskgraph_workers.launch.layout import layout
from taskgraph_workers.launch.model import Demand, Layout, WorkerGroup
from taskgraph_workers.launch.size import size
from taskgraph_workers.launch.size.beside import beside
from taskgraph_workers.machines import Node
from tests.launch.size import brute
from tests.launch.size.making import LASSEN, group, inside, mixed

Case = tuple[list[WorkerGroup], list[WorkerGroup], Node]


def capacity(node: Node) -> tuple[int, ...]:
    return (node.cores or 0, node.gpus or 0, node.memory_mib or 0)


def answers(groups: list[WorkerGroup], node: Node) -> tuple[int, int]:
    """Packed and certain, which are known to be the smallest."""
    sizes = size(groups, node).sizes
    packed, certain = sizes["packed"], sizes["certain"]
    assert packed is not None
    assert certain is not None
    assert (packed.exact, certain.exact) == (True, True)
    return packed.nodes, certain.nodes


def left(found: Layout, held: list[WorkerGroup], node: Node) -> tuple[tuple[int, ...], ...]:
    """What the layout leaves of each node, by how many workers are there and what they hold."""
    rooms = []
    for at in range(len(found.nodes)):
        room = capacity(node)
        for each in held:
            need = map(max, zip(*(brute.task(demand)[1] for demand in each.demands)))
            count = found.per_node(each.name)[at]
            room = tuple(have - count * n for have, n in zip(room, need))
        assert min(room) >= 0
        rooms.append(room)
    return tuple(rooms)


@settings(max_examples=150)
@given(mixed())
def test_sizes_are_what_trying_everything_finds(case: Case):
    """The fewest nodes on which those that hold can sit such that the others have room."""
    held, others, node = case
    plain, have = brute.plain(others), capacity(node)
    packed, certain = answers([*held, *others], node)
    for nodes in {packed - 1, packed}:
        ways = brute.rooms(held, have, nodes)
        assert any(brute.fits_in(plain, rooms) for rooms in ways) == (nodes == packed)
    for nodes in {certain - 1, certain}:
        ways = brute.rooms(held, have, nodes)
        assert all(brute.waits_in(plain, rooms) for rooms in ways) == (nodes < certain)


@settings(max_examples=100)
@given(mixed())
def test_they_sit_where_the_sizes_say(case: Case):
    """Beside them every mixture has its place, and on the certain size nobody ever waits."""
    held, others, node = case
    plain, groups = brute.plain(others), [*held, *others]
    packed, certain = answers(groups, node)
    for nodes in (packed, certain, certain + 1):
        found = layout(groups, node, nodes)
        rooms = left(found, held, node)
        assert found.fits
        assert brute.fits_in(plain, rooms)
        assert nodes < certain or not brute.waits_in(plain, rooms)


def test_workers_that_hold_are_in_nobodys_way():
    """Wherever 36 of one core are, the tasks of three workers block three nodes at the most."""
    groups = [group("w", 36, inside("post")), group("sim", 4, Demand("sim", 2, 12))]
    assert answers(groups, LASSEN) == (4, 5)
    sizes = size(groups, LASSEN).sizes
    assert sizes["certain"] is not None
    assert sizes["certain"].why == (
        "with workers that hold on 1 node, where they stay, and others' tasks beside them:",
        "the other workers' tasks can leave no room for sim on 3 nodes"
        " (2 nodes with 3 x sim; 1 node with workers that hold)",
        "and a task of it takes 2 nodes more",
    )


def test_they_sit_close_where_others_would_wait_for_them():
    """Spread over three nodes they would leave none of them whole."""
    groups = [group("w", 36, inside("post")), group("sim", 2, Demand("sim", 1, 36))]
    assert answers(groups, LASSEN) == (3, 3)
    assert layout(groups, LASSEN, 3).per_node("w") == (36, 0, 0)


def test_they_are_spread_where_nobody_waits_for_that():
    """On more nodes than it takes, workers that hold have more of each node."""
    groups = [group("w", 4, inside("post", 6)), group("sim", 2, Demand("sim", 1, 12))]
    assert answers(groups, LASSEN) == (2, 2)
    assert layout(groups, LASSEN, 4).per_node("w") == (1, 1, 1, 1)


def test_a_way_to_sit_has_to_do_for_every_mixture():
    """Apart they leave 4 and 4 cores of 5, together 5 and 3: each is wrong for one of the tasks."""
    groups = [group("w", 2, inside("w")), group("c", 1, Demand("two", 2, 4), Demand("one", 1, 5))]
    both = beside(groups, Node(5))
    assert both is not None
    assert [both.worst(way).upper for way in ((((1,), 2),), (((2,), 1),))] == [3, 3]
    assert answers(groups, Node(5)) == (3, 3)
    sizes = size(groups, Node(5)).sizes
    assert sizes["packed"] is not None
    assert "wherever workers that hold are, some mixture" in sizes["packed"].why[-1]


def test_small_tasks_block_where_those_that_cover_them_do_not():
    """Two small ones keep all cores of a node; two large ones have no memory there."""
    groups = [
        group("w", 2, inside("w", 2)),
        group("b", 1, Demand("two", 2, 1, 0, 1)),
        group("c", 2, Demand("large", 1, 1, 0, 3), Demand("small", 1, 1, 0, 1)),
    ]
    assert answers(groups, Node(2, 0, 5)) == (4, 5)


@pytest.mark.parametrize("number", [50, 2000])
def test_many_are_sized_exactly_where_one_kind_tells(number: int):
    """Not every way to sit is looked at: what any of them leaves is told by a bound."""
    groups = [group("w", 36, inside("post")), group("sim", number, Demand("sim", 2, 12))]
    packed, certain = answers(groups, LASSEN)
    assert packed <= certain <= packed + 1


def test_what_is_not_proved_is_not_said_to_be():
    """Two kinds of tasks together block more than either of them alone: nobody knows of 38."""
    sim, other = Demand("sim", 2, 12), Demand("other", 1, 7, 1)
    groups = [group("w", 36, inside("post")), group("sim", 50, sim), group("o", 10, other)]
    certain = size(groups, LASSEN).sizes["certain"]
    assert certain is not None
    assert (certain.nodes, certain.exact) == (39, False)
    assert layout(groups, LASSEN, 39).fits


def test_tasks_are_packed_beside_where_spreading_them_takes_too_much():
    """The largest first leaves two nodes with one core each; two and two beside one do not."""
    groups = [group("w", 1, inside("w")), group("a", 1, Demand("a", 1, 3))]
    groups.append(group("b", 2, Demand("b", 1, 2)))
    assert answers(groups, Node(4))[0] == 2
    assert layout(groups, Node(4), 2).fits


def test_workers_on_too_few_nodes_are_where_there_is_room():
    """Where no way to sit will do, the layout says that not everything fits."""
    groups = [group("w", 3, inside("post", 20)), group("sim", 2, Demand("sim", 1, 30))]
    found = layout(groups, LASSEN, 3)
    assert not found.fits
    assert sum(found.per_node("w")) == 3


def test_without_both_there_is_nothing_beside():
    """All hold, or none does."""
    assert beside([group("w", 2, inside("s"))], LASSEN) is None
    assert beside([group("w", 2, Demand("s"))], LASSEN) is None
    assert beside([group("w", 2, Demand("s")), group("x", 0, inside("t"))], LASSEN) is None
