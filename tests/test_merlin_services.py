from __future__ import annotations

import time
from pathlib import Path

import pytest

from merlin_services import MerlinServices

pytestmark = pytest.mark.service

# A step of its own chain link: celery 5.7 would never run the second one.
SPEC = """\
description: {name: two, description: Two steps}
batch: {type: local}
env: {variables: {OUTPUT_PATH: ./studies}}
study:
- {name: first, description: First, run: {cmd: touch done, task_queue: q}}
- {name: second, description: Second, run: {cmd: touch done, depends: [first], task_queue: q}}
merlin: {resources: {workers: {them: {args: -l INFO, steps: [all]}}}}
"""


def test_a_study_runs(merlin: MerlinServices, tmp_path: Path):
    """A worker is seen by its name, and runs the steps of a study, in a chain, too."""
    merlin.start_worker("them.j1.0.node1", "q")
    (tmp_path / "spec.yaml").write_text(SPEC)
    merlin.merlin("run", "spec.yaml", cwd=tmp_path)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("studies/*/*/done"))) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert merlin.workers(tmp_path) == ["them.j1.0.node1"]
    assert merlin.waiting("q") == 0
