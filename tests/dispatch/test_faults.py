"""Faults of executors, ledgers and owners, each ordered; the clock is the test's.

Which promise (P1 to P12) is held to by which test, here and in the modules beside:

====  ===========================================================================================
P1    test_faults_kill (every step), test_faults_soak, test_machine, test_an_uncertain_start...
P2    test_faults_kill, test_faults_broker (acknowledged after the commit, and only then)
P3    test_faults_kill.test_the_same_id_with_other_content_is_a_conflict
P4    test_loop.test_a_rejected_message_ends..., test_faults_messages
P5    test_an_outage..., test_loop.test_an_unforeseen_failure...
P6    test_a_stale_owner..., test_faults_broker.test_a_lease_that_was_lost...
P7    test_machine, test_faults_soak, test_loop.test_each_end_is_told
P8    test_loop.test_progress_is_written_down..., ledger/test_progress
P9    test_a_status_that_flaps..., test_an_executor_that_hangs_on...
P10   test_loop.test_machines_that_nobody_needs..., test_loop.test_what_a_job_holds...
P11   cli/test_dispatch.test_replay...
P12   test_faults_messages.test_nothing_secret_is_logged, test_state
====  ===========================================================================================
"""

from __future__ import annotations

import sqlite3

import pytest
from dispatching import World, down
from ledgers import own

from taskgraph_workers.dispatch.executors.base import Unreachable
from taskgraph_workers.dispatch.ledger import attempts
from taskgraph_workers.dispatch.ledger.errors import LedgerUnavailable
from taskgraph_workers.dispatch.ledger.files import NAME
from taskgraph_workers.dispatch.means import Pace
from taskgraph_workers.dispatch.model import Status


def test_an_uncertain_start_is_looked_up_and_adopted(world: World):
    """T7: it was started and nobody knows; what is there is adopted, nothing started again."""
    world.service.after["submit"] = [down("502 after it was stored")]
    world.send("r1")
    world.turns()
    assert world.states() == {"r1": "accepted"}
    world.turns(3)
    assert world.states() == {"r1": "running"}
    assert list(world.service.starts.values()) == [1]
    assert world.service.calls["submit"] == 1


def test_where_the_look_up_fails_nothing_is_started(world: World):
    """Only one who surely knows that there is none starts one."""
    world.service.after["submit"] = [down("the connection broke")]
    world.service.before["find"] = [None, *[down()] * 5]
    world.send("r1")
    world.turns(5, after_s=60.0)
    assert (world.service.calls["submit"], world.states()) == (1, {"r1": "accepted"})
    world.turns(5, after_s=60.0)
    assert (world.service.calls["submit"], world.states()) == (1, {"r1": "running"})


def test_an_outage_of_the_executor_holds_no_message(world: World):
    """Messages are recorded meanwhile; starts back off, together, and all happen after it."""
    world.service.before["find"] = [down()] * 8
    for number in range(30):
        world.send(f"r{number}")
        world.turns()
        assert len(world.states()) == number + 1
    assert set(world.states().values()) == {"accepted"}
    assert world.service.calls["find"] < 10
    world.turns(400)
    assert set(world.states().values()) == {"running"}
    world.check_promises()


def test_a_back_off_grows_and_has_a_limit(world: World):
    """An hour's outage costs few calls; what comes after it is not long in coming."""
    world.service.before["find"] = [down()] * 1000
    world.send("r1")
    world.turns(180, after_s=20.0)
    calls = world.service.calls["find"]
    assert 10 < calls < 40
    world.service.before["find"].clear()
    world.turns(16, after_s=20.0)
    assert world.states() == {"r1": "running"}


@pytest.mark.parametrize("fault", [down(), RuntimeError("a bug")])
def test_a_status_that_flaps_starts_cancels_and_ends_nothing(world: World, fault: Exception):
    """T13: an hour of errors, of any kind, on a training that runs."""
    world.send("r1")
    world.turns(2)
    world.service.before["poll"] = [fault, None, fault, fault] * 45
    world.turns(180, after_s=20.0)
    assert world.states() == {"r1": "running"}
    assert list(world.service.starts.values()) == [1]
    assert (world.service.calls["cancel"], world.ends()) == (0, [])


