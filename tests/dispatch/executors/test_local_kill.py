"""Whoever is killed, wherever: a key's trainer runs once, and its end is known.

All kills are real ones, of real processes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from local_jobs import ROOT, Bench, job, program

from taskgraph_workers.dispatch.executors import processes
from taskgraph_workers.dispatch.executors.base import Unreachable
from taskgraph_workers.dispatch.failpoints import VARIABLE
from taskgraph_workers.dispatch.message import key_of
from taskgraph_workers.dispatch.model import VM_CREATED, VM_DESTROYED

KEY = key_of("r", 1)

#: A dispatcher: submits one job, and would go on.
DISPATCHER = """
import os, sys, pathlib, time
from local_jobs import Bench, job
bench = Bench(pathlib.Path(sys.argv[1]))
executor = bench.executor(*bench.trainer(waits=sys.argv[2] == "waits"))
if len(sys.argv) > 3:
    while not os.path.exists(sys.argv[3]):
        time.sleep(0.001)
print(executor.submit(job()), flush=True)
if sys.argv[2] == "waits":
    time.sleep(60)
"""


@pytest.mark.parametrize("at", ["local-prepared", "local-made", "local-started"])
def test_the_dispatcher_is_killed(bench: Bench, at: str):
    """At each step of a submit; the next dispatcher finds, or starts, the one training."""
    killed = program(DISPATCHER, bench.folder, "ends", **{VARIABLE: at})
    assert killed.wait(timeout=30) == -signal.SIGKILL
    executor = bench.executor()
    assert executor.find(KEY) == (None if at == "local-prepared" else KEY)
    if at == "local-prepared":
        executor.submit(job())
    assert bench.ended(executor).phase == "succeeded"
    assert bench.said == ["start 0", "end 0"]


def test_the_training_outlives_its_dispatcher(bench: Bench):
    """A dispatcher that is killed, with all of its session, takes nothing with it."""
    dispatcher = program(DISPATCHER, bench.folder, "waits")
    assert dispatcher.stdout is not None
    assert dispatcher.stdout.readline().strip() == KEY
    dispatcher.kill()
    dispatcher.wait(timeout=30)
    bench.until(lambda: bench.said)
    executor = bench.executor()
    assert executor.poll([KEY])[KEY].phase == "running"
    bench.go.touch()
    assert bench.ended(executor).exit_code == 0
    assert bench.said == ["start 0", "end 0"]


def test_an_exit_code_waits(bench: Bench):
    """It is there for whoever asks first, however late, and for everybody after that."""
    killed = program(DISPATCHER, bench.folder, "ends", **{VARIABLE: "local-started"})
    assert killed.wait(timeout=30) == -signal.SIGKILL
    bench.until(lambda: bench.at().has("exit.json"))
    assert {bench.ended(bench.executor()).exit_code for _ in range(3)} == {0}


# --- the supervisor ---


@pytest.mark.parametrize("at", ["supervisor-locked", "run-claimed", "trainer-started"])
def test_the_supervisor_is_killed(bench: Bench, at: str):
    """Before the claim it is no run; after it, the run is lost, and there are retries or not."""
    executor = bench.executor(*bench.trainer(waits=True), failpoint=at)
    with contextlib.suppress(Unreachable):
        executor.submit(job(retries=1))
    pid = bench.at().read("supervisor.json")
    if pid is not None:
        bench.until(lambda: processes.identity(pid["pid"]) is None)
    again = bench.executor()
    expected = 0 if at == "supervisor-locked" else 1
    assert again.poll([KEY])[KEY].run == expected
    bench.go.touch()
    ended = bench.ended(again)
    assert (ended.phase, ended.run) == ("succeeded", expected)
    assert bench.said.count(f"end {expected}") == 1
    assert "end 0" not in bench.said or expected == 0


@pytest.mark.parametrize("retries", [0, 1])
def test_a_trainer_without_its_supervisor(bench: Bench, retries: int):
    """All of it is ended before anything else begins; without retries, the job is lost."""
    executor = bench.executor(*bench.trainer(waits=True))
    executor.submit(job(retries=retries))
    bench.until(lambda: bench.said)
    (trainer,) = bench.trainers()
    bench.kill_supervisor()
    assert processes.identity(trainer) is not None
    if retries:
        assert executor.poll([KEY])[KEY].run == 1
        assert processes.identity(trainer) is None
        bench.go.touch()
        ended = bench.ended(executor)
        assert (ended.phase, ended.run) == ("succeeded", 1)
    else:
        ended = bench.ended(executor)
        assert processes.identity(trainer) is None
        assert (ended.phase, ended.exit_code) == ("lost", None)
        assert ended.reason == "its supervisor, or the machine, was lost"
        assert bench.said == ["start 0"]


def test_a_run_is_lost_as_often_as_retries_say(bench: Bench):
    """Each loss is told: the machine came and went, run by run."""
    executor = bench.executor(*bench.trainer(waits=True))
    executor.submit(job(retries=2))
    for run in range(3):
        bench.until(lambda run=run: f"start {run}" in bench.said)
        bench.kill_supervisor()
        assert executor.poll([KEY])[KEY].phase in {"running", "lost"}
    ended = bench.ended(executor)
    assert (ended.phase, ended.run) == ("lost", 2)
    assert bench.said == ["start 0", "start 1", "start 2"]
    told = [(fact.name, fact.run) for fact in executor.progress(KEY)]
    assert told == [(name, run) for run in range(3) for name in (VM_CREATED, VM_DESTROYED)]


@pytest.mark.parametrize("at", ["trainer-ended", "exit-written", "trainer-witnessed"])
def test_it_is_killed_at_the_end(bench: Bench, at: str):
    """The supervisor may be, at any step: the code is known. Its witness may not, for a moment."""
    executor = bench.executor(*bench.trainer(3), failpoint=at)
    executor.submit(job(retries=0))
    bench.until(lambda: "end 0" in bench.said)
    known = bench.at().read("supervisor.json")
    assert known is not None
    bench.until(lambda: processes.identity(known["pid"]) is None)
    ended = bench.ended(bench.executor())
    witnessed = ("failed", 3) if at != "trainer-witnessed" else ("lost", None)
    assert (ended.phase, ended.exit_code) == witnessed
    assert bench.said == ["start 0", "end 0"]


@pytest.mark.parametrize("code", [0, 3])
def test_it_ends_while_nobody_watches(bench: Bench, code: int):
    """Its supervisor was killed long before: how it ended is known all the same."""
    executor = bench.executor(*bench.trainer(code, waits=True))
    executor.submit(job(retries=3))
    bench.until(lambda: bench.said)
    bench.kill_supervisor()
    bench.go.touch()
    bench.until(lambda: bench.at().has("end-0.json"))
    ended = bench.ended(executor)
    assert (ended.run, ended.exit_code) == (0, code)
    assert bench.said == ["start 0", "end 0"]


def test_what_is_given_up_stays_so(bench: Bench):
    """A supervisor that gives a run up is killed before the next: its witness says nothing more."""
    executor = bench.executor(*bench.trainer(waits=True))
    executor.submit(job(retries=1))
    bench.until(lambda: bench.said)
    bench.kill_supervisor()
    assert bench.at().claim("end-0.json", {"lost": True})
    bench.go.touch()
    bench.until(lambda: not bench.trainers())
    ended = bench.ended(executor)
    assert (ended.phase, ended.run) == ("succeeded", 1)
    assert bench.at().read("end-0.json") == {"lost": True}


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGKILL])
def test_all_of_it_is_ended_at_once(bench: Bench, told: int):
    """As by a service manager: what the trainer ended by says nothing of the training."""
    executor = bench.executor("sleep", "60")
    executor.submit(job(retries=1))
    (trainer,) = bench.until(bench.trainers)
    bench.kill_supervisor()
    os.kill(trainer, told)
    bench.until(lambda: bench.at().has("end-0.json"))
    assert executor.poll([KEY])[KEY].run == 1


@pytest.mark.parametrize("retries", [0, 1])
def test_the_witness_is_killed(bench: Bench, retries: int):
    """Nobody will know how its trainer ends, so that is ended, and lost."""
    executor = bench.executor(*bench.trainer(waits=True))
    executor.submit(job(retries=retries))
    (trainer,) = bench.until(bench.trainers)
    bench.until(lambda: bench.said)
    os.kill(_parent(trainer), signal.SIGKILL)
    bench.until(lambda: processes.identity(trainer) is None)
    bench.go.touch()
    ended = bench.ended(executor)
    assert (ended.phase, ended.run) == (("succeeded", 1) if retries else ("lost", 0))
    assert bench.said.count("start 0") == 1


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_canceled_job_whose_supervisor_is_killed(bench: Bench):
    """It is canceled by the next, and does not run again."""
    executor = bench.executor("sh", "-c", 'trap "" TERM; echo start >> $TRACE; sleep 60')
    executor.submit(job(retries=5))
    bench.until(lambda: bench.said)
    executor.cancel(KEY)
    bench.kill_supervisor()
    ended = bench.ended(executor)
    assert (ended.phase, ended.run) == ("canceled", 0)
    assert (bench.said, bench.trainers()) == (["start"], [])


def test_after_the_machine_was_started_anew(bench: Bench):
    """A process that has the supervisor's number by now is not taken for it, nor signaled."""
    executor = bench.executor(*bench.trainer(waits=True))
    executor.submit(job(retries=0))
    bench.until(lambda: bench.said)
    bench.kill_supervisor()
    for pid in bench.trainers():
        os.kill(pid, signal.SIGKILL)
    other = processes.identity(os.getpid())
    assert other is not None
    before = {"pid": os.getpid(), "identity": "another-boot/" + other.split("/")[1]}
    bench.at().write("supervisor.json", before)
    executor.cancel(KEY)  # would end this process by SIGUSR1
    assert bench.ended(executor).phase == "canceled"


