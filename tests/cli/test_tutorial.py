"""The tutorial (docs/tutorials/first-profile.md), done from its first line to its last."""

from __future__ import annotations

from pathlib import Path

from tests.pages import TUTORIAL, Reader


def test_the_tutorial(tmp_path: Path):
    """Each file is written, each command typed, and prints what the page shows."""
    folder = tmp_path / "desk"
    folder.mkdir()
    reader = Reader(folder)
    reader.follow(TUTORIAL)
    assert (reader.here / "plan.html").read_text("utf-8").startswith("<!doctype html>")
