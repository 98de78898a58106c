"""Few keys for many names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers import match
from taskgraph_workers.adopt.patterns import cover, exactly


@pytest.mark.parametrize(
    ("names", "others", "keys"),
    [
        (["a"], ["ab"], ["a"]),
        (["gpu-4", "gpu-4-1tb"], ["gpu", "cpu-4"], ["gpu-4.*"]),
        (["x-gpu", "y-gpu"], ["x-cpu"], [".*-gpu"]),
        (["b-x-gpu", "b-y-gpu"], ["b-cpu", "a-gpu"], ["b-.*-gpu"]),
        (["b-gpu-x", "c-gpu-y"], ["b-cpu-x", "gpu"], [".*-gpu-.*"]),
        # What an over-broad pattern would match stays exact.
        (["gpu-4", "gpu-4-1tb", "gpu-4-2tb"], ["gpu-4-3tb"], ["gpu-4", "gpu-4-1tb", "gpu-4-2tb"]),
        (["a-1", "a-2", "b-1", "b-2", "c"], ["d"], ["a-.*", "b-.*", "c"]),
        (["a", "b"], ["c"], ["a", "b"]),
    ],
)
def test_keys_that_people_can_read(names: list[str], others: list[str], keys: list[str]):
    """The common beginning, else the end, both, or the middle; never more than asked for."""
    assert [key for key, _ in cover(names, others)] == keys


def test_patterns_that_are_written_already_come_first():
    """A project's own pattern is kept where it is right, and not where it is too broad."""
    assert cover(["gpu-1", "gpu-4"], ["cpu"], ["g.*"]) == [("g.*", ("gpu-1", "gpu-4"))]
    assert [key for key, _ in cover(["gpu-1", "gpu-4"], ["gx"], ["g.*"])] == ["gpu-.*"]


def test_a_name_that_is_a_pattern_for_others():
    """A dot in a name would match any character; it is escaped where that matters."""
    assert exactly("b.x", ["b.x", "b-y"]) == "b.x"
    assert exactly("b.x", ["b-x"]) == r"b\.x"
    assert exactly("c+", []) == "c+"
    assert exactly("c[", []) == r"c\["


NAMES = st.text("ab-.+", min_size=1, max_size=5)


@given(st.lists(NAMES, min_size=1, max_size=7, unique=True), st.sets(NAMES, max_size=7))
def test_names_are_matched_once_and_others_never(names: list[str], others: set[str]):
    """Whatever the names: each is found by one key, and no other name by any."""
    others -= set(names)
    found = cover(names, others)
    table = {key: matched for key, matched in found}
    assert len(table) == len(found)
    assert sorted(name for matched in table.values() for name in matched) == sorted(names)
    for key, matched in found:
        assert len(matched) == 1 or all(match.matches(key, name) for name in matched)
    for name in names:
        keys = [key for key in table if key == name] or [k for k in table if match.matches(k, name)]
        assert [name in table[key] for key in keys] == [True]
    assert not any(match.matches(key, other) for key in table for other in others)
