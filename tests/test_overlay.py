"""Values laid over one another. What is laid, and in which order: tests/test_resolve.py."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from placing import change, story

from taskgraph_workers.model import Context, Value
from taskgraph_workers.overlay import Overlay, over

VALUES = st.integers(0, 9).map(lambda number: Value(number, f"source {number}", ()))
TABLES = st.dictionaries(st.sampled_from("xyz"), VALUES)


@given(TABLES, TABLES, TABLES)
def test_it_does_not_matter_what_is_laid_first(a, b, c):
    """Values and what they overrode are the same from the top down and from the bottom up."""
    assert over(over(a, b), c) == over(a, over(b, c))


@given(TABLES, TABLES)
def test_both_ways_of_laying_agree(a, b):
    """Changes laid one after the other tell the story that their values laid over do."""
    overlay = Overlay(Context())
    for source, table in (("a", a), ("b", b)):
        env = {name: value.value for name, value in table.items()}
        overlay.lay(source, change({"env": env}))
    told = {name: story(value) for name, value in overlay.env.items()}
    assert told == {name: story(value) for name, value in over(a, b).items()}
