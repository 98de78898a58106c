"""Where workers and their tasks are: every layout is checked from scratch."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskgraph_workers.launch.layout import layout
from taskgraph_workers.launch.model import Demand, Layout, Share, WorkerGroup
from taskgraph_workers.launch.size import size
from taskgraph_workers.machines import Node
from tests.launch.size.making import LASSEN, SMALL, cases, example, group, inside


def check(found: Layout, groups: list[WorkerGroup], node: Node, nodes: int) -> None:
    """No node has more than it has, no core is two tasks', and parts are on different nodes."""
    assert len(found.nodes) == nodes
    parts: dict[tuple[str, int], list[tuple[int, Share]]] = defaultdict(list)
    for at, each in enumerate(found.nodes):
        cores = [core for share in each.shares for core in share.cores]
        gpus = [gpu for share in each.shares for gpu in share.gpus]
        assert len(set(cores)) == len(cores)
        assert set(cores) <= set(range(node.cores or 0))
        assert len(set(gpus)) == len(gpus)
        assert set(gpus) <= set(range(node.gpus or 0))
        assert sum(share.memory_mib for share in each.shares) <= (node.memory_mib or 0)
        for share in each.shares:
            parts[share.group, share.worker].append((at, share))
    for each in groups:
        for worker in range(each.number):
            check_task(parts.pop((each.name, worker), []), each, found.fits)
    assert not parts
    everyone = Counter(worker for each in found.nodes for worker in each.workers)
    assert everyone == {(each.name, at): 1 for each in groups for at in range(each.number)}


def check_task(parts: list[tuple[int, Share]], of: WorkerGroup, must: bool) -> None:
    """One task of the group, whole, or none at all where not everything fits."""
    if not parts:
        assert not must
        return
    assert len({at for at, _ in parts}) == len(parts)
    takes = {(s.step, len(s.cores), len(s.gpus), s.memory_mib) for _, s in parts}
    assert takes <= {(d.step, d.cores, d.gpus, d.memory_mib) for d in of.demands}
    assert len(takes) == 1
    assert len(parts) == next(d.nodes for d in of.demands if d.step == parts[0][1].step)


@settings(max_examples=200)
@given(cases(workers=12), st.integers(0, 3))
def test_all_fits_on_as_many_nodes_as_were_worked_out(
    case: tuple[list[WorkerGroup], Node], more: int
):
    """On the packed size, and on more, each worker's largest task has its place."""
    groups, node = case
    nodes = size(groups, node).nodes + more
    found = layout(groups, node, nodes)
    assert found.fits
    check(found, groups, node, nodes)


@settings(max_examples=100)
@given(cases(workers=12), st.integers(1, 4))
def test_what_does_not_fit_is_left_out_whole(case: tuple[list[WorkerGroup], Node], nodes: int):
    """On too few nodes there are the tasks that fit, and it says so."""
    groups, node = case
    found = layout(groups, node, nodes)
    check(found, groups, node, nodes)
    if nodes >= size(groups, node).nodes:
        assert found.fits


def test_the_example_has_all_six_tasks_on_five_nodes():
    """Two nodes of 4 + 1 cores and all GPUs, three of 4 + 4: the only way there is."""
    found = layout(example(), SMALL, 5)
    assert found.fits
    taken = sorted(sorted(len(share.cores) for share in node.shares) for node in found.nodes)
    assert taken == [[1, 4], [1, 4], [4, 4], [4, 4], [4, 4]]
    fewer = layout(example(), SMALL, 4)
    assert not fewer.fits
    assert len({(s.group, s.worker) for node in fewer.nodes for s in node.shares}) == 5


@pytest.mark.parametrize(
    ("cores", "nodes", "tasks"),
    [(6, 4, [(2, 2, 3), (3, 2, 2)]), (10, 8, [(3, 2, 4), (3, 2, 6), (3, 2, 3)])],
)
def test_tasks_are_packed_where_spreading_them_takes_too_much(
    cores: int, nodes: int, tasks: list[tuple[int, int, int]]
):
    """Least first leaves room in the wrong places; the packing has it, on as many nodes."""
    groups = [
        group(f"g{at}", number, Demand(f"s{at}", wide, each))
        for at, (number, wide, each) in enumerate(tasks)
    ]
    assert size(groups, Node(cores)).nodes == nodes
    found = layout(groups, Node(cores), nodes)
    assert found.fits
    check(found, groups, Node(cores), nodes)


def test_workers_that_hold_nothing_are_dealt_across_groups():
    """One after another over the nodes; the next group goes on where the last one ended."""
    found = layout([group("a", 5, Demand("s")), group("b", 2, Demand("s"))], LASSEN, 4)
    assert found.per_node("a") == (2, 1, 1, 1)
    assert found.per_node("b") == (0, 1, 1, 0)


def test_workers_that_hold_are_where_what_they_hold_is():
    """A worker lives on the node where its cores and GPUs are; small ones where there is room."""
    groups = [group("big", 3, inside("train", 30, 4)), group("small", 4, inside("eval", 3))]
    found = layout(groups, LASSEN, 3)
    assert found.fits
    assert found.per_node("big") == (1, 1, 1)
    assert sum(found.per_node("small")) == 4
    for node in found.nodes:
        assert set(node.workers) == {(share.group, share.worker) for share in node.shares}


@pytest.mark.parametrize("node", [None, Node(cores=36), Node(gpus=4)])
def test_without_knowing_the_node_there_are_workers_and_no_shares(node: Node | None):
    """They are dealt all the same."""
    found = layout(example(), node, 3)
    assert found.per_node("step_1_workers") == (2, 1, 1)
    assert found.per_node("step_2_workers") == (0, 1, 1)
    assert not any(each.shares for each in found.nodes)
    assert found.fits


def test_tasks_are_spread_where_there_is_room():
    """On as many nodes as tasks no two share one."""
    found = layout([group("w", 6, Demand("s", cores=8))], LASSEN, 6)
    assert [len(node.shares) for node in found.nodes] == [1] * 6


def test_ten_thousand_workers_have_their_places():
    """Of four kinds, on the nodes that were worked out, with nothing counted twice."""
    demands = [
        Demand("a", cores=7),
        Demand("b", cores=11),
        Demand("c", cores=13),
        Demand("d", 3, 5, 1),
    ]
    groups = [group(demand.step, 2500, demand) for demand in demands]
    nodes = size(groups, LASSEN).nodes
    found = layout(groups, LASSEN, nodes)
    assert (found.fits, nodes) == (True, 3334)
    check(found, groups, LASSEN, nodes)