def test_what_cannot_be_ended_is_not_doubled(bench: Bench):
    """Something that still holds the training keeps a second one from being started."""
    executor = bench.executor(*bench.trainer(waits=True))
    executor.submit(job(retries=1))
    bench.until(lambda: bench.said)
    held = [int(fd.name) for fd in Path(f"/proc/{bench.trainers()[0]}/fd").iterdir()]
    assert any(_opens(bench.trainers()[0], fd, bench.at().at("training")) for fd in held)
    bench.kill_supervisor()
    for pid in bench.trainers():
        os.kill(pid, signal.SIGKILL)
    keeper = bench.until(lambda: bench.at().lock("training"))
    executor.answer_s = 1.0
    assert executor.poll([KEY])[KEY].run == 0
    assert bench.said == ["start 0"]
    os.close(keeper)
    bench.until(lambda: executor.poll([KEY])[KEY].run == 1)
    bench.until(lambda: "start 1" in bench.said)


def _opens(pid: int, fd: int, path: str) -> bool:
    try:
        return Path(f"/proc/{pid}/fd/{fd}").readlink() == Path(path)
    except OSError:
        return False


# --- the trainer ---


def test_the_trainer_is_killed(bench: Bench):
    """That is a failure, whoever did it: memory runs out in the same way the next time."""
    executor = bench.executor(*bench.trainer(waits=True))
    executor.submit(job(retries=3))
    (pid,) = bench.until(bench.trainers)
    os.kill(pid, signal.SIGKILL)
    ended = bench.ended(executor)
    assert (ended.phase, ended.run, ended.exit_code) == ("failed", 0, 137)
    assert ended.reason == "it was killed by SIGKILL"


