"""What other packages offer, on any supported Python."""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from taskgraph_workers.errors import ConfigError, WorkersError
from taskgraph_workers.offered import load, offered


def test_points_of_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Those of the group alone, not loaded, and nothing is said to be out of date."""
    info = tmp_path / "theirs-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[some.group]\nvms = absent:make\n[other]\nx = y:z\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = offered("some.group")
        assert offered("none.at.all") == []
    assert [(each.name, each.value) for each in found] == [("vms", "absent:make")]


def test_what_a_point_leads_to():
    """As it is, or called with what it is given."""
    assert load("thing", EntryPoint("pi", "math:pi", "g")) == 3.141592653589793
    assert load("thing", EntryPoint("root", "math:sqrt", "g"), 9.0) == 3.0


@pytest.mark.parametrize(
    ("value", "given", "why"),
    [
        ("absent:make", (), "No module named 'absent'"),
        ("math:absent", (), "no attribute 'absent'"),
        ("math:sqrt", (-1.0,), "math domain error|nonnegative"),
    ],
)
def test_what_can_not_be_loaded(value: str, given: tuple[float, ...], why: str):
    """Is told with whose it is, and why, as the error that its user expects."""
    with pytest.raises(ConfigError, match=rf"^thing 'x' \({value}\) can't be loaded: .*({why})"):
        load("thing", EntryPoint("x", value, "g"), *given, error=ConfigError)


def test_words_of_who_was_given_a_secret_are_not_repeated():
    """Only what went wrong, and what may be shown."""
    point = EntryPoint("x", "builtins:int", "g")
    with pytest.raises(WorkersError) as raised:
        load("broker", point, "me:hunter2@there", shown="me:***@there")
    told = "broker 'x' (builtins:int) can't be loaded: ValueError, for me:***@there"
    assert str(raised.value) == told
