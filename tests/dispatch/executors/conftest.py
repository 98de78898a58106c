"""A bench for jobs that run on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import local_jobs
import pytest


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[local_jobs.Bench]:
    """Return a folder of state, a trainer and its executor; nothing of it runs afterwards."""
    with local_jobs.bench(tmp_path) as made:
        yield made
