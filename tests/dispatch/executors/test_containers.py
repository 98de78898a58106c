"""Jobs in containers: what their engines say, and what becomes of that."""

from __future__ import annotations

import json
import os
import signal

import pytest
from engine_jobs import KEY, Engine
from local_jobs import job

from taskgraph_workers.dispatch.executors import processes
from taskgraph_workers.dispatch.executors.base import Unreachable
from taskgraph_workers.dispatch.executors.slots import Slots
from taskgraph_workers.dispatch.message import key_of


def test_a_container_goes_by(engine: Engine):
    """It gets the job's variables alone, tells progress, and its exit code is the job's."""
    executor = engine.executor()
    executor.submit(job(env={"TRAINING_IMAGES_CONTAINER": "a b\n'", "LANG": "x"}))
    engine.bench.until(lambda: engine.bench.said)
    env = json.loads((engine.container / "env").read_text())
    assert env["TRAINING_IMAGES_CONTAINER"] == "a b\n'"
    assert (env["LANG"], env["image"]) == ("x", "a/b")
    assert "SECRET" not in env
    assert executor.poll([KEY])[KEY].phase == "running"
    engine.go(3)
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.exit_code) == ("failed", 3)
    assert "imagesDownloaded" in [fact.name for fact in executor.progress(KEY)]
    assert not engine.container.exists()


def test_a_container_is_canceled(engine: Engine):
    """Its engine stops it, and it is gone."""
    executor = engine.executor(grace_s=1)
    executor.submit(job(retries=3))
    engine.bench.until(lambda: engine.bench.said)
    executor.cancel(KEY)
    assert engine.bench.ended(executor).phase == "canceled"
    assert not engine.container.exists()
    assert engine.bench.said == ["start 0"]


def test_an_engine_that_is_down(engine: Engine):
    """Before the start it is tried again later; after it nothing is known, and nothing is done."""
    down = engine.home / "down"
    down.touch()
    executor = engine.executor()
    with pytest.raises(Unreachable, match="does not work here"):
        executor.submit(job())
    assert executor.find(KEY) is None
    down.unlink()
    executor.submit(job(retries=2))
    engine.bench.until(lambda: engine.bench.said)
    down.touch()
    pid = engine.bench.supervisor()
    engine.bench.kill_supervisor()
    status = executor.poll([KEY])[KEY]
    assert (status.phase, status.run) == ("running", 0)
    assert "can't be ended" in status.reason
    down.unlink()
    engine.go(0)
    assert engine.bench.ended(executor).exit_code == 0
    assert engine.bench.said == ["start 0", "end 0"]
    assert processes.identity(pid) is None


def test_an_engine_that_cannot_start_it(engine: Engine):
    """Its command can't be run: it is tried once more, and then the engine's own words are why."""
    (engine.home / "image").unlink()
    executor = engine.executor()
    executor.submit(job())
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.exit_code) == ("failed", 126)
    assert ended.reason == f"{engine.name} could not start it: OCI runtime error"
    assert len((engine.home / "refused").read_text()) == 2
    assert not engine.container.exists()


@pytest.mark.parametrize("garbage", ["", "running", "flying 0", "exited x", "exited 0 0", "\x00"])
def test_an_engine_that_says_what_nobody_can_read(engine: Engine, garbage: str):
    """That is no answer: the container is neither removed nor over, until it makes sense."""
    executor = engine.executor()
    executor.submit(job(retries=0))
    engine.bench.until(lambda: engine.bench.said)
    (engine.home / "garbage").write_text(garbage)
    engine.bench.kill_supervisor()
    status = executor.poll([KEY])[KEY]
    assert (status.phase, status.run) == ("running", 0)
    assert engine.container.exists()
    (engine.home / "garbage").unlink()
    engine.go(3)
    assert engine.bench.ended(executor).exit_code == 3
    assert engine.bench.said == ["start 0", "end 0"]


