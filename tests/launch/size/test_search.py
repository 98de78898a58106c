"""The exhaustive search, on its own."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from taskgraph_workers.launch.size.kinds import Kind
from taskgraph_workers.launch.size.patterns import Load
from taskgraph_workers.launch.size.search import search
from taskgraph_workers.launch.size.work import Work
from tests.launch.size import brute

KIND = st.builds(Kind, st.sampled_from((1, 1, 2)), st.tuples(st.integers(1, 8), st.integers(0, 4)))


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(KIND, st.integers(1, 3)), min_size=1, max_size=3, unique_by=lambda each: each[0]
    )
)
def test_it_finds_a_way_where_there_is_one(tasks: list[tuple[Kind, int]]):
    """And none on one node less."""
    load = Load((8, 4), tuple(kind for kind, _ in tasks), tuple(count for _, count in tasks))
    each = ((kind.nodes, kind.need) for kind, count in tasks for _ in range(count))
    best = brute.fewest(tuple(sorted(each, reverse=True)), (8, 4))
    for nodes in range(max(best - 2, 0), best + 2):
        found = search(load, load.parts, nodes, None, Work(10**6))
        assert (found is None) == (nodes < best)
    assert found is not None
    assert sum(times for _, times in found) <= best + 1
