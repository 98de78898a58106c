"""The most tasks at once, against giving every task to every worker."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from taskgraph_workers.launch.size.flow import most_tasks


@settings(max_examples=300)
@given(st.data())
def test_it_is_the_most_there_can_be(data: st.DataObject):
    """Also where tasks have to be given back so that another group can run them."""
    numbers = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=3))
    groups = st.lists(st.sampled_from(range(len(numbers))), min_size=1, unique=True)
    lots = data.draw(st.lists(st.tuples(st.integers(1, 3), groups), min_size=1, max_size=3))
    workers = [
        [-1, *(lot for lot, (_, runs) in enumerate(lots) if group in runs)]
        for group, number in enumerate(numbers)
        for _ in range(number)
    ]
    best = max(
        sum(lot >= 0 for lot in chosen)
        for chosen in product(*workers)
        if all(chosen.count(lot) <= most for lot, (most, _) in enumerate(lots))
    )
    assert most_tasks(numbers, lots) == best


def test_tasks_are_given_back_along_a_chain():
    """Each lot first takes the group that the next one can't do without."""
    lots = [(2, [0, 1]), (2, [0, 2]), (2, [0])]
    assert most_tasks([2, 2, 2], lots) == 6
    assert most_tasks([3, 1, 1], [(2, [0, 1]), (2, [0, 2]), (2, [0])]) == 5


def test_a_task_is_given_back_once():
    """The first lot's only task leaves the group for the second lot; the third finds none there."""
    assert most_tasks([1, 1, 1], [(1, [0, 1, 2]), (1, [0]), (1, [0])]) == 2
