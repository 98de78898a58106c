"""Jobs in containers, when a supervisor, a client or an engine's own process is killed."""

from __future__ import annotations

import os
import shutil
import signal
import time

import pytest
from engine_jobs import KEY, Engine
from local_jobs import job

from taskgraph_workers.dispatch.executors import processes
from taskgraph_workers.dispatch.executors.local import LocalExecutor


def unwatched(engine: Engine, **fields: int) -> LocalExecutor:
    """An executor whose one job runs, and has lost its supervisor."""
    executor = engine.executor()
    executor.submit(job(**fields))
    engine.bench.until(lambda: engine.bench.said)
    engine.bench.kill_supervisor()
    return executor


def kill_clients(engine: Engine) -> None:
    for client in engine.bench.trainers():
        os.kill(client, signal.SIGKILL)


def test_the_supervisor_of_a_container_is_killed(engine: Engine):
    """The container goes on, and the next supervisor goes on with it: nothing is lost."""
    executor = unwatched(engine, retries=0)
    assert executor.poll([KEY])[KEY] == executor.poll([KEY])[KEY]
    assert executor.poll([KEY])[KEY].phase == "running"
    engine.go(7)
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.run, ended.exit_code) == ("failed", 0, 7)
    assert engine.bench.said == ["start 0", "end 0"]


def test_it_ends_while_nobody_watches(engine: Engine):
    """Its engine knows the exit code all the same."""
    executor = unwatched(engine, retries=3)
    kill_clients(engine)
    engine.go(0)
    engine.bench.until(lambda: "exited" in (engine.container / "status").read_text())
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.run, ended.exit_code) == ("succeeded", 0, 0)


@pytest.mark.parametrize("at", ["container-recorded", "container-removed", "trainer-ended"])
def test_the_supervisor_is_killed_at_the_end(engine: Engine, at: str):
    """A container is removed once it is written down how it ended, and not before."""
    engine.go(7)
    executor = engine.executor(failpoint=at)
    executor.submit(job(retries=1))
    pid = engine.bench.supervisor()
    engine.bench.until(lambda: processes.identity(pid) is None)
    ended = engine.bench.ended(engine.executor())
    assert (ended.phase, ended.run, ended.exit_code) == ("failed", 0, 7)
    assert engine.bench.said == ["start 0", "end 0"]
    assert not engine.container.exists()


def test_the_clock_is_set_while_nobody_watches(engine: Engine):
    """A limit is of the time that goes by, whatever clocks say."""
    executor = unwatched(engine, max_run_time_s=600)
    marker = engine.bench.at().read("run-0.json")
    assert marker is not None
    engine.bench.at().write("run-0.json", {**marker, "at": 0.0})
    assert executor.poll([KEY])[KEY].phase == "running"
    time.sleep(0.5)  # as long as it takes to look at the limit
    engine.go(0)
    assert engine.bench.ended(executor).phase == "succeeded"


def test_a_limit_counts_on_while_nobody_watches(engine: Engine):
    """The next supervisor goes by when the run began, not by when it came itself."""
    executor = unwatched(engine, max_run_time_s=600)
    marker = engine.bench.at().read("run-0.json")
    assert marker is not None
    engine.bench.at().write("run-0.json", {**marker, "since": marker["since"] - 601})
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.reason) == ("failed", "it ran longer than 600 s")


def test_the_client_is_killed(engine: Engine):
    """The container is what counts."""
    executor = engine.executor()
    executor.submit(job())
    engine.bench.until(lambda: engine.bench.said)
    kill_clients(engine)
    engine.bench.until(lambda: not engine.bench.trainers())
    assert executor.poll([KEY])[KEY].phase == "running"
    engine.go(0)
    assert engine.bench.ended(executor).phase == "succeeded"
    assert engine.bench.said == ["start 0", "end 0"]


def test_the_machine_was_started_anew(engine: Engine):
    """What is left of the container says nothing; the job runs again in a new one."""
    executor = unwatched(engine, retries=1)
    marker = engine.bench.at().read("run-0.json")
    assert marker is not None
    engine.bench.at().write("run-0.json", {**marker, "boot": "another"})
    engine.go(0)
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.run) == ("succeeded", 1)


def test_a_container_that_others_removed(engine: Engine):
    """Nobody knows how far it came: it is lost, and never succeeded."""
    executor = unwatched(engine, retries=0)
    kill_clients(engine)
    engine.bench.until(lambda: executor.poll([KEY])[KEY].phase == "running")
    shutil.rmtree(engine.container)
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.run, ended.exit_code) == ("lost", 0, None)


def test_a_container_that_its_engine_lost_sight_of(engine: Engine):
    """As podman does without conmon, it says for ever that it runs: it is lost, and removed."""
    executor = engine.executor()
    executor.submit(job(retries=1))
    engine.bench.until(lambda: engine.bench.said)
    forsaken = engine.home / "forsaken"
    forsaken.touch()
    kill_clients(engine)
    engine.bench.until(lambda: engine.bench.said == ["start 0", "start 1"])
    forsaken.unlink()
    engine.go(0)
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.run) == ("succeeded", 1)


def test_it_is_canceled_while_its_engine_can_not_wait(engine: Engine):
    """Whoever wants its end is heard between the tries."""
    executor = engine.executor(grace_s=1)
    executor.submit(job())
    engine.bench.until(lambda: engine.bench.said)
    (engine.home / "forsaken").touch()
    executor.cancel(KEY)
    kill_clients(engine)
    assert engine.bench.ended(executor).phase == "canceled"


@pytest.mark.parametrize("victim", ["client", "supervisor", "both"])
def test_what_is_killed_while_it_fetches_the_image(engine: Engine, victim: str):
    """Nothing has begun, so nothing is lost: it runs, as run 0, without any retries."""
    pulling = engine.home / "pulling"
    pulling.touch()
    executor = engine.executor()
    executor.submit(job(retries=0))
    client = int(engine.bench.until(pulling.read_text))
    if victim != "client":
        engine.bench.kill_supervisor()
    if victim != "supervisor":
        (engine.home / "reserved").touch()  # a name that is in use, and no container, as in podman
        os.kill(client, signal.SIGKILL)
    pulling.unlink()
    engine.go(0)
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.run) == ("succeeded", 0)
    assert engine.bench.said == ["start 0", "end 0"]
