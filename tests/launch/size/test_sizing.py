"""The four answers, which of them is taken, and what is refused."""

from __future__ import annotations

import pytest

from taskgraph_workers.launch.model import Demand, LaunchError, Stage, WorkerGroup
from taskgraph_workers.launch.size import size
from taskgraph_workers.machines import Node
from tests.launch.size.making import (
    LASSEN,
    PERLMUTTER,
    SMALL,
    STEP_1,
    STEP_2,
    example,
    group,
    inside,
)


def answers(
    groups: list[WorkerGroup], node: Node | None, stages: tuple[Stage, ...] = ()
) -> tuple[int | None, ...]:
    """The nodes by each way to count; each must be known to be the smallest."""
    given = 1000 if node is None else None
    sizes = size(groups, node, stages, given=given).sizes
    assert all(answer is None or answer.exact for answer in sizes.values())
    modes = ("exclusive", "packed", "certain", "useful")
    return tuple(answer.nodes if (answer := sizes[mode]) else None for mode in modes)


WHOLE = Demand("both", nodes=2, cores=2, written_nodes=2)
ALL = (STEP_1, STEP_2)
WORKED = {
    "the example on 36 cores": (example(), LASSEN, (10, 2, 2)),
    "the example on 128 cores": (example(), PERLMUTTER, (10, 2, 2)),
    "the example on 8 cores": (example(), SMALL, (10, 5, 6)),
    "one queue, the second group skipped": ([group("w", 4, *ALL)], LASSEN, (8, 4, 4)),
    "one queue, both groups": ([group("a", 4, *ALL), group("b", 2, *ALL)], LASSEN, (12, 6, 6)),
    "two workers of two nodes": ([group("w", 2, WHOLE)], LASSEN, (4, 2, 2)),
    "one worker of two nodes": ([group("w", 1, WHOLE)], LASSEN, (2, 2, 2)),
    "four workers of four cores": ([group("w", 4, Demand("s", cores=4))], LASSEN, (4, 1, 1)),
    "a core for each worker": ([group("w", 36, Demand("s"))], LASSEN, (36, 1, 1)),
    "no launcher, on 128 cores": ([group("w", 32, inside("s"))], PERLMUTTER, (None, 1, 1)),
    "three groups without launcher": (
        [group(name, 1, inside(name)) for name in "abc"],
        LASSEN,
        (None, 1, 1),
    ),
}


@pytest.mark.parametrize("case", WORKED)
def test_what_was_worked_out_by_hand_comes_out(case: str):
    """Every line of the worked tables, number for number."""
    groups, node, expected = WORKED[case]
    assert answers(groups, node) == (*expected, None)


def test_workers_that_wait_for_each_other_are_not_added_up():
    """36 workers on the samples and 1 on what comes after them need 37 cores, and use 36."""
    groups = [
        group("sim", 36, inside("sim", written_nodes=1)),
        group("post", 1, inside("post", written_nodes=1)),
    ]
    stages = (Stage({"sim": None}), Stage({"post": 1}))
    assert answers(groups, LASSEN, stages) == (37, 2, 2, 1)


def test_no_more_workers_count_than_there_are_tasks():
    """Of 50 workers with 10 tasks of 4 GPUs, 10 are useful; where nobody can count, all 50."""
    groups = [group("w", 50, STEP_2)]
    assert answers(groups, LASSEN, (Stage({"step_2": 10}),))[3] == 10
    assert answers(groups, LASSEN, (Stage({"step_2": None}),))[3] == 50
    assert answers(groups, LASSEN, (Stage({"other": 3}),))[3] == 50


def test_tasks_of_one_step_are_counted_once_over_groups():
    """Two groups that serve the same queue run no more of its tasks than there are."""
    groups = [group("a", 4, STEP_2), group("b", 4, STEP_2)]
    assert answers(groups, LASSEN, (Stage({"step_2": 5}),))[3] == 5


def test_a_step_whose_tasks_take_more_in_one_group_is_told_at_the_most():
    """Its tasks are counted for both groups, so that fewer nodes may do; which is said."""
    groups = [group("a", 2, inside("s", 20), inside("t", 30)), group("b", 2, inside("s", 20))]
    useful = size(groups, LASSEN, (Stage({"s": 1, "t": 0}),)).sizes["useful"]
    assert useful is not None
    assert (useful.nodes, useful.exact) == (2, False)


def test_a_worker_that_holds_keeps_the_most_of_each_axis():
    """It can't change what it is bound to, so its tasks' cores and GPUs are taken together."""
    groups = [group("w", 3, inside("a", cores=20), inside("b", cores=2, gpus=3))]
    assert answers(groups, LASSEN) == (None, 3, 3, None)
    launched = [group("w", 3, Demand("a", cores=20), Demand("b", cores=2, gpus=3))]
    assert answers(launched, Node(36, 6)) == (3, 3, 3, None)
    assert answers([group("w", 2, *launched[0].demands)], Node(40, 6)) == (2, 1, 1, None)


