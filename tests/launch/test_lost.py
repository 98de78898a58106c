"""Launches that know a name of a job, and no id."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler_stand_in import Queue
from taskgraph_workers.launch import jobs, lost
from taskgraph_workers.schedulers.base import Answer, Command, Job, SchedulerError

SUBMISSION = jobs.Submission("true\n", {}, Job("Merlin"))


def broken_off(base: Path) -> jobs.Launch:
    """A launch whose submission was killed, as it is read from its folder."""

    def killed(_: Command) -> Answer:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jobs.submit(str(base), SUBMISSION, Queue(), killed)
    return jobs.launches(str(base))[-1]


def test_jobs_that_may_be_its(tmp_path: Path):
    """Those of its name that no other launch knows, with what ends them; they stay."""
    queue = Queue(named=("40", "41", "42"))
    jobs.submit(str(tmp_path), SUBMISSION, queue, queue.run)  # job 41
    launch, asked = broken_off(tmp_path), len(queue.asked)
    state = lost.state_of(launch, queue, queue.run)
    assert lost.is_lost(launch)
    assert state.phase == jobs.BROKEN_OFF
    told = "named 'Merlin', and of no launch: 40, 42 (cancel 40 or cancel 42)"
    assert told in state.reason
    assert queue.asked[asked:] == [("find", "Merlin")]


def test_there_is_none(tmp_path: Path):
    """Then it says so."""
    queue = Queue()
    assert "no job" in lost.state_of(broken_off(tmp_path), queue, queue.run).reason


def test_no_answer_is_no_refusal(tmp_path: Path):
    """A job whose submission hung may have been taken; one that was refused was not."""
    hung = Queue(refusal="no answer within 30 s")
    for number, is_hung in ((1, True), (2, False)):
        answer = Answer(1, stderr=hung.refusal, hung=is_hung)
        with pytest.raises(SchedulerError, match="no answer"):
            jobs.submit(str(tmp_path), SUBMISSION, hung, lambda _, answer=answer: answer)
        launch = jobs.launches(str(tmp_path))[-1]
        assert (launch.number, lost.is_lost(launch)) == (number, is_hung)
