"""What is kept of launches, and how they are looked at and ended."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from scheduler_stand_in import Queue
from taskgraph_workers.errors import Problem, WorkersError
from taskgraph_workers.launch import jobs
from taskgraph_workers.launch.jobs import Launch, Submission
from taskgraph_workers.schedulers.base import Answer, Command, Job, SchedulerError, State

ENDED = State("ended", "COMPLETED", "node1", True)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody waits here; and all is done in a folder of its own."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.chdir(tmp_path)


def submit(queue: Queue, text: str = "#!/bin/bash\n", **fields: Any) -> tuple[Launch, State]:
    submission = Submission(text, {"version": 1}, Job(**fields))
    return jobs.submit("launches", submission, queue, queue.run)


def test_all_is_kept_together(tmp_path: Path):
    """The very script, its sizing and the job's id, under a number; and it is found again."""
    queue = Queue(states=[State("pending", "Resources")])
    launch, state = submit(queue, "#!/bin/bash\n# é\n", output="w-{id}.out")
    folder = tmp_path / "launches" / "0001"
    assert sorted(each.name for each in folder.iterdir()) == [
        "job.json",
        "sizing.json",
        "workers.here",
    ]
    assert (folder / "workers.here").read_bytes() == "#!/bin/bash\n# é\n".encode()
    assert json.loads((folder / "sizing.json").read_text("utf-8")) == {"version": 1}
    assert queue.asked[0] == ("submit", str(folder / "workers.here"), "#!/bin/bash\n# é\n")
    assert (launch.job, launch.number, state.phase) == ("41", 1, "pending")
    assert launch.output_file == str(tmp_path / "w-41.out")
    assert jobs.launches("launches") == [launch]


def test_several_at_once(tmp_path: Path):
    """Each gets a number of its own, whoever else is at it."""
    with ThreadPoolExecutor(16) as pool:
        folders = list(pool.map(lambda _: jobs.new_folder("launches"), range(64)))
    assert sorted(folders) == [f"launches/{n:04d}" for n in range(1, 65)]
    assert jobs.numbers("launches") == list(range(1, 65))


def test_other_things_in_the_folder(tmp_path: Path):
    """Are nobody's number."""
    (tmp_path / "launches").mkdir()
    for name in ("notes", "12", "0007x", "0003"):
        (tmp_path / "launches" / name).mkdir()
    assert jobs.new_folder("launches") == "launches/0004"


def test_killed_in_between(tmp_path: Path):
    """While the scheduler is asked, the folder says that no job is known; so it stays."""
    program = (
        "import os, sys\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from scheduler_stand_in import Queue\n"
        "from taskgraph_workers.launch import jobs\n"
        "queue = Queue()\n"
        "jobs.submit('launches', jobs.Submission('x', {}), queue, lambda _: os._exit(9))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    (launch,) = jobs.launches("launches")
    assert (launch.job, launch.scheduler, launch.where) == (None, "here", str(tmp_path))
    assert jobs.state_of(launch, Queue(), Queue().run).phase == jobs.BROKEN_OFF
    (tmp_path / "launches" / "0002").mkdir()
    assert jobs.state_of(jobs.launches("launches")[1], None, Queue().run).phase == jobs.BROKEN_OFF
    with pytest.raises(WorkersError, match="0001 can't be stopped: broken off"):
        jobs.stop(launch, Queue(), Queue().run)


def test_a_refused_job():
    """What the scheduler said is raised, and kept."""
    with pytest.raises(SchedulerError, match="no such partition"):
        submit(Queue(refusal="no such partition"))
    (launch,) = jobs.launches("launches")
    state = jobs.state_of(launch, Queue(), Queue().run)
    assert (state.phase, "no such partition" in state.reason) == (jobs.REFUSED, True)


def test_a_job_that_can_never_run():
    """Flux takes it, and ends it a moment later: that is no success."""
    states = [State("pending", "SCHED")] * 2 + [State("ended", "unsatisfiable", "", False)]
    with pytest.raises(SchedulerError, match="took job 41, and ended it at once: unsatisfiable"):
        submit(Queue(settles_late=True, states=states))
    assert jobs.launches("launches")[0].job == "41"


def test_a_folder_that_can_not_be_written(tmp_path: Path):
    """Is told, and nothing is submitted."""
    (tmp_path / "launches").write_text("")
    queue = Queue()
    with pytest.raises(WorkersError, match="launches: can't be written"):
        submit(queue)
    assert queue.asked == []


@pytest.mark.parametrize(
    ("number", "ended"), [(2, -signal.SIGINT), (15, -signal.SIGTERM), (1, -signal.SIGHUP)]
)
def test_ended_while_the_scheduler_is_asked(number: int, ended: int):
    """The id is kept first, since the job is there in any case; saying it twice counts at once."""
    program = (
        "import os, sys\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from scheduler_stand_in import Queue\n"
        "from taskgraph_workers.launch import jobs\n"
        "queue = Queue()\n"
        "def run(command):\n"
        "    for _ in range(int(sys.argv[1])):\n"
        f"        os.kill(os.getpid(), {number})\n"
        "    return queue.run(command)\n"
        "jobs.submit('launches', jobs.Submission('x', {}), queue, run)\n"
    )
    command = [sys.executable, "-c", program]
    once = subprocess.run([*command, "1"], check=False, stderr=subprocess.DEVNULL)
    assert once.returncode == ended
    subprocess.run([*command, "2"], check=False, stderr=subprocess.DEVNULL)
    assert [launch.job for launch in jobs.launches("launches")] == ["41", None]


class Full(Queue):
    """A queue on a machine whose disk is full from the moment it is asked."""

    def run(self, command: Command) -> Answer:
        """As the queue's own."""
        self.on_full_disk(OSError(errno.ENOSPC, "No space left on device"))
        return super().run(command)

    def on_full_disk(self, error: OSError) -> None:
        """A test sets it."""


@pytest.mark.parametrize("refusal", ["", "no such partition"])
def test_a_disk_that_is_full_once_the_job_is_there(monkeypatch: pytest.MonkeyPatch, refusal: str):
    """The job's id is told all the same, or the refusal; and no half a file is left."""

    def full(error: OSError) -> None:
        def fsync(_: int) -> None:
            raise error

        monkeypatch.setattr("os.fsync", fsync)

    queue = Full(refusal=refusal)
    monkeypatch.setattr(queue, "on_full_disk", full)
    if refusal:
        with pytest.raises(SchedulerError, match="no such partition"):
            submit(queue)
    else:
        launch, state = submit(queue)
        assert launch.job == "41"
        assert state.reason == "its id can't be kept in launches/0001: No space left on device"
    assert sorted(os.listdir("launches/0001")) == ["job.json", "sizing.json", "workers.here"]


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "[" * 100_000,
        '{"scheduler": "here", "where": ".", "job": 5, "output": "", "refused": "", "ended": {}}',
        '{"scheduler": "here", "where": ".", "job": "5", "output": 7, "refused": "", "ended": {}}',
        '{"scheduler": "here", "where": ".", "job": "5", "output": "x", "refused": "",'
        ' "ended": {"reason": null}}',
    ],
)
def test_a_file_that_was_never_written_here(text: str):
    """Is no launch's: it is as if there were none."""
    folder = Path(jobs.new_folder("launches"))
    (folder / "job.json").write_text(text)
    assert jobs.launches("launches") == [Launch(str(folder), "", "")]


