"""Projects to run the command on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.graph.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return an empty project; a test writes what it needs."""
    return Project(tmp_path)
