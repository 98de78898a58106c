"""A layout as text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskgraph_workers.launch.layout import layout
from taskgraph_workers.launch.model import Demand, WorkerGroup
from taskgraph_workers.launch.picture import picture
from taskgraph_workers.launch.size import size
from taskgraph_workers.machines import Node
from tests.launch.size.making import LASSEN, SMALL, cases, example, group, inside


def test_the_example_can_be_read_at_a_glance():
    """Alike nodes are one, a letter is a group, its case parts tasks, and a legend says so."""
    assert picture(layout(example(), SMALL, 5), SMALL) == [
        "node 0-1 (2 alike in their tasks): 3 workers (A 2, B 1) on all of them",
        " cores AAAAB...  5/8",
        " GPUs  BBBB  4/4",
        "node 2-4 (3 alike in their tasks): 3 workers (A 2, B 1) on all of them",
        " cores AAAAaaaa  8/8",
        " GPUs  ....  0/4",
        "A  step_1_workers: step_1, 2 nodes x 4 cores",
        "B  step_2_workers: step_2, 1 core and 4 GPUs",
        ".  free; one sign is one core or GPU; AAaa: two different tasks of A",
    ]


def test_too_few_nodes_are_said_to_be():
    """What is shown is not all."""
    lines = picture(layout(example(), SMALL, 4), SMALL)
    assert lines[-1] == "Not all tasks fit at once: those that do are shown."


def test_without_a_node_there_is_nothing_to_see():
    """Nothing is drawn of what nobody knows."""
    assert picture(layout(example(), None, 3), None) == []
    cores = Node(cores=36)
    assert picture(layout(example(), cores, 3), cores) == []


def test_workers_that_hold_are_each_like_the_next():
    """A group of a cluster has no steps; nodes with as many workers each say so."""
    groups = [group("trainers", 4, inside("trainers", 8, 2))]
    assert picture(layout(groups, LASSEN, 2), LASSEN) == [
        "node 0-1 (2 alike): 2 workers (A 2) on each",
        " cores AAAAAAAAaaaaaaaa....................  16/36",
        " GPUs  AAaa  4/4",
        "A  trainers: each 8 cores and 2 GPUs",
        ".  free; one sign is one core or GPU; AAaa: two different tasks of A",
    ]


def test_three_hundred_nodes_take_few_lines():
    """Runs of alike nodes collapse, and a list of them is cut where it gets long."""
    groups = [group("a", 300, inside("train", 8, 4)), group("b", 150, inside("eval", 20))]
    lines = picture(layout(groups, LASSEN, 300), LASSEN)
    assert len(lines) < 15
    assert sum(line.startswith("node ") for line in lines) == 2


def test_a_sign_is_several_cores_where_a_bar_would_be_too_wide():
    """The figures behind the bar stay exact, and the legend says what a sign is."""
    node = Node(cores=256)
    lines = picture(layout([group("w", 3, Demand("s", cores=50))], node, 1), node)
    assert lines[1].endswith("  150/256")
    assert lines[-1].startswith(".  free; one sign is 4 cores")


def test_thirty_groups_have_a_sign_each():
    """Digits come after letters; of very many groups the last ones share one."""
    groups = [group(f"group_{at}", 1, inside(f"s{at}", 1 + at % 3)) for at in range(30)]
    lines = picture(layout(groups, LASSEN, 4), LASSEN)
    signs = [line[0] for line in lines if line[1:3] == "  "]
    assert len(set(signs)) == len(signs) == 31
    many = [group(f"group_{at}", 1, inside(f"s{at}")) for at in range(70)]
    lines = picture(layout(many, LASSEN, 2), LASSEN)
    assert sum(line.startswith("?  group_") for line in lines) == 29
    assert any("$ 1, ? 29)" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_nodes_that_are_all_different_are_not_all_drawn():
    """Those that are left out are counted."""
    groups = [group(f"g{at}", 1, inside(f"s{at}", 30)) for at in range(20)]
    lines = picture(layout(groups, LASSEN, 20), LASSEN)
    assert sum(line.startswith("node ") for line in lines) == 16
    assert "and 4 nodes more, none of them like these" in lines


@pytest.mark.parametrize(
    ("node", "bars"), [(Node(gpus=4), ["GPUs"]), (Node(36), ["cores"]), (Node(36, 0), ["cores"])]
)
def test_what_a_node_has_not_has_no_bar(node: Node, bars: list[str]):
    """Neither where there are none, nor where nobody says."""
    each = Demand("s", 1, 9) if node.cores else Demand("s", 1, 0, 2)
    lines = picture(layout([group("w", 2, each)], node, 1), node)
    assert [line.split()[0] for line in lines if line.startswith(" ")] == bars


@settings(max_examples=100)
@given(cases(workers=12), st.sampled_from((40, 80)))
def test_a_picture_fits_the_terminal(case: tuple[list[WorkerGroup], Node], width: int):
    """In its columns, in ASCII, with every node in it, whatever there is to show."""
    groups, node = case
    nodes = size(groups, node).nodes
    found = layout(groups, node, nodes)
    lines = picture(found, node, width)
    assert max(map(len, lines)) <= width
    assert all(map(str.isascii, lines))
    alike = [line for line in lines if line.startswith("node ")]
    counts = [int(line.split("(")[1].split()[0]) if " alike" in line else 1 for line in alike]
    assert sum(counts) == nodes


def test_a_node_of_very_many_cores_is_drawn_soon():
    """The time grows with the cores, not with their square."""
    node = Node(cores=100_000, gpus=4)
    lines = picture(layout([group("w", 2, Demand("s", cores=20_000))], node, 1), node)
    assert lines[1].count("A") in range(9, 40)
    assert lines[1].endswith("  40000/100000")