def test_it_is_canceled_while_its_engine_says_nothing(engine: Engine):
    """Its end is asked for all the same, and known once the engine makes sense again."""
    executor = engine.executor(grace_s=1)
    executor.submit(job())
    engine.bench.until(lambda: engine.bench.said)
    (engine.home / "garbage").write_text("flying 0")
    for client in engine.bench.trainers():
        os.kill(client, signal.SIGKILL)
    engine.bench.until(lambda: not engine.bench.trainers())
    executor.cancel(KEY)
    engine.bench.until(lambda: "exited" in (engine.container / "status").read_text())
    assert executor.poll([KEY])[KEY].phase == "running"
    (engine.home / "garbage").unlink()
    assert engine.bench.ended(executor).phase == "canceled"


def test_the_same_request_of_another_state(engine: Engine):
    """Two folders of state share an engine, and no container."""
    first, other = engine.executor(), engine.executor()
    other.jobs = str(engine.bench.folder / "other" / "jobs")
    other.slots = Slots(other.jobs, 1)
    first.submit(job())
    other.submit(job())
    engine.bench.until(lambda: engine.bench.said == ["start 0"] * 2)
    engine.go(0)
    for executor in (first, other):
        assert engine.bench.ended(executor).phase == "succeeded"


OUTAGE = (
    "Trying to pull docker.io/a/b...\n"
    "Error: docker.io/a/b: https://me:hunter2@cdn.example.com/a?sig=hunter2: of images-3:"
    " no route to host\n\n"
    "Run 'docker run --help' for more information\n"
)


def test_an_image_that_can_not_be_had_now(engine: Engine):
    """A registry that is down is waited for: no run is counted, and the job has not failed."""
    outage = engine.home / "outage"
    outage.write_text(OUTAGE)
    executor = engine.executor(rest_s=0.5)
    env = {"TRAINING_IMAGES_CONTAINER": "images-3", "TRAINING_IMAGE": "docker.io/a/b"}
    executor.submit(job(retries=0, env=env))
    status = engine.bench.until(
        lambda: next((s for s in executor.poll([KEY]).values() if s.reason), None)
    )
    assert (status.phase, status.run) == ("queued", 0)
    assert (
        "could not start it: Error: docker.io/a/b: https://...@cdn.example.com/a?... of"
        in status.reason
    )
    assert "hunter2" not in status.reason
    assert "images-3" not in status.reason
    engine.bench.kill_supervisor()
    outage.unlink()
    engine.bench.until(lambda: executor.poll([KEY])[KEY].phase == "running")
    assert executor.poll([KEY])[KEY].reason == ""
    engine.go(0)
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.run, ended.reason) == ("succeeded", 0, "")


def test_an_image_that_can_never_be_had(engine: Engine):
    """It is asked for ten times, longer apart each time; then the engine's own words are why."""
    (engine.home / "outage").write_text(OUTAGE)
    executor = engine.executor(rest_s=0.005)
    executor.submit(job(retries=3))
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.run, ended.exit_code) == ("failed", 0, None)
    assert ended.reason.endswith("no route to host")
    tries = list(map(float, (engine.home / "tries").read_text().split()))
    assert len(tries) == 10
    assert tries[9] - tries[8] > tries[5] - tries[4]
    assert engine.bench.said == []


def test_it_is_canceled_while_its_image_can_not_be_had(engine: Engine):
    """Also by the next supervisor: as the run that was told of before."""
    (engine.home / "outage").write_text(OUTAGE)
    for killed in (False, True):
        executor = engine.executor(rest_s=60.0)
        number = 1 + killed
        executor.submit(job(number))
        engine.bench.until(lambda n=number: engine.bench.at(n).has("trouble.json"))
        if killed:
            engine.bench.kill_supervisor(number)
        executor.cancel(key_of("r", number))
        ended = engine.bench.ended(executor, number)
        assert (ended.phase, ended.run, ended.reason) == ("canceled", 0, "it never ran")


def test_a_training_that_ends_as_engines_fail(engine: Engine):
    """125 of a container that ran is its training's: it has failed, and is not started again."""
    executor = engine.executor()
    executor.submit(job())
    engine.bench.until(lambda: engine.bench.said)
    engine.go(125)
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.exit_code) == ("failed", 125)
    assert ended.reason == "it ended with exit code 125"
    assert engine.bench.said == ["start 0", "end 0"]
