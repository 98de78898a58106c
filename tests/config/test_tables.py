"""Quick look-ups."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers import match
from taskgraph_workers.config.names import is_plain
from taskgraph_workers.config.tables import Table

NAMES = ["b-gpu", "b-gpu-4", "b.gpu", "gpu", "default", "b-g", ""]
KEYS = [*NAMES, "b-gpu|gpu", "b-[g]pu", "b-.*", ".*", "b-gp?", "(b-gpu)", "b-gpu$", "^b-g"]


@given(st.sets(st.sampled_from(KEYS)), st.sampled_from(NAMES))
def test_it_finds_the_same(keys: set[str], name: str):
    """Whatever the keys, a quick table finds those that the table itself finds."""
    table = dict.fromkeys(sorted(keys), 0)
    assert match.find(Table(table), name) == match.find(table, name)


def test_it_looks_at_few_keys():
    """Keys that match only themselves are not tried on every name."""
    keys = [f"b-{number}" for number in range(1000)]
    assert list(Table(dict.fromkeys([*keys, "b-.*"], 0))) == ["b-.*"]


@pytest.mark.parametrize(
    ("key", "plain"),
    [
        ("b-gpu", True),
        ("b.gpu", True),
        ("own/name", True),
        ("b-.*", False),
        ("a|b", False),
        ("default", False),
        (8, False),
        (None, False),
    ],
)
def test_what_is_a_name(key: object, plain: bool):
    """A key without a character of regular expressions is a name that tasks can ask for."""
    assert is_plain(key) is plain
