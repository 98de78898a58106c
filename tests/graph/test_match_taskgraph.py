"""`match` repeats a rule of Taskgraph's: held together here, on every Taskgraph supported."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from taskgraph.util.attributes import keymatch
from taskgraph.util.keyed_by import evaluate_keyed_by

from taskgraph_workers.match import Ambiguous, find, one

# Python warns of patterns that may one day mean something else.
pytestmark = pytest.mark.filterwarnings("ignore:Possible:FutureWarning")

# Names and patterns over few letters, so that they meet; some keys are no valid pattern.
NAMES = st.text("ab-.\n", max_size=5) | st.sampled_from(["default", "a+", "a|b", "(", "b-a|ab"])
KEYS = NAMES | st.text("ab-.*+?|()[]^$\\", max_size=6)


def outcome(function, *arguments):
    """Return what a call gives, or the type of the error that a bad pattern makes it raise."""
    try:
        return function(*arguments)
    except re.error as error:
        return type(error)


@given(st.lists(KEYS, unique=True, max_size=6), NAMES)
@example(["a|b"], "ab")
@example(["a"], "a\n")
@example(["("], "a")
def test_the_same_keys_match(keys: list[str], name: str):
    """For any table and name, `find` gives the keys whose values Taskgraph's keymatch gives."""
    table = {key: key for key in keys}
    found = outcome(find, table, name)
    assert (list(found) if isinstance(found, tuple) else found) == outcome(keymatch, table, name)


def branch(table: dict[str, str], name: str) -> str | None:
    """Return the branch that Taskgraph takes, None for no branch, "clash" where two would do."""
    try:
        return evaluate_keyed_by({"by-name": table}, "the value", {"name": name})
    except Exception as refusal:  # Taskgraph raises no narrower one.
        return "clash" if "Multiple matching values" in str(refusal) else None


@given(
    st.lists(st.sampled_from(["a", "[ab]", "b|c", ".", "default"]), unique=True, min_size=1),
    st.sampled_from("abcd"),
)
def test_the_same_branch_holds(keys: list[str], name: str):
    """`one` names the key whose branch Taskgraph takes, and refuses what Taskgraph refuses."""
    # Taskgraph refuses a table that holds nothing but a default before it looks at the name.
    assume(keys != ["default"])
    table = {key: key for key in keys}
    try:
        found = one(table, name)
    except Ambiguous:
        found = "clash"
    assert found == branch(table, name)
