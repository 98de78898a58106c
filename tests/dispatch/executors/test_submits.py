"""A job is started once, whatever becomes of who starts it, and of the name that it had."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from local_jobs import job, program

from taskgraph_workers.dispatch.executors.base import NotNow, Unreachable
from taskgraph_workers.dispatch.executors.command import CommandExecutor
from taskgraph_workers.model import Commands

#: Says that it was called, waits until it may go on, and has the job be there.
SUBMIT = """
echo "$1" >>called
while [ ! -e go ]; do sleep 0.05; done
echo "$1" >>started
touch there
"""

#: A dispatcher as far as this matters: it asks for one job, and is killed meanwhile.
DISPATCHER = """
import os, sys, test_submits
from local_jobs import job
test_submits.executor().submit(job())
"""


def executor(**given: str) -> CommandExecutor:
    """A site in the current folder: there is a job where there is a file."""
    says = {
        "submit": SUBMIT,
        "find": "test ! -e there || echo there",
        "poll": "test -e there && echo running || echo lost",
        "cancel": "rm -f there",
        "release": "rm -f there",
    }
    words = {name: ("sh", "-c", say, "sh", "{key}") for name, say in {**says, **given}.items()}
    return CommandExecutor(Commands("site", **words, timeout_s=20), "state")  # type: ignore[arg-type]


def wait_for(path: Path) -> None:
    limit = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < limit, path
        time.sleep(0.02)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def killed_in_submit(site: Path) -> None:
    """Leave a submit behind that has yet to start the job."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    dispatcher = program(f"import sys; sys.path[:0] = {path.split(os.pathsep)!r}\n{DISPATCHER}")
    wait_for(site / "called")
    dispatcher.send_signal(signal.SIGKILL)
    dispatcher.wait()


def test_a_submit_that_outlives_its_dispatcher(site: Path):
    """Nobody starts the job, or says that there is none, while one that may start it goes on."""
    killed_in_submit(site)
    for _ in range(3):
        with pytest.raises(NotNow, match="an earlier submit of it has not ended yet"):
            executor().find(job().key)
        with pytest.raises(NotNow, match="an earlier submit of it has not ended yet"):
            executor().submit(job())
    assert (site / "called").read_text() == f"{job().key}\n"
    assert list((site / "state" / "submits").glob("*.env"))
    (site / "go").touch()
    wait_for(site / "there")
    assert executor().find(job().key) == job().key
    assert executor().submit(job()) == job().key
    assert (site / "started").read_text() == f"{job().key}\n"


def test_variables_that_were_left_behind(site: Path):
    """They are removed by the next who looks when the submit has ended."""
    killed_in_submit(site)
    (site / "go").touch()
    wait_for(site / "there")
    limit = time.monotonic() + 60
    while list((site / "state" / "submits").glob("*.env")):
        assert executor().find(job().key) == job().key
        assert time.monotonic() < limit


def test_a_name_that_is_free_again(site: Path):
    """A job that has ended and was let go of is never started again by who looked before."""
    (site / "go").touch()
    late = executor()
    assert executor().submit(job()) == job().key
    executor().release(job().key)
    assert not (site / "there").exists()
    assert late.submit(job()) == job().key
    assert executor().find(job().key) == job().key
    assert executor().poll([job().key])[job().key].phase == "lost"
    assert (site / "started").read_text() == f"{job().key}\n"


def test_one_that_was_found_is_never_started(site: Path):
    """Also when it was found by who wanted to start it, and is gone since."""
    (site / "go").touch()
    (site / "there").touch()
    assert executor().submit(job()) == job().key
    (site / "there").unlink()
    assert executor().submit(job()) == job().key
    assert not (site / "called").exists()


def test_a_submit_that_fails_is_tried_again(site: Path):
    """It holds up no other job, since somebody could be asked; it is started when it can be."""
    fails = executor(submit="exit 1")
    for _ in range(2):
        assert fails.find(job().key) is None
        with pytest.raises(NotNow, match="submit failed: exit code 1"):
            fails.submit(job())
    (site / "go").touch()
    assert executor().submit(job()) == job().key
    assert (site / "started").read_text() == f"{job().key}\n"
    assert oct(os.stat("state/submits").st_mode & 0o777) == "0o700"


def test_where_nothing_can_be_written(site: Path):
    """Nothing is started that nobody could know of."""
    (site / "go").touch()
    (site / "state").write_text("")
    with pytest.raises(Unreachable, match=r"site: .*submits: Not a directory"):
        executor().submit(job())
    assert not (site / "called").exists()