def test_unknown_is_a_time_not_a_state(world: World):
    """P9: since when nobody could be asked is kept as it was first, and gone with an answer."""
    world.send("r1")
    world.turns(2)
    (handle,) = world.service.statuses
    known = world.service.statuses[handle]
    world.service.statuses[handle] = Status("unknown", reason="timeout")
    since = world.clock.now
    world.turns(30, after_s=20.0)
    assert world.request().state == "running"
    assert world.request().unheard_since == pytest.approx(since, abs=21.0)
    assert world.request().reason == "timeout"
    world.service.before["poll"] = [down("docker is down") for _ in range(9)]
    world.turns(30, after_s=20.0)
    assert world.request().reason == "docker is down"
    world.service.before["poll"] = []
    world.service.statuses[handle] = known
    world.turns(16, after_s=20.0)
    assert (world.request().state, world.request().unheard_since) == ("running", None)
    assert world.request().reason == ""


def test_why_it_can_not_be_started_now_is_kept_until_it_is(world: World):
    """Not only in the log; and not longer."""
    world.send("r1")
    world.service.before["find"] = [down("pyton3 can't be run")]
    world.turns(after_s=20.0)
    assert (world.request().state, world.request().reason) == ("accepted", "pyton3 can't be run")
    world.turns(1)
    assert (world.request().state, world.request().reason) == ("submitted", "")


def test_progress_that_can_not_be_read_delays_no_end(world: World):
    """An end is recorded as soon as it is known, and what was told comes with letting go."""
    world.send("r1")
    world.turns(2)
    world.service.before["progress"] = [down(), ValueError()]
    world.service.end()
    world.turns()
    assert world.states() == {"r1": "succeeded"}


def test_a_dispatcher_that_comes_back_after_a_quarter_of_an_hour(world: World):
    """T8: what was under way is looked up first, however long ago, and adopted."""
    world.send("r1")
    world.service.after["submit"] = [down()]
    world.turns()
    world.clock.now += 16 * 60
    late = world.dispatcher("late")
    world.turns(3, late)
    assert world.states() == {"r1": "running"}
    assert world.service.calls["submit"] == 1


# --- owners ---------------------------------------------------------------------------------


class Died(BaseException):
    """A dispatcher that stops in the middle: nothing catches it."""


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_a_dead_dispatcher_owned_is_taken_over(world: World, when: str):
    """T12: after its time, by another, which looks first: started once all the same."""
    getattr(world.service, when)["submit"] = [Died()]
    world.send("r1")
    with pytest.raises(Died):
        world.loop.turn()
    other = world.dispatcher("other")
    world.turns(1, other)
    assert world.states() == {"r1": "accepted"}
    world.clock.now += Pace().own_s
    world.turns(3, other)
    assert world.states() == {"r1": "running"}
    assert list(world.service.starts.values()) == [1]


def test_a_stale_owner_changes_nothing(world: World):
    """P6: who was too slow finds that it is another's, and its writes change no row."""
    world.send("r1")
    other = world.dispatcher("other")
    submit = world.service.submit

    def slow(job: object) -> str:
        handle = submit(job)  # type: ignore[arg-type]
        world.service.submit = submit  # type: ignore[method-assign]
        world.clock.now += Pace().own_s + 1
        world.turns(2, other)
        return handle

    world.service.submit = slow  # type: ignore[method-assign]
    world.turns()
    assert world.states() == {"r1": "running"}
    assert list(world.service.starts.values()) == [1]
    assert "another dispatcher had taken it over" in world.said.getvalue()


def test_who_was_overtaken_does_not_start_what_is_not_surely_its_own(world: World):
    """An owner whose time runs out renews it before it starts anything, or leaves it alone."""
    world.send("r1", "r2")
    other = world.dispatcher("other")
    find = world.service.find

    def slow(key: str) -> str | None:
        world.service.find = find  # type: ignore[method-assign]
        found = find(key)
        world.clock.now += Pace().own_s + 1
        world.turns(2, other)
        return found

    world.service.find = slow  # type: ignore[method-assign]
    world.turns()
    world.turns(2, other)
    assert set(world.states().values()) == {"running"}
    assert sorted(world.service.starts.values()) == [1, 1]