# --- which one ------------------------------------------------------------------------------


@pytest.fixture
def three() -> None:
    """Launches 1, 2 and 3, with the jobs 3, 12 and 77; and a fourth one without."""
    for job in ("3", "12", "77", None):
        jobs.keep(Launch(jobs.new_folder("launches"), "here", ".", job))


@pytest.mark.parametrize(
    ("said", "number"),
    [(None, 4), ("1", 1), ("0001", 1), ("12", 2), ("77", 3), ("0003", 3), ("2", 2)],
)
@pytest.mark.usefixtures("three")
def test_which_one(said: str | None, number: int):
    """That of a number, or of a job; the last, if nobody says which."""
    assert jobs.pick("launches", said).number == number


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("3", "3 is a launch and the job of another one\n    hint: say 0003 for the launch"),
        (
            "5",
            "there is no launch and no job 5 in launches\n    hint: there is: 0001 (job 3), 0002",
        ),
        ("x", "there is no launch and no job x"),
        ("\u00b2", "there is no launch and no job \u00b2"),
        ("9" * 5000, "there is no launch and no job 999"),
    ],
)
@pytest.mark.usefixtures("three")
def test_none_or_two(said: str, told: str):
    """Is an error, with what to say."""
    with pytest.raises(WorkersError) as caught:
        jobs.pick("launches", said)
    assert told in str(caught.value)


def test_nothing_was_launched():
    """Where there is no folder."""
    with pytest.raises(WorkersError, match="nothing was launched in launches"):
        jobs.pick("launches", None)


# --- how it is, and its end -----------------------------------------------------------------


def test_an_end_is_remembered():
    """The scheduler is not asked again, and may have forgotten the job."""
    queue = Queue(states=[State("running"), ENDED, State("unknown")])
    launch, _ = submit(queue)
    assert jobs.state_of(launch, queue, queue.run) == ENDED
    count = len(queue.asked)
    assert jobs.state_of(jobs.pick("launches", None), queue, queue.run) == ENDED
    assert len(queue.asked) == count


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("x\n2026 workers: all ended, with status 0\n", State("ended", "status 0", "", True)),
        ("2026 workers: all ended, with status 7", State("ended", "status 7", "", False)),
        ("all ended, with status 0\nmore", State("unknown", "nobody knows it any more")),
        ("", State("unknown", "nobody knows it any more")),
        (None, State("unknown", "nobody knows it any more")),
    ],
)
def test_a_job_that_is_forgotten(tmp_path: Path, said: str | None, state: State):
    """Its output tells how it ended, where that is its last line."""
    queue = Queue(states=[State("running"), State("unknown")])
    launch, _ = submit(queue, output="w-{id}.out")
    if said is not None:
        (tmp_path / "w-41.out").write_text(said)
    assert jobs.state_of(launch, queue, queue.run) == state


