"""How large a launch is: nodes, and what is on each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers.launch.merlin.shape import Shape, cover, shape, together


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, (1, 1, 0)),
        ({"nodes": 2}, (2, 1, 0)),
        ({"nodes": 2, "tasks": 8, "cores_per_task": 4}, (2, 16, 0)),
        ({"nodes": 2, "tasks": 3, "cores_per_task": 2}, (2, 4, 0)),
        ({"nodes": 2, "cores": 8}, (2, 4, 0)),
        ({"nodes": 2, "cores": 9, "gpus": 3}, (2, 5, 2)),
        ({"nodes": 2, "tasks": 8, "gpus_per_task": 1}, (2, 4, 4)),
        ({"nodes": 2, "tasks": 8, "gpus_per_node": 3}, (2, 4, 3)),
        ({"tasks": 8, "tasks_per_node": 4}, (2, 4, 0)),
        ({"nodes": 3, "tasks_per_node": 4}, (3, 4, 0)),
        ({"tasks": 2, "tasks_per_node": 4}, (1, 2, 0)),
        ({"gpus": 4, "gpus_per_task": 2}, (1, 2, 4)),
        ({"tasks": 1, "gpus": 2, "cores_per_gpu": 8}, (1, 16, 2)),
        ({"sets": 4, "sets_per_node": 2, "cores_per_set": 5, "gpus_per_set": 1}, (2, 10, 2)),
        ({"sets": 4, "cores_per_set": 5}, (1, 20, 0)),
        ({"sets": 4, "nodes": 2, "gpus_per_set": 1}, (2, 2, 2)),
        ({"tasks": 8, "tasks_per_set": 2, "cores_per_set": 3}, (1, 12, 0)),
    ],
)
def test_sizes_make_a_shape(said: dict[str, int], found: tuple[int, int, int]):
    """Decision D1, and resource sets as jsrun has them."""
    assert shape(said)[:3] == found


@pytest.mark.parametrize(
    ("said", "memory"),
    [
        ({"memory_per_node": 100, "tasks": 4}, 100),
        ({"memory_per_core": 10, "tasks": 4, "cores_per_task": 2}, 80),
        ({"memory_per_gpu": 10, "gpus_per_node": 4}, 40),
        ({"sets": 2, "memory_per_set": 10}, 20),
    ],
)
def test_memory(said: dict[str, int], memory: int):
    """Memory of one node, whether it is said for that, a core, a GPU or a resource set."""
    assert shape(said).memory_mib == memory


def test_tasks_that_do_not_divide():
    """It is told, for a warning."""
    assert shape({"nodes": 2, "tasks": 3}).uneven
    assert not shape({"nodes": 2, "tasks": 4}).uneven


SHAPES = st.builds(Shape, *[st.integers(1, 6), *[st.integers(0, 6)] * 3])


@given(st.lists(SHAPES, min_size=1, max_size=5))
def test_a_cover_has_room_for_each(shapes: list[Shape]):
    """It is one of them where one is enough, and never larger than needed."""
    found = cover(shapes)
    assert all(found.covers(each) for each in shapes)
    assert found[:4] == tuple(map(max, list(zip(*shapes))[:4]))


@given(st.lists(SHAPES, min_size=1, max_size=5), st.integers(1, 6))
def test_together_all_is_there(shapes: list[Shape], nodes: int):
    """No node has less than its share, and no more nodes are taken than asked for."""
    found = together(shapes, nodes)
    assert found.nodes <= max(nodes, *(each.nodes for each in shapes))
    for axis in (1, 2, 3):
        assert found.nodes * found[axis] >= sum(each.nodes * each[axis] for each in shapes)
        assert found[axis] >= max(each[axis] for each in shapes)


def test_together_on_more_nodes_than_there_are():
    """Nonsense takes no time."""
    assert together([Shape(10**9, 1), Shape(10**9, 1)], 1)[:2] == (10**9, 2)
