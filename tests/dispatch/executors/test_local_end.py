"""How jobs on this machine are ended: canceled, overdue, with the machine."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest
from local_jobs import Bench, job

from taskgraph_workers.dispatch.executors import processes
from taskgraph_workers.dispatch.executors.base import Unreachable
from taskgraph_workers.dispatch.message import key_of

KEY = key_of("r", 1)

#: A trainer with a child in a session of its own; both ignore TERM.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) == 1:
    subprocess.Popen([sys.executable, __file__, "child"], start_new_session=True, close_fds=False)
open(os.environ["TRACE"], "a").write("start\\n")
time.sleep(60)
"""


def test_cancel(bench: Bench):
    """It is asked to end, and ends; nothing is tried again."""
    executor = bench.executor(*bench.trainer(waits=True))
    executor.submit(job(retries=5))
    bench.until(lambda: bench.said)
    executor.cancel(KEY)
    executor.cancel(KEY)
    ended = bench.ended(executor)
    assert (ended.phase, ended.exit_code, ended.run) == ("canceled", 143, 0)
    assert (bench.said, bench.trainers()) == (["start 0"], [])
    executor.cancel(KEY)
    assert bench.ended(executor) == ended


def test_cancel_takes_no_time(bench: Bench):
    """The supervisor is woken, and does not sleep on for a second."""
    executor = bench.executor("sleep", "60")
    spent = []
    for n in range(1, 6):
        executor.submit(job(n))
        bench.until(lambda n=n: bench.trainers(n))
        began = time.monotonic()
        executor.cancel(key_of("r", n))
        bench.ended(executor, n)
        spent.append(time.monotonic() - began)
    assert min(spent) < 0.9


def test_cancel_of_what_has_ended(bench: Bench):
    """It stays what it was."""
    executor = bench.executor()
    executor.submit(job())
    ended = bench.ended(executor)
    executor.cancel(KEY)
    assert (bench.ended(executor), ended.phase) == (ended, "succeeded")
    assert not bench.at().has("cancel.json")


def test_cancel_beats_a_start(bench: Bench):
    """One that is canceled before its supervisor looked never runs."""
    executor = bench.executor(failpoint="supervisor-locked")
    with pytest.raises(Unreachable, match="broke off"):
        executor.submit(job())
    executor.cancel(KEY)
    ended = bench.ended(bench.executor())
    assert (ended.phase, ended.reason) == ("canceled", "it never ran")
    assert bench.said == []


def test_all_that_it_started_ends_with_it(bench: Bench):
    """Also what ignores TERM, and what went into a session of its own."""
    script = bench.folder / "stubborn.py"
    script.write_text(STUBBORN)
    executor = bench.executor(sys.executable, str(script), grace_s=1)
    executor.submit(job())
    bench.until(lambda: len(bench.said) == 2)
    assert len(bench.trainers()) == 2
    executor.cancel(KEY)
    ended = bench.ended(executor)
    assert (ended.phase, ended.exit_code) == ("canceled", 137)
    assert bench.trainers() == []


def test_what_it_leaves_behind_ends(bench: Bench):
    """A training that has ended holds no GPU any more."""
    executor = bench.executor("sh", "-c", "sleep 60 & setsid sleep 60 & exit 0")
    executor.submit(job())
    assert bench.ended(executor).phase == "succeeded"
    assert bench.trainers() == []


def test_a_limit_to_its_time(bench: Bench):
    """It is ended, and has failed."""
    executor = bench.executor(*bench.trainer(waits=True))
    executor.submit(job(max_run_time_s=1, retries=3))
    ended = bench.ended(executor)
    assert (ended.phase, ended.run, ended.exit_code) == ("failed", 0, 143)
    assert ended.reason == "it ran longer than 1 s"


def test_a_machine_that_goes_down(bench: Bench):
    """A TERM to the supervisor ends the trainer, which has not failed: it runs again, later."""
    executor = bench.executor(*bench.trainer(waits=True))
    executor.submit(job(retries=1))
    bench.until(lambda: bench.said)
    pid = bench.supervisor()
    os.kill(pid, signal.SIGTERM)
    bench.until(lambda: processes.identity(pid) is None)
    assert (bench.trainers(), bench.at().has("exit.json")) == ([], False)
    assert executor.poll([KEY])[KEY].run == 1
    bench.go.touch()
    assert bench.ended(executor).phase == "succeeded"
    assert bench.said == ["start 0", "start 1", "end 1"]


def test_a_machine_that_tells_the_trainer_first(bench: Bench):
    """Everything on it gets its TERM, in any order."""
    executor = bench.executor("sleep", "60")
    executor.submit(job(retries=1))
    (trainer,) = bench.until(bench.trainers)
    pid = bench.supervisor()
    os.kill(trainer, signal.SIGTERM)
    time.sleep(0.1)
    os.kill(pid, signal.SIGTERM)
    bench.until(lambda: processes.identity(pid) is None)
    assert not bench.at().has("exit.json")
