"""The script where a scheduler starts Flux on its nodes: it runs twice, with stand-ins for both."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from scheduler_stand_in import WORKER, Run, StandIn, running, start
from taskgraph_workers.launch.script import Script, render
from taskgraph_workers.schedulers.base import Job
from taskgraph_workers.schedulers.slurm import SCHEDULER as SLURM

# Both take their options away, and run the rest.
SRUN = """#!/bin/bash
[ "$1" != --mpi=list ] || exit 0
while [ "$1" != flux ]; do shift; done
export INSIDE_OF_SRUN=yes
exec "$@"
"""
FLUX = """#!/bin/bash
shift
"$@"
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """PATH, with the stand-ins first."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("srun", SRUN), ("flux", FLUX)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def text(*starts: object, walltime_s: int | None = None, **fields: object) -> str:
    script = Script(Job(walltime_s=walltime_s), starts, every_s=0.2, **fields)  # type: ignore[arg-type]
    # The job's own functions have their names; Flux's would say otherwise.
    flux = StandIn(name="flux").shell.replace("echo 77", "echo inner").replace("requeued", "wrong")
    return render(
        script,
        StandIn(name="slurm", starts_flux=SLURM.starts_flux),
        StandIn(name="flux", shell=flux),
    )  # type: ignore[arg-type]


def ended(run: Run) -> tuple[int, int, str]:
    status, said = run.end()
    return status, sum(line.startswith("end") for line in run.log), said


def test_the_job_is_the_outer_one(tmp_path: Path, path: str):
    """Its id is the job's; what the lines of set-up set is there, and they run once."""
    setup = ("echo set-up >> log", "export FROM_SETUP=yes")
    worker = "echo $WORKER_NAME $FROM_SETUP $INSIDE_OF_SRUN >> log"
    with running(text(start(1, worker), setup=setup), tmp_path, PATH=path) as run:
        status, said = run.end()
    assert (status, run.log) == (0, ["set-up", "w.j77.0.here yes yes"])
    assert "job 77" in said


@pytest.mark.parametrize("how", ["signal", "file"])
def test_a_warm_end(tmp_path: Path, path: str, how: str):
    """A signal to the job, or the file in its folder, reaches the workers inside.

    That folder is the one of submission, wherever a line of set-up went.
    """
    script = text(start(2, WORKER.replace(">> log", ">> ../log")), setup=("mkdir sub; cd sub",))
    with running(script, tmp_path, PATH=path) as run:
        run.wait_for("start", 2)
        if how == "signal":
            os.kill(run.process.pid, signal.SIGUSR1)
        else:
            (tmp_path / "workers-77.stop").touch()
        status, count, _ = ended(run)
    assert (status, count) == (0, 2)
    assert not list(tmp_path.glob("*.stop"))


def test_a_status_comes_through(tmp_path: Path, path: str):
    """That of a worker that failed."""
    with running(text(start(1, "exit 7")), tmp_path, PATH=path) as run:
        assert run.end()[0] == 7


@pytest.mark.parametrize(("before", "count"), [("0", 1), ("1", 0)])
def test_a_requeue_is_the_outer_one(tmp_path: Path, path: str, before: str, count: int):
    """At the margin, as often as it may, by the scheduler that has the job."""
    script = text(start(1), walltime_s=3600, margin_s=3599, requeues=1)
    with running(script, tmp_path, PATH=path, RESTARTS=before) as run:
        status, warm, _ = ended(run)
    assert (status, warm) == (0, 1)
    file = tmp_path / "requeues"
    assert (file.read_text() if file.exists() else "") == "requeued\n" * count
