"""Values that differ by context, as Taskgraph's own YAML says them."""

from __future__ import annotations

from typing import Any

import pytest

from taskgraph_workers.keyed import keyed_in
from taskgraph_workers.model import Choice, Context, Keyed


@pytest.mark.parametrize(
    "raw",
    [
        "b-gpu",
        None,
        {},
        {"by-platform": {"linux": "b-cpu"}},
        {"by-level": "b-cpu"},
        {"by-level": {"1": "a"}, "by-kind": {"train": "b"}},
        {7: {"1": "a"}},
    ],
)
def test_what_is_keyed_by_nothing_we_know_stays_as_it_is(raw: Any):
    """What Taskgraph or the project is to read is handed on."""
    assert keyed_in(raw) is raw


def test_branches_are_keyed_too():
    """At whatever depth, by what may be asked for, and with text for keys."""
    raw = {"by-level": {3: {"by-kind": {"train": "a"}}, "default": "b"}}
    inner = Keyed("kind", {"train": "a"})
    assert keyed_in(raw) == Keyed("level", {"3": inner, "default": "b"})
    assert keyed_in(raw, ("level",)).choices["3"] == raw["by-level"][3]
    read = keyed_in(raw, ("level",), lambda leaf: leaf if isinstance(leaf, str) else None)
    assert read == Keyed("level", {"3": None, "default": "b"})


def test_a_context_under_a_choice_has_its_profile():
    """The profile of an earlier choice is left behind."""
    context = Context(level="3", profile="spot")
    assert context.under(Choice("standard")) == Context(level="3", profile="standard")
    assert context.under(Choice()).get("profile") is None