# --- two at once ---


def test_two_dispatchers_at_once(bench: Bench):
    """Both get the handle; the trainer runs once. Fifty times."""
    for n in range(50):
        folder = bench.folder / str(n)
        folder.mkdir()
        both = [program(DISPATCHER, folder, "ends", folder / "now") for _ in range(2)]
        (folder / "now").touch()
        said = [each.communicate(timeout=60) for each in both]
        assert said == [(f"{KEY}\n", "")] * 2
        here = Bench(folder)
        assert here.ended(here.executor()).phase == "succeeded"
        assert here.said == ["start 0", "end 0"]


def test_many_ask_about_one_that_nobody_watches(bench: Bench):
    """Each of them starts a supervisor, and one of these gets the job."""
    executor = bench.executor(*bench.trainer(waits=True))
    executor.submit(job(retries=9))
    bench.until(lambda: bench.said)
    bench.kill_supervisor()
    code = (
        "import sys, pathlib; from local_jobs import Bench, job\n"
        "print(Bench(pathlib.Path(sys.argv[1])).executor().poll([sys.argv[2]])[sys.argv[2]].phase)"
    )
    asked = [program(code, bench.folder, KEY) for _ in range(6)]
    assert [each.communicate(timeout=60) for each in asked] == [("running\n", "")] * 6
    bench.go.touch()
    assert bench.ended(executor).run == 1
    assert bench.said == ["start 0", "start 1", "end 1"]


