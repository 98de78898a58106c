"""How many jobs run on this machine at once, and what becomes of the others."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
from engine_jobs import Engine
from local_jobs import Bench, job, program

from taskgraph_workers.dispatch.executors import folder as files
from taskgraph_workers.dispatch.executors import processes
from taskgraph_workers.dispatch.executors.local import LocalExecutor
from taskgraph_workers.dispatch.executors.slots import Slots
from taskgraph_workers.dispatch.executors.training import CLAIMED
from taskgraph_workers.dispatch.failpoints import VARIABLE
from taskgraph_workers.dispatch.message import key_of
from taskgraph_workers.model import Dispatch

#: Says which attempt it is when it starts; ends when a file of its number is there.
TRAINER = (
    'echo "start $TRAINING_ATTEMPT" >> "$TRACE"; '
    'until [ -e "$TRACE.$TRAINING_ATTEMPT" ]; do sleep 0.02; done'
)

#: A dispatcher that submits so many jobs, of which so many may run at once.
DISPATCHER = f"""
import pathlib, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from local_jobs import Bench, job
from test_slots import executor
for n in range(1, 1 + int(sys.argv[3])):
    executor(Bench(pathlib.Path(sys.argv[1])), int(sys.argv[2])).submit(job(n))
"""


def executor(bench: Bench, at_once: int = 1, **given: str) -> LocalExecutor:
    environ = {**os.environ, "TRACE": str(bench.trace), VARIABLE: "", **given}
    dispatch = Dispatch(engine="none", commands={"a/b": ("sh", "-c", TRAINER)}, at_once=at_once)
    return LocalExecutor(bench.state, dispatch, environ, grace_s=5)


def phases(here: LocalExecutor, count: int) -> list[str]:
    """How jobs are, from the first on."""
    return [each.phase for each in here.poll([key_of("r", n + 1) for n in range(count)]).values()]


def end(bench: Bench, n: int) -> None:
    bench.folder.joinpath(f"trace.{n}").touch()


@pytest.fixture
def held(bench: Bench) -> Iterator[Bench]:
    """Return a bench whose trainers end with it."""
    yield bench
    for n in range(1, 10):
        end(bench, n)


def test_one_after_the_other(held: Bench):
    """One runs, the others are queued and say why; each starts when the one before has ended."""
    here = executor(held)
    for n in range(1, 5):
        here.submit(job(n))
    held.until(lambda: phases(here, 4) == ["running", "queued", "queued", "queued"])
    assert here.poll([key_of("r", 4)])[key_of("r", 4)].reason == "it waits: 1 at once run here"
    for n in range(1, 5):
        held.until(lambda n=n: held.said[-1:] == [f"start {n}"])
        assert len(held.said) == n
        end(held, n)
        held.until(lambda n=n: phases(here, 4)[n - 1] == "succeeded")
    assert held.said == [f"start {n}" for n in range(1, 5)]
    assert here.slots.advance() == []
    assert here.slots.tickets() == {}


def test_so_many_as_are_allowed(held: Bench):
    """As many as ``at-once`` says; whoever ends makes room for the one that came first."""
    here = executor(held, at_once=2)
    for n in range(1, 6):
        here.submit(job(n))
    held.until(lambda: phases(here, 5) == ["running"] * 2 + ["queued"] * 3)
    end(held, 2)
    held.until(lambda: phases(here, 5) == ["running", "succeeded", "running", "queued", "queued"])
    held.until(lambda: len(held.said) == 3)
    assert sorted(held.said) == ["start 1", "start 2", "start 3"]


def test_one_that_waits_is_canceled(held: Bench):
    """At once, and it never runs; nobody else gets a slot by that."""
    here = executor(held)
    for n in range(1, 4):
        here.submit(job(n))
    held.until(lambda: phases(here, 3) == ["running", "queued", "queued"])
    here.cancel(key_of("r", 2))
    held.until(lambda: phases(here, 3) == ["running", "canceled", "queued"])
    assert here.poll([key_of("r", 2)])[key_of("r", 2)].reason == "it never ran"
    end(held, 1)
    held.until(lambda: phases(here, 3) == ["succeeded", "canceled", "running"])
    held.until(lambda: held.said == ["start 1", "start 3"])


@pytest.mark.parametrize("at", ["local-made", "local-queued", "local-slot-given", "local-started"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_the_dispatcher_is_killed(held: Bench, at: str, nth: int):
    """At each step of three submits: the next one goes on, one at a time, in the same order."""
    killed = program(DISPATCHER, held.folder, 1, 3, **{VARIABLE: f"{at}:{nth}"})
    _, err = killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL, err
    here = executor(held)
    for n in range(1, 4):
        here.submit(job(n))
    for n in range(1, 4):
        held.until(lambda n=n: phases(here, 3)[n - 1 :] == ["running", *["queued"] * (3 - n)])
        held.until(lambda n=n: held.said == [f"start {each}" for each in range(1, n + 1)])
        end(held, n)


def test_the_supervisor_is_killed(held: Bench):
    """Its job keeps its slot: the next run of it begins before anything else does."""
    here = executor(held)
    here.submit(job(1, retries=1))
    here.submit(job(2))
    held.until(lambda: held.said)
    held.kill_supervisor(1)
    assert executor(held).poll([key_of("r", 2)])[key_of("r", 2)].phase == "queued"
    held.until(lambda: held.said == ["start 1", "start 1"])
    assert here.poll([key_of("r", 1)])[key_of("r", 1)].run == 1
    end(held, 1)
    held.until(lambda: phases(here, 2) == ["succeeded", "running"])


def test_two_dispatchers_at_once(held: Bench):
    """Both submit all, at the same time: no more run at once, and each runs once."""
    both = [program(DISPATCHER, held.folder, 2, 6) for _ in range(2)]
    assert [each.communicate(timeout=60) for each in both] == [("", "")] * 2
    here = executor(held, 2)
    held.until(lambda: phases(here, 6).count("running") == 2)
    running = [held.trainers(n) for n in range(1, 7)]
    assert sum(map(bool, running)) == 2
    for n in range(1, 7):
        end(held, n)
    held.until(lambda: set(phases(here, 6)) == {"succeeded"})
    assert sorted(held.said) == [f"start {n}" for n in range(1, 7)]


def test_what_nobody_asks_about_gives_its_slot_back(held: Bench):
    """A job whose supervisor was killed, and which no ledger knows any more, holds nobody up."""
    here = executor(held)
    here.submit(job(1))
    here.submit(job(2))
    held.until(lambda: held.said)
    pid = held.supervisor(1)
    os.kill(pid, signal.SIGKILL)
    held.until(lambda: processes.identity(pid) is None)
    held.until(lambda: here.poll([key_of("r", 2)])[key_of("r", 2)].phase == "running")
    assert held.at(1).read("exit.json")["phase"] == "lost"


def rests(engine: Engine, rest_s: float) -> LocalExecutor:
    """Have the first job rest, since its image could not be had; from now on any could."""
    outage = engine.home / "outage"
    outage.write_text("no route to host")
    here = engine.executor(rest_s=rest_s)
    here.submit(job(1))
    engine.bench.until(lambda: engine.bench.at(1).has(files.RESTING))
    outage.unlink()
    return here


@pytest.mark.parametrize("killed", [False, True])
def test_one_that_rests_until_its_next_try(engine: Engine, killed: bool):
    """Others get its slot meanwhile; after its rest it waits for one, whoever is killed."""
    here = rests(engine, 3.0)
    here.submit(job(2))
    engine.bench.until(lambda: phases(here, 2) == ["queued", "running"])
    assert here.poll([key_of("r", 1)])[key_of("r", 1)].reason.endswith("no route to host")
    ticket = here.slots.tickets()[key_of("r", 1)]
    engine.bench.until(lambda: not here.slots._rests(ticket))
    here.submit(job(3))
    if killed:
        engine.bench.kill_supervisor(1)
        # By someone who has not heard yet that its slot is gone.
        assert here._start(engine.bench.at(1)) == CLAIMED
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert phases(here, 3) == ["queued", "running", "queued"]
        time.sleep(0.1)
    assert engine.bench.said == ["start 0"]
    engine.go(0)
    engine.bench.until(lambda: phases(here, 3) == ["succeeded"] * 3)
    assert engine.bench.said == ["start 0", "end 0"] * 3


def test_one_that_rests_keeps_its_slot_where_nobody_waits(engine: Engine):
    """It is tried again without any dispatcher, and from then on its slot is its own."""
    here = rests(engine, 0.5)
    engine.bench.until(lambda: engine.bench.said == ["start 0"])
    here.submit(job(2))
    assert phases(here, 2) == ["running", "queued"]
    engine.go(0)


def test_a_slot_that_others_got_while_nobody_looked_after_the_one_that_rests(engine: Engine):
    """A supervisor that is started for it then begins nothing, and can be told to end."""
    here = rests(engine, 60.0)
    engine.bench.kill_supervisor(1)
    here.slots.join(key_of("r", 2), 1e10)
    other = engine.bench.at(2)
    os.mkdir(other.path)
    other.write(files.JOB, {})
    assert here.slots.advance() == [key_of("r", 2)]
    assert here._start(engine.bench.at(1)) == CLAIMED
    time.sleep(1.5)
    assert engine.bench.said == []
    assert not here.slots.begins(key_of("r", 1))
    here.cancel(key_of("r", 1))
    engine.bench.until(lambda: engine.bench.at(1).has(files.EXIT))
    assert engine.bench.said == []


def test_one_that_rests_for_ever_by_a_clock_that_was_set(engine: Engine):
    """A clock that goes back, or a file that nobody can read, keeps no job from its slot."""
    here = rests(engine, 60.0)
    ticket = here.slots.tickets()[key_of("r", 1)]
    assert here.slots._rests(ticket)
    for said in ({"at": time.time() + 100, "rest_s": 60}, {"at": 1, "rest_s": 60}, {}):
        engine.bench.at(1).write(files.RESTING, said)
        assert not here.slots._rests(ticket)
    here.cancel(key_of("r", 1))


def test_jobs_of_before_there_were_slots(held: Bench):
    """One that began keeps running and counts; one without a ticket gets one."""
    here = executor(held)
    for n in range(1, 4):
        here.submit(job(n))
    held.until(lambda: held.said)
    for file in held.state.glob("jobs/.slots/*-*"):
        file.unlink()
    assert phases(here, 3) == ["running", "queued", "queued"]
    assert [each.has_slot for each in here.slots.tickets().values()] == [True, False, False]


def test_a_folder_of_jobs_that_is_gone(held: Bench):
    """Nothing is made in its place, and nothing is known."""
    here = executor(held)
    assert here.slots.tickets() == {}
    with pytest.raises(OSError, match=r"\.slots"):
        Slots(here.jobs, 1).advance()
    assert not held.state.exists()
