"""The markers a test may carry, and how property tests run: by no clock, and in CI by no chance."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
        "markers", "once: about programs from outside, so the newest Python alone runs it"
    )


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
