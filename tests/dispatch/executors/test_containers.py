"""Jobs in containers: with stand-ins for the engines, whose containers outlive their clients."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_jobs import Bench, job

from taskgraph_workers.dispatch.executors import processes
from taskgraph_workers.dispatch.executors.base import Unreachable
from taskgraph_workers.dispatch.executors.local import LocalExecutor
from taskgraph_workers.dispatch.message import key_of
from taskgraph_workers.model import Dispatch

KEY = key_of("r", 1)
STAND_IN = Path(__file__).resolve().parents[2] / "stand_ins" / "engines" / "engine.py"

#: What an image does: says that it started, waits, and ends with the code in a file.
IMAGE = """
echo "start $TRAINING_RUN" >> {trace}
echo '{{"name": "imagesDownloaded"}}' >> "$TRAINING_PROGRESS_FILE"
until [ -e {go} ]; do sleep 0.02; done
echo "end $TRAINING_RUN" >> {trace}
exit $(cat {go})
"""


class Engine:
    """An engine of this name, alone in PATH."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.bench, self.home = bench, bench.folder / "engine"
        programs = bench.folder / "bin"
        programs.mkdir()
        (self.home / "containers").mkdir(parents=True)
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} {name} "$@"\n')
        (programs / name).chmod(0o755)
        for tool in ("sh", "sleep", "cat", "mv", "pgrep"):
            (programs / tool).symlink_to(shutil.which(tool) or "")
        image = IMAGE.format(trace=bench.trace, go=bench.go)
        (self.home / "image").write_text(image)
        self.environ = {"PATH": str(programs), "STAND_IN": str(self.home), "SECRET": "x"}

    def executor(
        self, failpoint: str = "", grace_s: int = 5, rest_s: float = 0.01
    ) -> LocalExecutor:
        environ = {**self.environ, "TASKGRAPH_WORKERS_FAILPOINT": failpoint}
        made = LocalExecutor(self.bench.state, Dispatch(), environ, grace_s=grace_s)
        made.rest_s = rest_s
        return made

    def go(self, code: int = 0) -> None:
        self.bench.folder.joinpath("new").write_text(str(code))
        self.bench.folder.joinpath("new").rename(self.bench.go)

    @property
    def container(self) -> Path:
        return self.home / "containers" / f"tw-{KEY}"


@pytest.fixture(params=["podman", "docker"])
def engine(bench: Bench, request: pytest.FixtureRequest) -> Iterator[Engine]:
    made = Engine(bench, request.param)
    yield made
    if not bench.go.exists():
        made.go()


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


def test_the_supervisor_of_a_container_is_killed(engine: Engine):
    """The container goes on, and the next supervisor goes on with it: nothing is lost."""
    executor = engine.executor()
    executor.submit(job(retries=0))
    engine.bench.until(lambda: engine.bench.said)
    engine.bench.kill_supervisor()
    assert executor.poll([KEY])[KEY] == executor.poll([KEY])[KEY]
    assert executor.poll([KEY])[KEY].phase == "running"
    engine.go(7)
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.run, ended.exit_code) == ("failed", 0, 7)
    assert engine.bench.said == ["start 0", "end 0"]


def test_it_ends_while_nobody_watches(engine: Engine):
    """Its engine knows the exit code all the same."""
    executor = engine.executor()
    executor.submit(job(retries=3))
    engine.bench.until(lambda: engine.bench.said)
    engine.bench.kill_supervisor()
    for client in engine.bench.trainers():
        os.kill(client, signal.SIGKILL)
    engine.go(0)
    engine.bench.until(lambda: "exited" in (engine.container / "status").read_text())
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.run, ended.exit_code) == ("succeeded", 0, 0)


def test_the_client_is_killed(engine: Engine):
    """The container is what counts."""
    executor = engine.executor()
    executor.submit(job())
    engine.bench.until(lambda: engine.bench.said)
    for client in engine.bench.trainers():
        os.kill(client, signal.SIGKILL)
    engine.bench.until(lambda: not engine.bench.trainers())
    assert executor.poll([KEY])[KEY].phase == "running"
    engine.go(0)
    assert engine.bench.ended(executor).phase == "succeeded"
    assert engine.bench.said == ["start 0", "end 0"]


def test_a_container_is_canceled(engine: Engine):
    """Its engine stops it, and it is gone."""
    executor = engine.executor(grace_s=1)
    executor.submit(job(retries=3))
    engine.bench.until(lambda: engine.bench.said)
    executor.cancel(KEY)
    assert engine.bench.ended(executor).phase == "canceled"
    assert not engine.container.exists()
    assert engine.bench.said == ["start 0"]


def test_the_machine_was_started_anew(engine: Engine):
    """What is left of the container says nothing; the job runs again in a new one."""
    executor = engine.executor()
    executor.submit(job(retries=1))
    engine.bench.until(lambda: engine.bench.said)
    engine.bench.kill_supervisor()
    marker = engine.bench.at().read("run-0.json")
    assert marker is not None
    engine.bench.at().write("run-0.json", {**marker, "boot": "another"})
    engine.go(0)
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.run) == ("succeeded", 1)


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
    """Podman and docker leave a container that was only created: that is no success."""
    (engine.home / "image").unlink()
    executor = engine.executor()
    executor.submit(job())
    ended = engine.bench.ended(executor)
    assert (ended.phase, ended.exit_code) == ("failed", 126)
    assert not engine.container.exists()


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


def test_apptainer_goes_by(bench: Bench):
    """As a process: its variables come by the prefix."""
    programs = bench.folder / "bin"
    programs.mkdir()
    script = programs / "apptainer"
    script.write_text(
        '#!/bin/sh\n[ "$1" = version ] && echo 1.4.0 && exit\n'
        'echo "$* $APPTAINERENV_A $APPTAINERENV_TRAINING_RUN $APPTAINERENV_GPUS"\n'
        "exit 4\n"
    )
    script.chmod(0o755)
    path = f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin"
    environ = {"PATH": path, "CUDA_VISIBLE_DEVICES": "5"}
    executor = LocalExecutor(bench.state, Dispatch(engine="apptainer"), environ)
    executor.submit(job(env={"A": "a  b"}, detect={"GPUS": {"detect": "gpu-indices"}}))
    assert bench.ended(executor).exit_code == 4
    said = Path(bench.at().at("output.log")).read_text()
    assert said.endswith("--nv docker://a/b a  b 0 0\n"), said
    told = bench.at().read("job.json")
    assert told is not None
    assert told["env"]["CUDA_VISIBLE_DEVICES"] == "5"
