"""Jobs on this machine, when nothing is killed."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from local_jobs import Bench, job

from taskgraph_workers import detect
from taskgraph_workers.dispatch.executors.base import Impossible, Unreachable
from taskgraph_workers.dispatch.executors.local import LocalExecutor
from taskgraph_workers.dispatch.message import key_of
from taskgraph_workers.dispatch.model import VM_CREATED, VM_DESTROYED, Status
from taskgraph_workers.model import Dispatch

KEY = key_of("r", 1)


def names(executor: LocalExecutor, handle: str = KEY) -> list[str]:
    return [fact.name for fact in executor.progress(handle)]


def test_a_job_goes_by(bench: Bench):
    """Submitted, running, succeeded; the machine comes and goes."""
    executor = bench.executor(*bench.trainer(waits=True))
    assert executor.find(KEY) is None
    assert executor.submit(job()) == KEY
    assert executor.find(KEY) == KEY
    bench.until(lambda: bench.said)
    assert executor.poll([KEY]) == {KEY: Status("running", 0, executor.machine)}
    assert names(executor) == [VM_CREATED]
    bench.go.touch()
    assert bench.ended(executor) == Status("succeeded", 0, executor.machine, "", 0)
    assert names(executor) == [VM_CREATED, VM_DESTROYED]
    assert bench.said == ["start 0", "end 0"]


def test_a_second_start_of_a_key(bench: Bench):
    """While it runs, and once it has ended: the same handle, and nothing is started."""
    executor = bench.executor(*bench.trainer(waits=True))
    executor.submit(job())
    assert bench.executor().submit(job()) == KEY
    bench.go.touch()
    bench.ended(executor)
    assert bench.executor().submit(job(image="other/one")) == KEY
    assert bench.said == ["start 0", "end 0"]


SHELL_SAYS = "it ended with exit code 127: a: not ..."


@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [
        (("sh", "-c", "echo so; exit 3"), 3, "it ended with exit code 3"),
        (("sh", "-c", "exit 126"), 126, "it ended with exit code 126"),
        (("sh", "-c", "echo no; echo 'a: not sssecret'; exit 127"), 127, SHELL_SAYS),
        (("sh", "-c", "kill -KILL $$"), 137, "it was killed by SIGKILL"),
        (("sh", "-c", "kill -TERM $$"), 143, "it was killed by SIGTERM"),
        (("no-such-program",), 127, "no-such-program can't be started: No such file or directory"),
        (("/etc/passwd",), 126, "/etc/passwd can't be started: Permission denied"),
    ],
)
def test_a_job_that_fails(bench: Bench, command: tuple[str, ...], code: int, reason: str):
    """Its exit code as a shell says it, and why. It is not tried again, whatever retries say."""
    executor = bench.executor(*command)
    executor.submit(job(retries=3, env={"TRAINING_IMAGES_CONTAINER": "sssecret"}))
    assert bench.ended(executor) == Status("failed", 0, executor.machine, reason, code)
    assert bench.ended(executor).run == 0
    assert len(bench.at().runs()) == 1


def test_what_the_trainer_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """The job's env over the dispatcher's, and the contract; nothing that is only ours."""
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    monkeypatch.setenv("TASKGRAPH_WORKERS_BROKER", "amqp://me:secret@host")
    monkeypatch.setenv("GPUS", "9")
    executor = bench.executor(sys.executable, "-c", code)
    hostile = {"TRAINING_IMAGES_CONTAINER": "a'; $(touch x) \"\n", "GPUS": "0 1"}
    executor.submit(job(n=2, env=hostile, attempt=2))
    bench.ended(executor, 2)
    env = json.loads(Path(bench.at(2).at("output.log")).read_text())
    assert {name: env[name] for name in hostile} == hostile
    assert (env["TRAINING_ATTEMPT"], env["TRAINING_RUN"]) == ("2", "0")
    assert env["TRAINING_PROGRESS_FILE"] == bench.at(2).at("progress/run-0.jsonl")
    assert "secret" not in str(env)
    assert env["PATH"] == os.environ["PATH"]


def test_values_only_the_machine_knows(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """They are found out before the trainer; where they can't be, it does not start."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,7")
    monkeypatch.setenv("PATH", f"/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("WORKSPACE", "99")
    wanted = {"GPUS": {"detect": "gpu-indices"}, "WORKSPACE": {"detect": "inherited"}}
    executor = bench.executor("sh", "-c", 'echo "$GPUS,$WORKSPACE,$0" "$@"', "a b", "$(c)")
    executor.submit(job(detect=wanted))
    assert bench.ended(executor).phase == "succeeded"
    assert Path(bench.at().at("output.log")).read_text().endswith("0 1 2,99,a b $(c)\n")
    executor.submit(job(2, detect={"GPUS": {"detect": "gpu-count", "at-least": 8}}))
    ended = bench.ended(executor, 2)
    assert ended.exit_code == detect.NOT_FOUND
    assert ended.reason.startswith("it ended with exit code 69: GPUS: 3 GPUs ")


def test_what_others_on_the_machine_can_see(bench: Bench):
    """Nothing: the message's values are in private files, and in no argv."""
    executor = bench.executor(*bench.trainer(waits=True))
    executor.submit(job(env={"TRAINING_IMAGES_CONTAINER": "sssecret"}))
    (pid,) = bench.until(bench.trainers)
    for each in (pid, bench.supervisor()):
        assert b"sssecret" not in Path(f"/proc/{each}/cmdline").read_bytes()
    for path in (bench.state / "jobs", Path(bench.at().path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_the_trainer_runs_apart(bench: Bench):
    """In a session of its own, away from the dispatcher's terminal, with signals as usual."""
    executor = bench.executor(*bench.trainer(waits=True))
    executor.submit(job())
    (pid,) = bench.until(bench.trainers)
    assert os.getsid(pid) == os.getpgid(pid) == pid
    assert os.getsid(bench.supervisor()) not in (os.getsid(0), pid)
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = int(status.split("SigIgn:\t")[1].split()[0], 16)
    assert ignored & (1 << 0 | 1 << 1 | 1 << 14) == 0  # HUP, INT, TERM


def test_handles_that_are_none(bench: Bench):
    """What is no key never becomes a path; it is lost, and can be canceled."""
    executor = bench.executor()
    for handle in ("../../etc", "", "a" * 26 + "/", "A" * 26):
        assert executor.find(handle) is None
        assert executor.poll([handle])[handle].phase == "lost"
        assert list(executor.progress(handle)) == []
        executor.cancel(handle)
        executor.release(handle)
    with pytest.raises(Impossible):
        executor.submit(job(key="../x"))
    assert not bench.state.exists()


def test_nothing_to_run_an_image_with(bench: Bench):
    """The sentence says what to configure, and nothing is left behind."""
    executor = LocalExecutor(bench.state, Dispatch(engine="none"), {"PATH": ""})
    with pytest.raises(Impossible, match=r"dispatch\.local\.commands"):
        executor.submit(job())
    assert executor.find(KEY) is None


def test_files_that_cannot_be_read_are_unknown(bench: Bench):
    """Neither failed nor lost."""
    executor = bench.executor()
    executor.submit(job())
    bench.ended(executor)
    Path(bench.at().at("exit.json")).write_text("{")
    assert executor.poll([KEY])[KEY].phase == "unknown"
    Path(bench.at().at("exit.json")).write_text("{}")
    assert executor.poll([KEY])[KEY].phase == "unknown"


def test_a_job_of_another_version_is_left_alone(bench: Bench):
    """A supervisor that can't read it starts nothing, and the job is unknown."""
    executor = bench.executor()
    executor.submit(job())
    bench.ended(executor)
    told = bench.at().read("job.json")
    assert told is not None
    other = bench.at(2)
    os.makedirs(other.path)
    other.write("job.json", {**told, "version": 99})
    assert executor.poll([key_of("r", 2)])[key_of("r", 2)].phase == "unknown"
    assert "none that this version can read" in bench.log


def test_a_state_that_cannot_be_written(bench: Bench):
    """It is tried again later: the disk may be full only now."""
    bench.state.write_text("a file where the folder should be")
    with pytest.raises(Unreachable):
        bench.executor().submit(job())


def test_progress_of_the_trainer(bench: Bench):
    """Its lines are told, but for what is not its to say."""
    lines = ["imagesDownloaded", "trainingVmDestroyed", "trainingSucceededWithImages", "loss"]
    code = "import json, os\nwith open(os.environ['TRAINING_PROGRESS_FILE'], 'a') as f:\n"
    code += f"    for name in {lines}: print(json.dumps({{'name': name, 'at': 5, 'x': 1}}), file=f)"
    executor = bench.executor(sys.executable, "-c", code)
    executor.submit(job())
    bench.ended(executor)
    facts = {
        fact.name: fact for fact in executor.progress(KEY) if fact.name != "progressLinesIgnored"
    }
    assert list(facts) == [VM_CREATED, "imagesDownloaded", "loss", VM_DESTROYED]
    assert (facts["loss"].at, facts["loss"].data) == (5.0, {"x": 1})
    assert facts[VM_DESTROYED].at != 5.0
    ignored = [f.data for f in executor.progress(KEY) if f.name == "progressLinesIgnored"]
    assert ignored == [
        {"first": "line 2: trainingVmDestroyed is not a trainer's to say"},
        {"lines": 2},
    ]
