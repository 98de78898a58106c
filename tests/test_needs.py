from __future__ import annotations

from pathlib import Path

import pytest

from needs import needs


@pytest.fixture
def empty_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    return tmp_path


def test_a_tool_that_is_there_is_found(empty_path: Path):
    """The path of an executable on PATH comes back."""
    tool = empty_path / "frobnicate"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert needs("frobnicate") == str(tool)


@pytest.mark.usefixtures("empty_path")
@pytest.mark.parametrize("ci", ["", "false"])
def test_a_missing_tool_skips_with_a_reason(ci: str, monkeypatch: pytest.MonkeyPatch):
    """At a desk a test without its tool is skipped, and says for want of what."""
    monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.skip.Exception, match="frobnicate is not installed"):
        needs("frobnicate")


@pytest.mark.usefixtures("empty_path")
def test_a_missing_tool_fails_on_ci(monkeypatch: pytest.MonkeyPatch):
    """On CI a missing tool is a failure, since a skip would go unseen."""
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="frobnicate is not installed"):
        needs("frobnicate")
