"""What a dispatcher does with requests, turn by turn, on a clock of the test's own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dispatching import Service, World, down

from taskgraph_workers.dispatch.executors.base import AskedToGo, Impossible
from taskgraph_workers.dispatch.ledger import attempts, machines, progress, queries
from taskgraph_workers.dispatch.ledger.attempts import Owner
from taskgraph_workers.dispatch.means import Pace
from taskgraph_workers.dispatch.model import Progress, Status


def test_a_message_becomes_a_training_and_its_end_is_told(world: World):
    """One turn starts it; once it has ended, the next ones say so, once."""
    world.send("r1")
    world.turns()
    assert world.states() == {"r1": "submitted"}
    world.turns()
    assert world.states() == {"r1": "running"}
    world.service.end()
    world.turns(5)
    assert world.states() == {"r1": "succeeded"}
    assert world.facts() == ["trainingVmCreated", "trainingSuceededWithImages"]
    assert [end.body for end in world.ends()] == [
        {"trainingVmId": "vm-1", "requestId": "r1", "outcome": "succeeded", "runId": 0}
    ]
    assert world.loop.is_idle()


def test_progress_is_written_down_as_it_comes(world: World):
    """Facts are shown in their order, late ones of an ended run, too; nothing changes its end."""
    world.send("r1")
    world.turns(2)
    (handle,) = world.service.statuses
    world.service.told[handle].append(Progress("imagesDownloaded", 5.0))
    world.turns()
    assert world.facts() == ["trainingVmCreated", "imagesDownloaded"]
    world.service.told[handle].append(Progress("modelIteration1Done", 6.0))
    world.service.told[handle].append(Progress("trainingFailed", 6.0))
    world.service.end()
    world.turns(3)
    assert world.facts()[1:] == [
        "imagesDownloaded",
        "modelIteration1Done",
        "trainingSuceededWithImages",
    ]
    assert world.states() == {"r1": "succeeded"}


def test_what_a_job_holds_is_let_go_of_and_what_was_told_last_is_taken(world: World):
    """Only after its end is recorded, again until it succeeds, and then its machine is gone."""
    world.send("r1")
    world.turns(2)
    (handle,) = world.service.statuses
    world.service.before["release"] = [down(), RuntimeError("hm")]
    world.service.end()
    world.turns()
    assert world.states() == {"r1": "succeeded"}
    assert (world.service.released, world.loop.is_idle()) == (set(), False)
    overdue = machines.overdue, world.clock.now + 1000, 0.0
    assert [each.id for each in world.ledger.see(*overdue)] == ["vm-1"]
    gone = Progress("trainingVmDestroyed", world.clock.now, data={"trainingVmId": "vm-1"})
    world.service.told[handle].append(gone)
    world.turns(10)
    assert world.service.released == {handle}
    assert world.facts()[-1] == "trainingVmDestroyed"
    assert world.ledger.see(*overdue) == ()
    assert world.loop.is_idle()
    assert world.service.calls["release"] == 3


@pytest.mark.parametrize("told", ["with the end", "before it is noticed", "after it"])
def test_no_machine_is_gone_before_the_end_of_its_training(world: World, told: str):
    """Whichever of the two is noticed first, and however long after it happened."""
    world.send("r1")
    world.turns(3)
    (handle,) = world.service.statuses
    gone = Progress("trainingVmDestroyed", world.clock.now - 0.5, data={"trainingVmId": "vm-1"})
    if told != "after it":
        world.service.told[handle].append(gone)
    if told == "before it is noticed":
        world.turns(20)
    world.service.before["release"] = [down()]
    world.service.end()
    world.turns(1)
    world.service.told[handle].append(gone)
    world.turns(20)
    known = world.ledger.see(progress.facts_of, ["r1"])["r1"]
    times = {fact.progress.name: fact.progress.at for fact in known}
    assert list(times) == ["trainingVmCreated", "trainingSuceededWithImages", gone.name]
    assert times["trainingSuceededWithImages"] <= times[gone.name] <= world.clock.now


def test_it_is_kept_since_when_a_machine_was_asked_to_go(world: World):
    """From the first time on, however often it is asked."""
    world.send("r1")
    world.turns(2)
    world.service.end()
    world.service.before["release"] = [AskedToGo("still there"), AskedToGo("still there"), down()]
    asked_at = world.clock.now
    world.turns(10)
    assert world.service.calls["release"] == 4
    (left,) = world.ledger.see(machines.overdue, world.clock.now, 0.0)
    assert left.stop_asked_at == asked_at
    assert world.facts()[-1] == "trainingVmStopping"


def test_a_rejected_message_ends_for_its_sender_and_frees_its_id(world: World):
    """P4: nothing is started, an end message says why, and a corrected message runs."""
    world.send("r1", trainingVmSku="ND7")
    world.turns(2)
    assert world.service.calls["submit"] == 0
    (end,) = world.ends()
    assert (end.body["outcome"], end.body["reason"]) == ("rejected", "this SKU is not known")
    world.send("r1")
    world.turns(2)
    assert world.states() == {"r1": "running"}
    world.service.end()
    world.turns(3)
    assert [each.message_id for each in world.ends()] == ["r1/1", "r1/2"]


def test_a_job_that_can_never_run_has_failed(world: World):
    """What an executor refuses for good is an end with its reason, and nothing to let go of."""
    world.service.before["submit"] = [Impossible("no engine here, and no command")]
    world.send("r1")
    world.turns(3)
    assert world.request().reason == "no engine here, and no command"
    assert [end.body["outcome"] for end in world.ends()] == ["failed"]
    assert world.loop.is_idle()


def test_an_unforeseen_failure_is_counted_and_then_the_attempt_has_failed(world: World):
    """P5: tried again for a bounded number of times, while others go on."""
    bad = ValueError("it says password")
    world.service.before["find"] = [bad, None, bad, bad, bad, bad]
    world.send("r1", "r2")
    world.turns(30, after_s=10.0)
    assert world.states() == {"r1": "failed", "r2": "running"}
    assert world.request().reason == "working on it failed 5 times: ValueError"
    assert "password" not in world.said.getvalue()
    world.check_promises()


def test_what_no_executor_here_knows_waits(world: World):
    """A request of an executor that is no longer configured is unknown, not failed."""
    loop = world.dispatcher(executors={"elsewhere": Service("elsewhere")})
    world.send("r1")
    world.turns(5, loop, after_s=600.0)
    assert world.states() == {"r1": "accepted"}
    assert world.request().unheard_since is not None
    world.turns(2)
    assert world.states() == {"r1": "running"}


def test_who_does_not_know_an_executor_holds_up_nobody_who_does(world: World):
    """Two configurations on one ledger: what one can't look at is the other's soon, for ever."""
    other = world.dispatcher("other", executors={})
    world.send("r1")
    world.turns(2)
    world.turns(300, other, after_s=3.0)
    world.service.end()
    world.turns(10)
    assert world.states() == {"r1": "succeeded"}
    assert world.service.released
    assert world.said.getvalue().count("not configured here") == 1


def test_cancel_before_it_was_started_starts_nothing(world: World):
    """It is canceled without a machine, and its sender is told."""
    world.service.before["find"] = [down()]
    world.send("r1")
    world.turns()
    world.ledger.do(attempts.ask_cancel, "r1", world.clock.now)
    world.turns(3)
    assert world.states() == {"r1": "canceled"}
    assert world.service.starts == {}
    assert world.ends()[0].body == {
        "trainingVmId": None,
        "requestId": "r1",
        "outcome": "canceled",
        "reason": "canceled before it ran",
        "runId": None,
    }


def test_cancel_is_passed_on_until_it_has_ended(world: World):
    """An executor that can't be reached is asked again; the end is the executor's to tell."""
    world.send("r1")
    world.turns(2)
    world.ledger.do(attempts.ask_cancel, "r1", world.clock.now)
    world.service.before["cancel"] = [down(), RuntimeError()]
    world.turns(1)
    assert world.states() == {"r1": "running"}
    world.turns(5)
    assert world.states() == {"r1": "canceled"}
    assert [end.body["outcome"] for end in world.ends()] == ["canceled"]


def test_a_job_that_surely_is_there_no_more_has_failed(world: World):
    """Lost is an end, since nobody will tell another; unknown is none."""
    world.send("r1")
    world.turns(2)
    world.service.statuses.clear()
    world.turns(2)
    assert world.request().reason == "its executor surely has it no more"
    assert world.states() == {"r1": "failed"}


def test_a_new_run_is_shown_and_an_old_one_says_nothing(world: World):
    """T9: events of an earlier run, even that it ended, change nothing; runs only count up."""
    world.send("r1")
    world.turns(2)
    (handle,) = world.service.statuses
    world.service.statuses[handle] = Status("queued", 1)
    world.turns(2)
    assert (world.request().state, world.request().run) == ("running", 1)
    assert world.request().machine is None
    world.service.statuses[handle] = Status("failed", 0, "vm-1")
    world.turns(20)
    assert world.request().state == "running"
    world.service.statuses[handle] = Status("succeeded", 1, "vm-2")
    world.turns(20)
    assert (world.ends()[0].body["runId"], world.ends()[0].body["trainingVmId"]) == (1, "vm-2")


def test_several_dispatchers_share_the_work(world: World):
    """Each attempt is worked on by one, and all of them end."""
    loops = [world.dispatcher(f"d{number}", pace=Pace(batch=3, messages=2)) for number in range(3)]
    world.send(*(f"r{number}" for number in range(20)))
    for _ in range(10):
        for loop in loops:
            world.turns(1, loop, after_s=0.1)
    world.service.end()
    for _ in range(30):
        for loop in loops:
            world.turns(1, loop)
    assert set(world.states().values()) == {"succeeded"}
    world.check_promises()
    assert len(world.service.starts) == 20


def test_it_ends_when_all_is_done(world: World):
    """``until_idle`` comes back once every request has ended and every end message is out."""
    world.send("r1", "r2")
    world.turns()
    world.service.end("failed", reason="out of memory", exit_code=1)
    world.loop.run(until_idle=True)
    assert set(world.states().values()) == {"failed"}
    assert len(world.ends()) == 2


def test_once_takes_starts_and_looks_once(world: World):
    """One pass takes all that waits, however much, and looks at all, however lately it was."""
    world.send(*(f"r{number}" for number in range(120)))
    world.loop.once()
    assert set(world.states().values()) == {"submitted"}
    assert len(world.service.starts) == 120
    world.loop.once()
    assert set(world.states().values()) == {"running"}
    world.service.end()
    world.loop.once()
    assert set(world.states().values()) == {"succeeded"}
    assert len(world.ends()) == 120
    assert world.loop.is_idle()


def test_a_stop_ends_it_at_once_and_gives_back_what_it_owns(world: World):
    """What was not worked on is due for others at once."""
    asked: list[bool] = []
    loop = world.dispatcher("stopping", stopped=lambda: bool(asked))
    world.send("r1", "r2")
    submit = world.service.submit
    world.service.submit = lambda job: (asked.append(True), submit(job))[1]  # type: ignore[method-assign]
    loop.run()
    assert sorted(world.states().values()) == ["accepted", "submitted"]
    left = world.ledger.do(attempts.own, Owner("next", 60.0), world.clock.now)
    assert len([mine for mine in left if mine.handle is None]) == 1


@pytest.mark.parametrize("phase", ["succeeded", "failed", "canceled"])
def test_each_end_is_told(world: World, phase: str):
    """P7: by its terminal row and its end message, with the exit code kept."""
    world.send("r1")
    world.turns(2)
    world.service.end(phase, exit_code=3, reason="why")
    world.turns(3)
    assert (world.request().state, world.request().exit_code) == (phase, 3)
    assert world.ends()[0].body["outcome"] == phase
    world.check_promises()


def test_young_jobs_are_looked_at_sooner_than_old_ones(world: World):
    """After seconds in less than one, after days still within a quarter of a minute."""
    world.send("r1")
    world.turns(2)
    soon = world.ledger.see(queries.next_due)
    assert soon is not None
    assert soon - world.clock.now < 1.0
    world.clock.now += 86400.0
    world.turns()
    later = world.ledger.see(queries.next_due)
    assert later is not None
    assert 10.0 < later - world.clock.now <= 15.0


def test_machines_that_nobody_needs_are_reported_once(world: World):
    """P10: an orphan is said in the log when it becomes one, and not with every look."""
    service = Service("cloud")
    loop = world.dispatcher(executors={"local": service})
    world.send("r1")
    world.turns(2, loop)
    named = machines.Named("vm-9", "p")
    world.ledger.do(machines.created, named, world.clock.now)
    world.turns(200, loop, after_s=100.0)
    assert world.said.getvalue().count("machine=vm-9") == 1


def test_the_reason_of_a_job_that_goes_on(world: World):
    """It is kept, shown and said once; gone with the trouble; and no state changes by it."""
    world.send("r1")
    world.turns(2)
    (handle,) = world.service.statuses
    known = world.service.statuses[handle]
    world.service.statuses[handle] = replace(known, reason="what is left can't be ended")
    world.turns(10, after_s=20.0)
    assert (world.request().state, world.request().reason) == (
        "running",
        "what is left can't be ended",
    )
    assert world.said.getvalue().count("what is left can't be ended") == 1
    world.service.statuses[handle] = known
    world.turns(3, after_s=20.0)
    assert (world.request().state, world.request().reason) == ("running", "")