def test_axes_are_never_mixed():
    """A group with a wide task and a GPU task needs no node that would hold both at once."""
    groups = [group("w", 1, Demand("a", cores=36), Demand("b", cores=1, gpus=4))]
    assert answers(groups, LASSEN) == (1, 1, 1, None)


def test_nodes_written_for_a_task_inside_its_worker_count_where_nodes_are_whole():
    """`exclusive` takes nodes as they are written; a task without launcher can't use them."""
    groups = [group("w", 2, inside("s", written_nodes=3))]
    assert answers(groups, LASSEN) == (6, 1, 1, None)


def test_a_task_inside_a_worker_that_holds_nothing_is_on_one_node():
    """Whatever nodes are written for it: it has no launcher to get at the others."""
    wide = inside("s", 20, written_nodes=3)
    assert answers([group("w", 2, wide, Demand("t", cores=4))], LASSEN) == (6, 2, 2, None)


@pytest.mark.parametrize(
    ("cores", "groups", "nodes"),
    [
        (5, [(5, [(3, 1), (1, 1), (1, 2)])], 4),
        (5, [(3, [(1, 4), (2, 2)]), (1, [(2, 1)]), (1, [(3, 2), (1, 3), (2, 1)])], 8),
        (7, [(1, [(3, 3)]), (1, [(2, 4), (2, 1)])], 3),
    ],
)
def test_parts_of_one_task_do_not_block_the_same_node(
    cores: int, groups: list[tuple[int, list[tuple[int, int]]]], nodes: int
):
    """So few tasks can't crowd one node; found by trying everything."""
    asked = [
        group(f"g{at}", number, *(Demand(f"s{at}{n}x{c}", n, c) for n, c in tasks))
        for at, (number, tasks) in enumerate(groups)
    ]
    assert answers(asked, Node(cores))[2] == nodes


def test_packed_is_taken_where_the_node_is_known():
    """Without a mode: packed where it can be told, else exclusive."""
    assert (size(example(), SMALL).mode, size(example(), SMALL).nodes) == ("packed", 5)
    assert (size(example(), None).mode, size(example(), None).nodes) == ("exclusive", 10)


def test_gpus_of_a_node_that_nobody_knows_are_asked_for():
    """Tasks that take GPUs leave packed unknown, and a note says which option tells it."""
    found = size(example(), Node(cores=36))
    assert (found.mode, found.sizes["packed"], found.sizes["certain"]) == ("exclusive", None, None)
    (note,) = found.notes
    assert note.message == "how many GPUs a node has is unknown; of one, step_2 takes 4 GPUs"
    assert "--node gpus=N" in note.hint
    assert (note.severity, note.line) == ("warning", 16)
    assert size([group("w", 4, STEP_1)], Node(cores=36)).notes == ()
    # Several unknowns are one question.
    (note,) = size(example(), None).notes
    assert "how many cores and how many GPUs a node has is unknown" in note.message
    assert "--node cores=N,gpus=N" in note.hint


@pytest.mark.parametrize(("mode", "nodes"), [("exclusive", 10), ("packed", 5), ("certain", 6)])
def test_a_mode_is_obeyed(mode: str, nodes: int):
    """The answer of the mode that is asked for is taken."""
    found = size(example(), SMALL, mode=mode)
    assert (found.mode, found.nodes) == (mode, nodes)


def test_nodes_that_are_written_stand():
    """They are taken, and a warning says where the sizing disagrees, either way."""
    found = size(example(), SMALL, given=8)
    assert (found.mode, found.nodes) == ("given", 8)
    assert "written as 8 nodes, but 5 nodes (packed)" in found.notes[0].message
    assert "idle" in found.notes[0].message
    assert "wait" in size(example(), SMALL, given=4).notes[0].message
    assert size(example(), SMALL, given=5).notes == ()
    assert size(example(), SMALL, mode="certain", given=6).notes == ()


def test_workers_none_of_whose_steps_is_sized_take_the_nodes_that_are_written():
    """They start all the same; only how many nodes they take can't be told by anybody else."""
    found = size([group("w", 2)], LASSEN, given=3)
    assert (found.mode, found.nodes, set(found.sizes.values())) == ("given", 3, {None})
    with pytest.raises(LaunchError, match="none of their steps is sized") as caught:
        size([group("w", 2)], LASSEN)
    assert caught.value.problems[0].hint == "say the nodes: --nodes N"
    with pytest.raises(LaunchError, match="no worker to launch"):
        size([group("w", 0, STEP_1)], LASSEN, given=3)


def test_steps_that_nobody_can_read_make_no_answer_exact():
    """They count for nothing beside those that are sized, which a warning says by their names."""
    whole, part = example()
    part = part._replace(unread=("odd", "even"))
    found = size([whole, part, group("w", 0), group("x", 1)._replace(unread=("odd",))], SMALL)
    assert found.nodes == 5
    assert {each.exact for each in found.sizes.values() if each} == {False}
    assert {each.unread for each in found.sizes.values() if each} == {("odd", "even")}
    (note,) = found.notes
    assert "what tasks of odd and even take can't be told" in note.message
    assert note.severity == "warning"
    # Of a group without workers there is nothing to be told.
    assert size([whole, part._replace(number=0)], SMALL).notes == ()


