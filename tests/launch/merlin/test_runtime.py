"""How a script knows that the work is done, asked of a real Merlin."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from merlin_services import MerlinServices
from taskgraph_workers.launch.merlin.ask import ask
from taskgraph_workers.launch.merlin.options import Options
from taskgraph_workers.launch.merlin.read import read_spec

pytestmark = [pytest.mark.service, pytest.mark.once]

SPEC = """\
description: {name: study, description: three tasks}
env: {variables: {SLEEP: 9, OUTPUT_PATH: ./studies}}
global.parameters:
  P: {values: [1, 2, 3], label: P.%%}
study:
- {name: step, description: d, run: {cmd: sleep $(SLEEP); touch ../../../done.$(P), task_queue: q}}
merlin:
  resources:
    workers:
      one: {args: --concurrency 1, steps: [step]}
"""


def until(folder: Path, variables: dict[str, str]) -> str:
    file = folder / "my spec.yaml"
    file.write_text(SPEC)
    command = ask(read_spec(str(file), variables), Options(variables=variables, monitor_s=1)).until
    assert command is not None
    return command


def run(command: str, services: MerlinServices, folder: Path) -> int:
    env = {**os.environ, **services.env}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, capture_output=True, timeout=100, check=False
    )
    return done.returncode


@pytest.fixture
def services(merlin: MerlinServices, tmp_path: Path) -> Iterator[MerlinServices]:
    """A real Merlin, whose workers are gone afterwards."""
    yield merlin
    merlin.merlin("stop-workers", cwd=tmp_path)
    wait(lambda: not merlin.workers(tmp_path))


def wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
def test_the_work_is_done_when_all_tasks_are(services: MerlinServices, tmp_path: Path):
    """The command fails where there is no worker yet, and ends well once every task has run."""
    variables = {"SLEEP": "1"}
    command = until(tmp_path, variables)
    assert run(command, services, tmp_path) != 0
    services.merlin("run", "my spec.yaml", "--vars", "SLEEP=1", cwd=tmp_path)
    services.start_worker("one.j1.0.node", "q")
    assert run(command, services, tmp_path) == 0
    done = sorted(path.name for path in tmp_path.glob("studies/done.*"))
    assert done == ["done.1", "done.2", "done.3"]


def test_a_study_that_was_not_queued_counts_as_done(services: MerlinServices, tmp_path: Path):
    """With a worker and nothing to do the command ends well: who submits queues the study first."""
    services.start_worker("one.j2.0.node", "q")
    wait(lambda: bool(services.workers(tmp_path)))
    assert run(until(tmp_path, {}), services, tmp_path) == 0
