"""Every size against one that is found by trying everything."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from taskgraph_workers.launch.model import Size, Stage, WorkerGroup
from taskgraph_workers.launch.size import size
from taskgraph_workers.launch.size.answers import certain_size, packed_size
from taskgraph_workers.machines import Node
from tests.launch.size import brute
from tests.launch.size.making import cases


def capacity(node: Node) -> tuple[int, ...]:
    return (node.cores or 0, node.gpus or 0, node.memory_mib or 0)


@settings(max_examples=250)
@given(cases())
def test_packed_is_what_trying_everything_finds(case: tuple[list[WorkerGroup], Node]):
    """The smallest number of nodes on which every mixture has a placement, and known to be."""
    groups, node = case
    found = packed_size(groups, node)
    assert (found.nodes, found.exact) == (brute.packed(brute.plain(groups), capacity(node)), True)


@settings(max_examples=250)
@given(cases())
def test_certain_is_what_trying_everything_finds(case: tuple[list[WorkerGroup], Node]):
    """The smallest number of nodes on which no order of arrival makes a task wait."""
    groups, node = case
    found = certain_size(groups, node, packed_size(groups, node))
    assert (found.nodes, found.exact) == (brute.certain(brute.plain(groups), capacity(node)), True)


@settings(max_examples=60)
@given(cases(workers=3))
def test_tasks_that_end_make_no_difference(case: tuple[list[WorkerGroup], Node]):
    """With tasks that come and go in any order, the same number is the smallest."""
    groups, node = case
    least = brute.certain(brute.plain(groups), capacity(node))
    for nodes in {max(least - 1, 1), min(least, 4)}:
        waits = brute.waits_with_ends(brute.plain(groups), capacity(node), nodes)
        assert waits == (nodes < least)


@settings(max_examples=150)
@given(cases(workers=4), st.data())
def test_useful_is_what_trying_everything_finds(
    case: tuple[list[WorkerGroup], Node], data: st.DataObject
):
    """No mixture has more tasks of a step than its stage has; the worst stage counts."""
    groups, node = case
    steps = sorted({demand.step for group in groups for demand in group.demands})
    counts = st.dictionaries(st.sampled_from(steps), st.none() | st.integers(0, 3), min_size=1)
    stages = tuple(Stage(tasks) for tasks in data.draw(st.lists(counts, min_size=1, max_size=2)))
    found = size(groups, node, stages).sizes["useful"]
    expected = max(worst_of(groups, node, stage, stages) for stage in stages)
    assert found is not None
    assert (found.nodes, found.exact) == (max(expected, 1), True)


def worst_of(groups: list[WorkerGroup], node: Node, stage: Stage, stages: tuple[Stage, ...]) -> int:
    placed = {step for each in stages for step in each.tasks}
    idle = None
    each = [(*group.demands, idle) for group in groups for _ in range(group.number)]
    worst = 0
    for chosen in set(product(*each)):
        tasks = [demand for demand in chosen if demand is not None]
        for step in {demand.step for demand in tasks} & placed:
            most = stage.tasks.get(step, 0)
            if most is not None and sum(demand.step == step for demand in tasks) > most:
                break
        else:
            if tasks:
                wanted = tuple(sorted(map(brute.task, tasks), reverse=True))
                worst = max(worst, brute.fewest(wanted, capacity(node)))
    return worst


@settings(max_examples=100)
@given(cases(workers=8), st.data())
def test_one_worker_more_never_takes_fewer_nodes(
    case: tuple[list[WorkerGroup], Node], data: st.DataObject
):
    """Sizes grow with the numbers, and packed is never more than certain or exclusive."""
    groups, node = case
    at = data.draw(st.integers(0, len(groups) - 1))
    old = groups[at]
    more = [*groups]
    more[at] = WorkerGroup(old.name, old.number + 1, old.demands, old.command)
    before, after = size(groups, node).sizes, size(more, node).sizes
    for mode in ("exclusive", "packed", "certain"):
        assert nodes(before[mode]) <= nodes(after[mode])
    assert nodes(before["packed"]) <= nodes(before["certain"])
    assert nodes(before["packed"]) <= nodes(before["exclusive"])


def nodes(answer: Size | None) -> int:
    assert answer is not None
    return answer.nodes


@settings(max_examples=100)
@given(cases(workers=40))
def test_no_size_is_below_its_bounds(case: tuple[list[WorkerGroup], Node]):
    """All tasks of one kind per group: no axis is exceeded, and the widest task has its nodes."""
    groups, node = case
    found = packed_size(groups, node).nodes
    have = capacity(node)
    for chosen in product(*(group.demands for group in groups)):
        for axis in range(3):
            need = sum(
                group.number * demand.nodes * brute.task(demand)[1][axis]
                for group, demand in zip(groups, chosen)
            )
            assert need <= found * have[axis]
    assert found >= max(demand.nodes for group in groups for demand in group.demands)
