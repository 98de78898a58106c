from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dispatching import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "state")
    yield made
    made.close()
