from __future__ import annotations

import os
from importlib.metadata import version


def test_the_taskgraph_under_test_is_the_one_asked_for():
    """`make test` promises certain Taskgraph versions; each environment really holds its own."""
    installed = version("taskcluster-taskgraph")
    assert installed == os.environ.get("EXPECTED_TASKGRAPH", installed)
    assert int(installed.split(".")[0]) >= 15