def test_a_supervisor_that_comes_late(bench: Bench):
    """One that was started when the job still ran, and looks when it has ended, changes nothing."""
    executor = bench.executor()
    executor.submit(job(retries=3))
    ended = bench.ended(executor)
    assert executor._start(bench.at()) == "ended"
    assert bench.ended(executor) == ended
    assert bench.said == ["start 0", "end 0"]


def test_a_supervisor_goes_by_its_own_code(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """Whatever PYTHONPATH, which is the trainer's, and the current folder offer instead."""
    evil = bench.folder / "evil"
    evil.mkdir()
    for name in ("json", "sitecustomize", "taskgraph_workers"):
        (evil / f"{name}.py").write_text("raise SystemExit(1)")
    monkeypatch.setenv("PYTHONPATH", str(evil))
    monkeypatch.chdir(evil)
    executor = bench.executor("sh", "-c", 'echo "$PYTHONPATH" "$PWD"')
    executor.submit(job())
    assert bench.ended(executor).phase == "succeeded"
    assert Path(bench.at().at("output.log")).read_text() == f"{evil} {evil}\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_dispatcher_without_standard_streams(bench: Bench, closed: str):
    """It starts jobs as any other, and hears from their supervisors."""
    code = DISPATCHER.replace("print(", "str(").replace(", flush=True", "")
    words = ["sh", "-c", f'exec {closed}; exec "$0" "$@"', sys.executable, "-c", code]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT)])}
    subprocess.run([*words, str(bench.folder), "ends"], env=env, check=True, timeout=60)
    assert bench.ended(bench.executor()).phase == "succeeded"
    assert bench.log == ""


def test_it_starts_quickly_and_alone(bench: Bench):
    """A supervisor loads nothing but the standard library and this package's own few files."""
    code = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "from taskgraph_workers.dispatch.executors import supervisor\n"
        "print(*sorted(name for name in sys.modules if name.startswith('taskgraph_workers.')))"
    )
    lone = program(code, ROOT)
    said, _ = lone.communicate(timeout=30)
    assert [name.split(".", 2)[-1] for name in said.split()] == [
        "dispatch",
        "backoff",
        "executors",
        "executors.call",
        "executors.containers",
        "executors.folder",
        "executors.outputs",
        "executors.processes",
        "executors.slots",
        "executors.starts",
        "executors.supervisor",
        "executors.training",
        "executors.witness",
        "failpoints",
        "version",
    ]
