"""Projects to run the command on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from launch_inputs import LAB, SPEC, Done
from taskgraph_workers.cli import main
from tests.graph.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return an empty project; a test writes what it needs."""
    return Project(tmp_path)


@pytest.fixture
def launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """The command, in a folder with a spec and a cluster, on a machine without a scheduler."""
    (tmp_path / "demo.yaml").write_text(SPEC, "utf-8")
    (tmp_path / "lab.yml").write_text(LAB, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("COLUMNS", "80")

    def launch(*words: object) -> Done:
        code = main(["launch", *map(str, words)])
        return Done(code, *capsys.readouterr())

    return launch