def test_a_straggler_of_a_request_that_was_canceled_is_ended(world: World):
    """What a slow dispatcher started after the request had ended is canceled, and let go of."""
    world.send("r1")
    other = world.dispatcher("other")
    submit = world.service.submit

    def slow(job: object) -> str:
        world.clock.now += Pace().own_s + 1
        world.ledger.do(attempts.ask_cancel, "r1", world.clock.now)
        world.turns(2, other)
        return submit(job)  # type: ignore[arg-type]

    world.service.submit = slow  # type: ignore[method-assign]
    world.turns()
    assert world.states() == {"r1": "canceled"}
    assert world.service.canceled == world.service.released == set(world.service.statuses)


# --- the ledger -----------------------------------------------------------------------------


def test_a_ledger_that_is_locked_stops_it_for_a_while(world: World):
    """T6: it says so, waits longer and longer, and goes on where it was; nothing is lost."""
    world.send("r1")
    held = sqlite3.connect(world.folder / NAME, isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        world.clock.sleep(seconds)
        naps.append(seconds)
        if len(naps) == 100:
            held.execute("ROLLBACK")
        if "r1: submitted" in world.said.getvalue():
            world.service.end()

    world.loop.sleep = sleep
    world.loop.run(until_idle=True)
    held.close()
    assert world.states() == {"r1": "succeeded"}
    said = world.said.getvalue()
    assert "the ledger: the ledger" in said
    assert "is locked by another process" in said
    assert "works again" in said
    world.check_promises()


def test_a_ledger_that_fails_in_the_middle_of_a_turn_is_returned_to(world: World):
    """What this dispatcher owned then is its again at once, not when its time is over."""
    world.send("r1")
    submit = world.service.submit

    def fails(job: object) -> str:
        world.service.submit = submit  # type: ignore[method-assign]
        submit(job)  # type: ignore[arg-type]
        raise LedgerUnavailable()

    world.service.submit = fails  # type: ignore[method-assign]
    with pytest.raises(LedgerUnavailable):
        world.loop.turn()
    world.loop.looked_at_owners = 0.0
    world.turns(2)
    assert world.states() == {"r1": "running"}
    assert list(world.service.starts.values()) == [1]


def test_a_row_that_nobody_can_read_stops_no_other(world: World):
    """A part of the loop that fails is left alone for a while, said, and the rest goes on."""
    world.send("r1")
    world.turns(2)
    with sqlite3.connect(world.folder / NAME) as raw:
        raw.execute("UPDATE attempts SET job = 'x', next_look = 0")
    world.send("r2", trainingVmSku="ND7")
    world.turns(3)
    assert world.states() == {"r1": "running", "r2": "rejected"}
    assert "error: working failed error=" in world.said.getvalue()


def test_duplicates_of_a_message_come_to_one_training(world: World):
    """T2: fifty of one message, with two dispatchers taking them in turn."""
    other = world.dispatcher("other", pace=Pace(messages=3))
    for _ in range(50):
        world.send("r1")
    for _ in range(20):
        world.turns(1, other)
        world.turns(1, world.dispatcher("third", pace=Pace(messages=2)))
    assert list(world.service.starts.values()) == [1]
    world.service.end()
    world.turns(3)
    assert len(world.ends()) == 1
    world.send("r1")
    world.turns(2)
    assert (len(world.ends()), world.service.calls["submit"]) == (1, 1)


def test_the_definition_is_stored_before_the_first_call_and_replayed(world: World):
    """What is submitted after any number of failures is what was rendered at receipt."""
    world.service.before["submit"] = [Unreachable("no")] * 3
    world.send("r1")
    world.turns()
    before = own(world.ledger, world.clock.now + 1000).job
    world.clock.now += 2000
    world.turns(30, world.dispatcher("other"), after_s=60.0)
    (job,) = world.service.jobs.values()
    assert job == before
