"""The markers a test may carry."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "service: starts a real server or tool from outside Python")
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
