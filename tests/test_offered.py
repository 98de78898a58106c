"""What other packages offer, on any supported Python."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from taskgraph_workers.offered import offered


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
