"""Processes that others started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from taskgraph_workers.dispatch.executors import processes
from taskgraph_workers.dispatch.executors.call import call


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Return a process with a name that looks like the end of one, and a mark."""
    code = "import sys, time; print(flush=True); time.sleep(60)"
    command = [sys.executable, "-c", code]
    made = subprocess.Popen(command, env={"MARK": "a b=c"}, stdout=subprocess.PIPE)
    assert made.stdout is not None
    made.stdout.readline()
    yield made
    made.kill()
    made.wait()


def test_identity(child: subprocess.Popen[bytes]):
    """The same as long as it lives; none for what is gone, a zombie too."""
    known = processes.identity(child.pid)
    assert known is not None
    assert processes.identity(child.pid) == known
    assert known != processes.identity(os.getpid())
    assert processes.is_same(child.pid, known)
    assert not processes.is_same(os.getpid(), known)
    child.kill()
    while processes.identity(child.pid) is not None:
        time.sleep(0.01)
    assert child.returncode is None  # not waited for yet
    child.wait()
    assert processes.identity(child.pid) is None
    assert not processes.is_same(child.pid, known)


@pytest.mark.parametrize("pid", [None, "1", -1, 0, True, 1.0])
def test_what_is_no_process(pid: object):
    """A file that was tampered with names none."""
    assert not processes.is_same(pid, processes.identity(1) if pid is not True else None)


def test_identity_without_proc(child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch):
    """As on other systems: what ps says."""
    monkeypatch.setattr(processes, "_PROC", "/no-proc")
    known = processes.identity(child.pid)
    assert known is not None
    assert known == processes.identity(child.pid)
    child.kill()
    child.wait()
    assert processes.identity(child.pid) is None
    assert list(processes.with_variable("MARK", "a b=c")) == []


def test_signal(child: subprocess.Popen[bytes]):
    """Sent to the one that was known, and to no other of its number."""
    known = processes.identity(child.pid)
    assert known is not None
    assert not processes.signal_same(child.pid, "0/1", signal.SIGKILL)
    assert child.poll() is None
    assert processes.signal_same(child.pid, known, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert not processes.signal_same(child.pid, known, signal.SIGKILL)


def test_by_a_variable(child: subprocess.Popen[bytes]):
    """Exactly this value; all with it are killed."""
    assert child.pid in processes.with_variable("MARK", "a b=c")
    assert child.pid not in processes.with_variable("MARK", "a b")
    assert processes.kill_all_with("MARK", "a b")
    assert child.poll() is None
    assert processes.kill_all_with("MARK", "a b=c")
    assert child.wait() == -signal.SIGKILL


def test_no_such_group():
    """Nothing to do, where the system itself would say that there is none."""
    nobody = 2**22 - 1
    with pytest.raises(ProcessLookupError):
        os.killpg(nobody, 0)
    processes.kill_group(nobody, signal.SIGKILL)


# --- commands from outside ---


def test_call():
    """Output, exit code, no input, and only the variables that are given."""
    script = "cat; echo $A$HOME; echo last >&2; exit 3"
    answer = call(["sh", "-c", script], {"A": "x", "PATH": os.environ["PATH"]}, 20)
    assert (answer.code, answer.out, answer.err) == (3, "x\n", "last\n")
    assert answer.told() == "exit code 3: last"
    assert call(["sh", "-c", "kill -9 $$"], os.environ, 20).told() == "signal 9"


def test_call_that_leaves_something_behind():
    """What holds the output open afterwards is not waited for."""
    began = time.monotonic()
    answer = call(["sh", "-c", "sleep 60 & echo done"], os.environ, 30)
    assert (answer.code, answer.out) == (0, "done\n")
    assert time.monotonic() - began < 20


def test_call_that_closes_its_output():
    """It is waited for all the same, up to its time."""
    assert call(["sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 4"], os.environ, 20).code == 4
    assert call(["sh", "-c", "exec >&- 2>&-; sleep 60"], os.environ, 0.5).why.startswith(
        "no answer"
    )


def test_what_is_told_fits_a_line():
    """Whatever it prints."""
    answer = call(["sh", "-c", r"printf 'a\n\033[31mb\nc%1000d\n\n' 1 >&2; exit 1"], os.environ, 20)
    assert len(answer.told()) < 250
    assert answer.told().isprintable()