def test_a_scheduler_that_does_not_answer():
    """The job is submitted all the same, and its id is kept."""
    queue = Queue()

    def state(job: str, answer: Any) -> State:
        raise SchedulerError(Problem("no answer within 30 s"))

    queue.state = state  # type: ignore[method-assign]
    launch, found = submit(queue)
    assert (launch.job, found) == ("41", State("unknown", "no answer within 30 s"))
    assert jobs.launches("launches") == [launch]


def test_a_warm_stop(tmp_path: Path):
    """The file is written and the script told; the file is taken away when the job is gone."""
    queue = Queue()
    launch, _ = submit(queue)
    seen: list[bool] = []

    def run(command: Any) -> Any:
        seen.append((tmp_path / "workers-41.stop").exists())
        return queue.run(command)

    waits: list[bool] = []
    stopped = jobs.stop(launch, queue, run, waits=lambda: waits.append(True))
    assert (stopped.how, stopped.state.succeeded, waits) == ("warmly", True, [True])
    assert ("end", "41") in queue.asked
    assert ("cancel", "41") not in queue.asked
    assert seen[-1]
    assert not (tmp_path / "workers-41.stop").exists()


def test_a_stop_that_is_broken_off(tmp_path: Path):
    """The file stays: the script may not have seen it yet."""
    queue = Queue()
    launch, _ = submit(queue)

    def run(command: Any) -> Any:
        if (tmp_path / "workers-41.stop").exists() and command.argv[0] == "poll":
            raise KeyboardInterrupt
        return queue.run(command)

    with pytest.raises(KeyboardInterrupt):
        jobs.stop(launch, queue, run)
    assert (tmp_path / "workers-41.stop").exists()


def test_a_scheduler_that_is_away_for_a_while():
    """Is waited for."""
    queue = Queue()
    launch, _ = submit(queue)
    away = iter([False, True, True])

    def state(job: str, answer: Any) -> State:
        if next(away, False):
            raise SchedulerError(Problem("no answer"))
        return Queue.state(queue, job, answer)

    queue.state = state  # type: ignore[method-assign]
    assert jobs.stop(launch, queue, queue.run).how == "warmly"


def test_a_stop_that_takes_too_long():
    """After the limit the job is canceled."""
    queue = Queue(ends=False)
    launch, _ = submit(queue)
    stopped = jobs.stop(launch, queue, queue.run, wait_s=0.01)
    assert (stopped.how, stopped.state.reason) == ("killed", "CANCELED")


@pytest.mark.parametrize(("state", "now"), [("pending", False), ("running", True)])
def test_a_cancel(tmp_path: Path, state: str, now: bool):
    """Where nothing runs yet, or where it has to be at once; nobody is asked to end."""
    queue = Queue(states=[State(state, "x")])
    launch, _ = submit(queue)
    assert jobs.stop(launch, queue, queue.run, now=now, waits=pytest.fail).how == "canceled"
    assert ("end", "41") not in queue.asked


def test_a_stop_after_the_end():
    """Does nothing."""
    queue = Queue(states=[State("running"), ENDED])
    launch, _ = submit(queue)
    assert jobs.stop(launch, queue, queue.run, waits=pytest.fail).how == "ended"
    assert {each[0] for each in queue.asked} == {"submit", "poll"}


def test_a_job_that_stays():
    """What the scheduler says is told."""
    queue = Queue()
    launch, _ = submit(queue)

    def run(command: Any) -> Any:
        answer = queue.run(command)
        if command.argv[0] == "cancel":
            queue.states = [State("running")]
            return type(answer)(1, stderr="not yours")
        return answer

    with pytest.raises(SchedulerError, match="job 41 could not be canceled: not yours"):
        jobs.stop(launch, queue, run, now=True)


def test_a_stop_from_elsewhere(tmp_path: Path):
    """Where the file can't be written the signal is enough; without one, that is told."""
    queue = Queue()
    launch = Launch("launches/0001", "here", str(tmp_path / "gone"), "41")
    jobs.new_folder("launches")
    assert jobs.stop(launch, queue, queue.run).how == "warmly"
    silent = Queue()
    silent.end = lambda job: None  # type: ignore[method-assign]
    with pytest.raises(WorkersError, match=r"workers-41\.stop can't be written"):
        jobs.stop(launch, silent, silent.run)


def test_the_output_that_is_there(tmp_path: Path):
    """Of several names that an output may have, the one that is there is told."""
    launch = Launch("launches/0001", "here", str(tmp_path), "1", ("w-1.out", "w-one.out"))
    assert launch.output_file == str(tmp_path / "w-1.out")
    (tmp_path / "w-one.out").touch()
    assert launch.output_file == str(tmp_path / "w-one.out")
    assert Launch("launches/0001", "here", str(tmp_path), "1").output_file is None