def test_all_tasks_that_fit_nowhere_are_refused_at_once():
    """Each with its step, its line, what it needs, what a node has, and what helps."""
    groups = [
        group("a", 1, Demand("wide", cores=40, line=3), STEP_1),
        group("b", 1, Demand("gpu", cores=1, gpus=8, line=5)),
        group("c", 1, inside("in", cores=37)),
    ]
    with pytest.raises(LaunchError) as raised:
        size(groups, LASSEN)
    wide, gpu, held = raised.value.problems
    assert (wide.line, gpu.line, held.line) == (3, 5, 30)
    assert wide.message == "a task of wide takes 40 cores, and no node has more than 36 cores"
    assert "no node has more than 4 GPUs" in gpu.message
    assert "--node gpus=N" in gpu.hint
    assert "a worker of c holds" in held.message


def test_a_task_of_more_nodes_than_are_given_is_refused():
    """It could never run."""
    with pytest.raises(LaunchError, match=r"takes 2 nodes, and the allocation has 1"):
        size(example(), SMALL, given=1)


def test_what_cannot_be_told_names_the_option_that_tells_it():
    """A mode that needs facts of the node, or tasks to count, is refused without them."""
    with pytest.raises(LaunchError, match=r"--node cores=N,gpus=N"):
        size(example(), None, mode="packed")
    with pytest.raises(LaunchError, match=r"--node cores=N"):
        size([group("w", 3, inside("s"))], None)
    with pytest.raises(LaunchError, match=r"--mode packed"):
        size(example(), SMALL, mode="useful")
    with pytest.raises(LaunchError, match=r"no worker"):
        size([group("w", 0, STEP_1)], SMALL)


def test_the_answer_explains_itself():
    """Group by group, step by step, then what it takes, in sentences."""
    sizes = size(example(), SMALL).sizes
    assert sizes["packed"] is not None
    assert sizes["packed"].why == (
        "step_1_workers: 4 x step_1: 2 nodes x 4 cores",
        "step_2_workers: 2 x step_2: 1 core and 4 GPUs",
        "all at once: 34 cores of 40 and 8 GPUs of 20 on 5 nodes; fewer won't do",
    )
    assert sizes["exclusive"] is not None
    assert sizes["exclusive"].why == (
        "step_1_workers: 4 x 2 nodes (step_1) = 8",
        "step_2_workers: 2 x 1 node (step_2) = 2",
        "8 + 2 = 10 nodes",
    )
    assert sizes["certain"] is not None
    assert "no room for step_1 on 4 nodes" in sizes["certain"].why[0]


@pytest.mark.parametrize(
    ("groups", "node", "given", "told"),
    [
        ([group("w", 10**7, STEP_1)], SMALL, None, "10000000 workers are more than can be started"),
        ([group("w", 10**7, STEP_1)], None, 4, "10000000 workers are more than can be started"),
        ([group("w", 10**7)], None, 4, "10000000 workers are more than can be started"),
        ([group("w", 2, STEP_1)], SMALL, 10**30, f"{10**30} nodes are more than any machine has"),
        ([group("w", 2, STEP_1)], None, 10**9, "1000000000 nodes are more than any machine has"),
        ([group("w", 3, Demand("s", 10**5))], None, None, "300000 nodes are more than any machine"),
        ([group("w", 2, Demand("s", 10**7))], SMALL, None, "a task of s takes 10000000 nodes"),
        ([group("w", 2, STEP_1)], Node(10**9, 4), None, "no node has 1000000000 cores"),
        ([group("w", 2, STEP_1)], Node(8, 10**9), None, "no node has 1000000000 GPUs"),
    ],
)
def test_more_than_any_machine_has_is_refused_at_once(
    groups: list[WorkerGroup], node: Node | None, given: int | None, told: str
):
    """Nothing is worked out for what a slip of the hand asks for: that would take for ever."""
    with pytest.raises(LaunchError) as error:
        size(groups, node, given=given)
    assert [told in problem.text for problem in error.value.problems] == [True]


def test_workers_that_hold_and_have_no_room_are_refused():
    """They keep what they hold until they end, so that no waiting helps; others' tasks wait."""
    holding = [group("h", 9, inside("s")), group("w", 2, STEP_1)]
    with pytest.raises(
        LaunchError, match="9 h hold what their tasks take from their start on: that is not on 1"
    ) as told:
        size(holding[:1], SMALL, given=1)
    assert "--nodes 2 or more" in str(told.value)
    assert size(holding[:1], SMALL, given=2).nodes == 2
    assert size(holding, SMALL, given=2).nodes == 2
    assert size(holding[:1], None, given=1).nodes == 1
