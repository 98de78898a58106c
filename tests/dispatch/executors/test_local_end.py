"""How jobs on this machine are ended: canceled, overdue, with the machine."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time

import pytest
from local_jobs import Bench, job, program

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


#: Makes its witness and its supervisor write no more, as if the disk were full.
FILLER = """
import json, os, resource
folder = os.path.dirname(os.path.dirname(os.environ["TRAINING_PROGRESS_FILE"]))
supervisor = json.load(open(folder + "/supervisor.json"))["pid"]
for pid in (os.getppid(), supervisor):
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
open(os.environ["TRACE"], "a").write("start\\n")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits other processes")
def test_an_end_that_can_not_be_written(bench: Bench):
    """On a full disk the supervisor waits: the training is neither lost nor started again."""
    executor = bench.executor(sys.executable, "-c", FILLER)
    executor.submit(job(retries=5))
    bench.until(lambda: bench.said and not bench.trainers())
    time.sleep(0.5)
    assert executor.poll([KEY])[KEY].phase == "running"
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(bench.supervisor(), resource.RLIMIT_FSIZE, unlimited)
    assert (bench.ended(executor).phase, bench.said) == ("succeeded", ["start"])


#: A supervisor on a machine that has no memory left for a trainer.
FULL = """
import errno, os, sys
from taskgraph_workers.dispatch.executors import supervisor
def start(training, argv):
    raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
supervisor.Training._popen = start
supervisor.Supervisor(supervisor.Folder(sys.argv[1]), -1).run()
"""


def test_a_trainer_that_can_not_be_started_now(bench: Bench):
    """What was never started is not lost: it begins when there is room, though it has no retry."""
    executor = bench.executor()
    executor._make(job(), bench.at())
    for _ in range(2):
        _, err = program(FULL, bench.at().path).communicate(timeout=30)
        assert "Cannot allocate memory" in err
        assert bench.at().runs() == []
    ended = bench.ended(executor)
    assert (ended.phase, ended.run, bench.said) == ("succeeded", 0, ["start 0", "end 0"])


def test_jobs_that_were_moved_away(bench: Bench):
    """A disk that is gone says nothing of what was on it: that is unknown, until it is back."""
    executor = bench.executor()
    executor.submit(job())
    bench.ended(executor)
    jobs = bench.state / "jobs"
    jobs.rename(bench.folder / "away")
    assert executor.poll([KEY])[KEY].phase == "unknown"
    assert list(executor.progress(KEY)) == []
    (bench.folder / "away").rename(jobs)
    other = key_of("r", 9)
    found = executor.poll([KEY, other])
    assert (found[KEY].phase, found[other].phase) == ("succeeded", "lost")
