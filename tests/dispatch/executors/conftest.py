"""A bench for jobs that run on this machine, and for those in containers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import local_jobs
import pytest
from engine_jobs import Engine


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[local_jobs.Bench]:
    """Return a folder of state, a trainer and its executor; nothing of it runs afterwards."""
    with local_jobs.bench(tmp_path) as made:
        yield made


@pytest.fixture(params=["podman", "docker"])
def engine(bench: local_jobs.Bench, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Return an engine that is alone in PATH; what runs in it ends with the test."""
    made = Engine(bench, request.param)
    yield made
    if not bench.go.exists():
        made.go()
