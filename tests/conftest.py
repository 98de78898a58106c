"""The markers a test may carry, and no clock in property tests."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A busy machine is no fault: Hypothesis would fail an example that takes over 200 ms.
settings.register_profile("no clock", parent=settings.default, deadline=None)
settings.load_profile("no clock")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "service: starts a real server or tool from outside Python")
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
