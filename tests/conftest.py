"""The markers a test may carry, and how property tests run: by no clock, and in CI by no chance."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from merlin_services import MerlinServices
    from slurm_cluster import SlurmCluster

# A busy machine is no fault: Hypothesis would fail an example that takes over 200 ms.
# What a new example finds is found at a desk, not in the way of somebody else's change.
settings.register_profile(
    "ours", parent=settings.default, deadline=None, derandomize=os.environ.get("CI") == "true"
)
settings.load_profile("ours")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the scripts of tests/data/launch anew"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "service: starts a real server or tool from outside Python")
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
    config.addinivalue_line(
        "markers", "once: not about the version of Python, so the newest alone runs it"
    )
    # Whoever starts the tests by nohup has HUP ignored, and so would have every script here.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


#: Modules whose tests take long for what they prove, which the version of Python does not change.
_ONCE = frozenset(
    (
        *("test_against_brute", "test_faults_kill", "test_faults_soak", "test_plan_page"),
        *("test_how_to", "test_how_to_dispatch", "test_tutorial"),
    )
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs a real Slurm or Merlin takes long, and is not about this Python.

    The same goes for what is killed at random, and what is compared with trying everything.
    """
    for item in items:
        servers = not {"slurm_session", "merlin_session"}.isdisjoint(
            getattr(item, "fixturenames", ())
        )
        if servers or item.path.stem in _ONCE:
            item.add_marker("once")


@pytest.fixture(scope="session")
def slurm_session() -> Iterator[SlurmCluster]:
    """A real Slurm, one for each process that runs tests; a test takes `slurm` instead."""
    from slurm_cluster import slurm_cluster

    with slurm_cluster() as cluster:
        yield cluster


@pytest.fixture
def slurm(slurm_session: SlurmCluster) -> Iterator[SlurmCluster]:
    """Return a real Slurm without jobs; those of the test are gone after it."""
    yield slurm_session
    slurm_session.clear()


@pytest.fixture(scope="session")
def merlin_session() -> Iterator[MerlinServices]:
    """A real Merlin and its Redis, for each process that runs tests; a test takes `merlin`."""
    from merlin_services import merlin_services

    with merlin_services() as services:
        yield services


@pytest.fixture
def merlin(merlin_session: MerlinServices) -> Iterator[MerlinServices]:
    """Return a real Merlin with empty queues."""
    merlin_session.clear()
    yield merlin_session
    merlin_session.clear()


@pytest.fixture
def site_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A distribution that registers two schedulers, of which one can't be loaded; its folder."""
    info = tmp_path / "site_scheduler-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: site-scheduler\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[taskgraph_workers.schedulers]\n"
        "condor = site_scheduler:CONDOR\n"
        "broken = site_scheduler:NOTHING\n"
        "slurm = site_scheduler:NOTHING\n"
    )
    (tmp_path / "site_scheduler.py").write_text("class CONDOR:\n    name = 'condor'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("site_scheduler", None)
