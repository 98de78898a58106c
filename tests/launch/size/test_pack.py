"""How one mixture is packed, and that what is said to hold it does."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from taskgraph_workers.launch.size.kinds import Kind
from taskgraph_workers.launch.size.pack import pack
from taskgraph_workers.launch.size.patterns import Load
from taskgraph_workers.launch.size.work import Work

KIND = st.builds(
    Kind, st.sampled_from((1, 1, 2, 3)), st.tuples(st.integers(1, 36), st.integers(0, 4))
)


@settings(max_examples=150)
@given(
    st.lists(st.tuples(KIND, st.integers(0, 60)), min_size=1, max_size=4, unique_by=lambda k: k[0])
)
def test_a_packing_holds_its_load(tasks: list[tuple[Kind, int]]):
    """No axis is exceeded, parts of one task can be on different nodes, and no part is left."""
    load = Load((36, 4), tuple(kind for kind, _ in tasks), tuple(count for _, count in tasks))
    packing = pack(load, Work(20_000))
    held = [0] * len(tasks)
    for pattern, times in packing.runs:
        for at, (_, count) in enumerate(tasks):
            assert pattern[at] <= count
            held[at] += times * pattern[at]
        for axis, have in enumerate(load.capacity):
            assert sum(n * kind.need[axis] for n, (kind, _) in zip(pattern, tasks)) <= have
    assert all(have >= part for have, part in zip(held, load.parts))
    assert packing.lower <= packing.nodes


def test_first_fit_is_beaten():
    """Largest first leaves a third node to 3 + 3 + 2 and 4 + 2 + 2 cores of 8."""
    kinds = (Kind(1, (4,)), Kind(1, (3,)), Kind(1, (2,)))
    packing = pack(Load((8,), kinds, (1, 2, 3)), Work(1000))
    assert (packing.lower, packing.nodes) == (2, 2)


def test_a_proof_takes_a_search():
    """No bound shows that three times 5 + 5 of 9 and their like take a node each."""
    kinds = (Kind(1, (5, 1)), Kind(1, (1, 5)), Kind(1, (4, 4)))
    packing = pack(Load((9, 9), kinds, (3, 3, 3)), Work(10_000))
    assert packing.lower == packing.nodes
