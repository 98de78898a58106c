from __future__ import annotations

import pickle
import re

import pytest

from taskgraph_workers.match import Ambiguous, any_matches, find, matches, one


def table(*keys: str) -> dict[str, None]:
    return dict.fromkeys(keys)


@pytest.mark.parametrize(
    ("keys", "name", "found"),
    [
        (("gpu", "g.*", "default"), "gpu", ("gpu",)),
        (("g.*", "default"), "gpu", ("g.*",)),
        (("gpu", "default"), "cpu", ("default",)),
        (("gpu", "g.*"), "cpu", ()),
        (("p.", "default"), "gpu", ("default",)),
        ((), "gpu", ()),
    ],
)
def test_exact_then_pattern_then_default(keys: tuple[str, ...], name: str, found: tuple[str, ...]):
    """The exact key hides the patterns, a pattern hides `default`, and there may be neither."""
    assert find(table(*keys), name) == found
    assert one(table(*keys), name) == (found[0] if found else None)


def test_every_pattern_is_found_in_order():
    """`find` gives each pattern that matches, in the order of the table."""
    assert find(table("gp.", "x", "g.*"), "gpu") == ("gp.", "g.*")


def test_two_patterns_are_an_error():
    """`one` refuses to choose, and says which patterns and which name."""
    with pytest.raises(Ambiguous) as caught:
        one(table("gp.", "g.*"), "gpu")
    assert (caught.value.name, caught.value.keys) == ("gpu", ("gp.", "g.*"))
    assert str(caught.value) == "'gp.' and 'g.*' both match 'gpu'"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "name", "matched"),
    [
        ("gpu", "gpu", True),
        ("gpu", "gpu-4", False),
        ("gpu", "b-gpu", False),
        ("gpu.*", "gpu-4", True),
        ("default", "gpu", False),
        ("c++", "c++", True),
    ],
)
def test_a_pattern_matches_the_name_from_end_to_end(pattern: str, name: str, matched: bool):
    """A single pattern matches as itself or as a whole; `default` means nothing special here."""
    assert matches(pattern, name) is matched
    assert any_matches(["nothing", pattern], name) is matched


def test_no_pattern_matches_nothing():
    """Of no patterns, none matches."""
    assert not any_matches([], "gpu")


def test_a_name_that_is_no_pattern_can_be_a_key():
    """A key that is asked for exactly is never compiled."""
    assert find(table("c++("), "c++(") == ("c++(",)
    with pytest.raises(re.error):
        find(table("c++("), "gpu")


def test_a_large_table_is_compiled_once(monkeypatch: pytest.MonkeyPatch):
    """No pattern is compiled a second time, though `re` itself would have dropped the first."""
    keys = table(*(f"name-{index}-.*" for index in range(1000)))
    assert find(keys, "other") == ()
    monkeypatch.setattr(re, "compile", None)
    monkeypatch.setattr(re, "match", None)
    assert find(keys, "name-7-x") == ("name-7-.*",)


def test_only_the_last_alternative_is_held_to_the_end():
    """As Taskgraph writes it, `a|b` is `a|b$`; parentheses hold both."""
    assert find(table("gpu|cpu"), "gpu-4") == ("gpu|cpu",)
    assert find(table("(gpu|cpu)"), "gpu-4") == ()
