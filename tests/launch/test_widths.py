from __future__ import annotations

import itertools
import sys
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needs import lacking
from taskgraph_workers.launch.model import LaunchError
from taskgraph_workers.launch.widths import widest

if find_spec("scipy") is None:
    lacking("SciPy is not installed")

Edges = list[tuple[str, str]]


def before(edges: Edges) -> set[tuple[str, str]]:
    """Every pair of which the one has to wait for the other."""
    pairs = set(edges)
    while True:
        more = {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs
        if not more:
            return pairs
        pairs |= more


def brute(labels: list[str], edges: Edges) -> int:
    """The same, by trying every set."""
    waits = before(edges)
    return max(
        size
        for size in range(len(labels) + 1)
        for some in itertools.combinations(labels, size)
        if not any(pair in waits for pair in itertools.permutations(some, 2))
    )


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], Edges]:
    """Some of the tasks of a small graph without cycles, and its edges."""
    names = draw(st.permutations("abcdefgh"))
    pairs = list(itertools.combinations(names, 2))
    edges = draw(st.lists(st.sampled_from(pairs)))
    return sorted(draw(st.sets(st.sampled_from(names)))), edges


@given(graphs())
def test_it_is_the_largest_set(graph: tuple[list[str], Edges]):
    """As many as trying every set finds, and no task of it waits for another, even through others
    that are not counted.
    """
    labels, edges = graph
    found = widest(labels, edges)
    assert len(found) == brute(labels, edges)
    assert set(found) <= set(labels)
    assert not before(edges) & set(itertools.permutations(found, 2))


def test_tasks_wait_through_others():
    """A chain through a task of another pool is a chain."""
    edges = [("second", "other"), ("other", "first"), ("third", "second")]
    assert len(widest(["first", "second", "third"], edges)) == 1
    assert len(widest(["first", "second", "third", "free"], edges)) == 2


def test_many_chains_may_pass_through_one_task():
    """Tasks around one that all wait for, or that waits for all, run before it or after it."""
    first = [f"first-{n}" for n in range(5)]
    last = [f"last-{n}" for n in range(7)]
    edges = [("join", label) for label in first] + [(label, "join") for label in last]
    assert widest(first + last, edges) == tuple(last)


def test_levels_are_not_the_answer():
    """Tasks at different distances from the start can run at the same time."""
    edges = [("b", "a"), ("c", "b"), ("z", "a"), ("y", "z"), ("y2", "z")]
    assert widest(["b", "y", "y2"], edges) == ("b", "y", "y2")


def test_a_graph_without_its_tasks_has_no_width():
    """No tasks to count, or no edges, is an answer, too."""
    assert widest([], [("a", "b")]) == ()
    assert widest(["b", "a"], []) == ("a", "b")


def test_an_edge_may_be_said_twice():
    """Taskgraph may name one dependency twice, under two names."""
    assert len(widest(["a", "b"], [("b", "a")] * 100_000)) == 1


@pytest.mark.parametrize("hidden", ["scipy", "scipy.sparse.csgraph"])
def test_scipy_is_asked_for_by_the_name_of_the_extra(hidden: str, monkeypatch: pytest.MonkeyPatch):
    """Without SciPy one error says what to install, or what to write instead."""
    monkeypatch.setitem(sys.modules, hidden, None)
    with pytest.raises(LaunchError) as raised:
        widest(["a"], [])
    assert "number: auto needs SciPy" in str(raised.value)
    assert "hint: pip install 'taskgraph-workers[widths]'; or write the number" in str(raised.value)
