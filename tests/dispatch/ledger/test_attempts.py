"""Attempts: owned by one, moving forward only, ended once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ledgers import NOW, RUNNING, ask, own, started, unsent

from taskgraph_workers.dispatch.ledger import attempts, progress, queries
from taskgraph_workers.dispatch.ledger.attempts import Owner
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.ledger.values import Attempt
from taskgraph_workers.dispatch.model import FINAL, REJECTED, STATES, Status

ENDS = sorted(FINAL - {REJECTED})


def look(ledger: Ledger, now: float = NOW, limit: int = 50) -> list[str]:
    found = ledger.do(attempts.own, Owner("other", 60.0, limit), now)
    return [each.request_id for each in found]


def stored(ledger: Ledger, request_id: str = "r1") -> Attempt:
    found = ledger.see(attempts.read, request_id, 1)
    assert found is not None
    return found


def test_what_is_owned_is_nobody_else_s(ledger: Ledger):
    """An attempt that is due is given to one, until that one's time is over."""
    ask(ledger)
    mine = own(ledger, for_s=60.0)
    assert look(ledger, NOW + 59) == []
    assert look(ledger, NOW + 60) == ["r1"]
    assert mine.owner is not None
    assert mine.owner.startswith("me ")


def test_the_longest_waiting_are_given_first(ledger: Ledger):
    """No more than were asked for, in the order in which they were due."""
    for number in range(5):
        ask(ledger, f"r{number}", NOW + number)
    assert look(ledger, NOW + 3, limit=2) == ["r0", "r1"]
    assert look(ledger, NOW + 3) == ["r2", "r3"]


def test_a_stale_owner_changes_nothing(ledger: Ledger):
    """After a takeover, every write of the old owner, whatever its name, changes no row."""
    ask(ledger)
    old = own(ledger, name="same")
    new = own(ledger, NOW + 60, name="same")
    before = stored(ledger)
    assert ledger.do(attempts.keep, old, NOW + 1000) is None
    assert ledger.do(attempts.let_go, old, NOW) is None
    assert ledger.do(attempts.record_handle, old, "stale") is None
    assert ledger.do(attempts.heard, old, RUNNING) is None
    assert ledger.do(attempts.unheard, old, NOW) is None
    for state in ("submitted", "running", *ENDS):
        assert ledger.do(attempts.change, old, state, NOW, Status(state)) is None
    assert stored(ledger) == before == new
    assert ledger.see(unsent) == ()
    assert ledger.see(progress.facts_of, ["r1"]) == {}


def test_nobody_writes_without_owning(ledger: Ledger):
    """An attempt that was only looked at, or let go, can't be written."""
    ask(ledger)
    assert ledger.do(attempts.record_handle, stored(ledger), "h") is None
    mine = own(ledger)
    free = ledger.do(attempts.let_go, mine, NOW + 5)
    assert free is not None
    assert free.owner is None
    for each in (mine, free):
        assert ledger.do(attempts.change, each, "running", NOW, RUNNING) is None
    assert stored(ledger) == free


def test_who_keeps_an_attempt_has_it_longer(ledger: Ledger):
    """Ownership is renewed from now on."""
    ask(ledger)
    mine = own(ledger, for_s=60.0)
    kept = ledger.do(attempts.keep, mine, NOW + 100)
    assert kept is not None
    assert look(ledger, NOW + 99) == []
    assert ledger.do(attempts.record_handle, kept, "h") is not None
    assert look(ledger, NOW + 100) == ["r1"]


def test_an_attempt_is_looked_at_when_it_is_due(ledger: Ledger):
    """Backing off: until the next look nobody gets it, and its tries are counted."""
    ask(ledger)
    ledger.do(attempts.let_go, own(ledger), NOW + 30, 3)
    assert look(ledger, NOW + 29) == []
    assert stored(ledger).tries == 3
    assert look(ledger, NOW + 30) == ["r1"]


def test_a_handle_makes_it_submitted(ledger: Ledger):
    """What the executor calls it is recorded with its state, for the request too."""
    ask(ledger)
    mine = ledger.do(attempts.record_handle, own(ledger), "job-1")
    assert mine is not None
    assert (mine.state, mine.handle) == ("submitted", "job-1")
    found = ledger.see(queries.request, "r1")
    assert found is not None
    assert (found.state, found.handle) == ("submitted", "job-1")


@pytest.mark.parametrize("start", ["accepted", "submitted", "running", *ENDS])
@pytest.mark.parametrize("to", ["accepted", "submitted", "running", *ENDS])
def test_states_only_move_forward(ledger: Ledger, start: str, to: str):
    """Every step forward is taken, none back, and none after the end."""
    ask(ledger)
    mine = own(ledger)
    if start != "accepted":
        moved = ledger.do(attempts.change, mine, start, NOW, Status(start))
        assert moved is not None
        mine = moved
    before = stored(ledger)
    after = ledger.do(attempts.change, mine, to, NOW + 1, Status(to))
    allowed = start not in FINAL and STATES.index(to) >= STATES.index(start)
    if allowed:
        assert after == stored(ledger)
        assert after is not None
        assert after.state == to
    else:
        assert after is None
        assert stored(ledger) == before
    found = ledger.see(queries.request, "r1")
    assert found is not None
    assert found.state == stored(ledger).state
    assert len(ledger.see(unsent)) == (found.state in FINAL)


def test_a_change_believes_in_a_state(ledger: Ledger):
    """Who knows an earlier state than the ledger's changes nothing, also as the owner."""
    ask(ledger)
    mine = own(ledger)
    assert ledger.do(attempts.change, mine, "running", NOW, RUNNING) is not None
    assert ledger.do(attempts.change, mine, "failed", NOW, Status("failed")) is None
    assert stored(ledger).state == "running"


@pytest.mark.parametrize("state", ["rejected", "lost", ""])
def test_no_attempt_becomes_what_is_no_state_of_it(ledger: Ledger, state: str):
    """A mistake of ours is an error, not a row."""
    ask(ledger)
    with pytest.raises(ValueError, match="no attempt becomes"):
        ledger.do(attempts.change, own(ledger), state, NOW, Status(state))


@pytest.mark.parametrize("end", ENDS)
def test_the_end_is_told_with_its_state(ledger: Ledger, end: str):
    """One transaction: state, request, end message, and the last row of progress."""
    running = started(ledger)
    status = Status(end, run=2, machine="vm-3", reason="it said so", exit_code=7)
    ended = ledger.do(attempts.change, running, end, NOW + 9, status)
    assert ended is not None
    assert (ended.state, ended.exit_code, ended.ended_at, ended.owner) == (end, 7, NOW + 9, None)
    (told,) = ledger.see(unsent)
    assert (told.message_id, told.body) == (
        "r1/1",
        {
            "trainingVmId": "vm-3",
            "requestId": "r1",
            "outcome": end,
            "reason": "it said so",
            "runId": 2,
        },
    )
    (fact,) = ledger.see(progress.facts_of, ["r1"])["r1"]
    names = {
        "succeeded": "trainingSuceededWithImages",
        "failed": "trainingFailed",
        "canceled": "trainingCanceled",
    }
    assert (fact.progress.name, fact.progress.run) == (names[end], 2)
    assert look(ledger, NOW + 10**6) == []


def test_the_end_of_what_never_started_names_no_machine(ledger: Ledger):
    """Canceled before it was submitted: there was no run, and no machine."""
    ask(ledger)
    ledger.do(attempts.change, own(ledger), "canceled", NOW, Status("canceled"))
    (told,) = ledger.see(unsent)
    assert (told.body["trainingVmId"], told.body["runId"]) == (None, None)


def test_unheard_is_a_time_and_no_state(ledger: Ledger):
    """Since when nobody could be asked is kept, until somebody answers."""
    running = started(ledger)
    first = ledger.do(attempts.unheard, running, NOW + 10, "site: no such program")
    assert first is not None
    second = ledger.do(attempts.unheard, first, NOW + 20)
    assert second is not None
    assert (second.state, second.unheard_since) == ("running", NOW + 10)
    assert second.reason == "site: no such program"
    heard = ledger.do(attempts.heard, second, RUNNING)
    assert heard is not None
    assert (heard.state, heard.unheard_since, heard.reason) == ("running", None, "")


def test_runs_only_go_forward(ledger: Ledger):
    """A new run has no machine until one claims it; a late word of an old run says nothing."""
    running = started(ledger)
    anew = ledger.do(attempts.heard, running, Status("queued", run=1))
    assert anew is not None
    assert (anew.run, anew.machine) == (1, None)
    late = ledger.do(attempts.heard, anew, Status("running", run=0, machine="vm-1"))
    assert late is not None
    assert (late.run, late.machine) == (1, None)


def test_to_be_canceled_is_seen_at_once(ledger: Ledger):
    """A wish to cancel makes the attempt due, whoever looks next."""
    ask(ledger)
    ledger.do(attempts.let_go, own(ledger), NOW + 3600)
    assert ledger.do(attempts.ask_cancel, "r1", NOW + 5) == "accepted"
    assert own(ledger, NOW + 5).cancel_asked_at == NOW + 5


def test_to_be_canceled_is_not_overlooked_by_an_owner(ledger: Ledger):
    """Who works on it meanwhile, unknowing, gives it back as due at once."""
    ask(ledger)
    mine = own(ledger)
    ledger.do(attempts.ask_cancel, "r1", NOW)
    assert look(ledger) == []
    free = ledger.do(attempts.let_go, mine, NOW + 3600)
    assert free is not None
    knowing = own(ledger)
    assert knowing.cancel_asked_at == NOW
    ledger.do(attempts.let_go, knowing, NOW + 30)
    assert look(ledger, NOW + 29) == []


def test_canceling_twice_or_late_changes_nothing(ledger: Ledger):
    """The first wish counts; what has ended, or was never known, is told as it is."""
    running = started(ledger)
    ledger.do(attempts.ask_cancel, "r1", NOW + 1)
    assert ledger.do(attempts.ask_cancel, "r1", NOW + 2) == "running"
    assert stored(ledger).cancel_asked_at == NOW + 1
    ledger.do(attempts.change, running, "succeeded", NOW + 3, Status("succeeded"))
    before = stored(ledger)
    assert ledger.do(attempts.ask_cancel, "r1", NOW + 4) == "succeeded"
    assert stored(ledger) == before
    assert ledger.do(attempts.ask_cancel, "unknown", NOW) is None
    ask(ledger, "bad", trainingVmSku="ND7")
    assert ledger.do(attempts.ask_cancel, "bad", NOW) == "rejected"


def test_a_reason_may_quote_anything(ledger: Ledger):
    """What a program printed is stored as text that every database and terminal takes."""
    reason = "\ud800 \0 \x1b[31m" + "x" * 10_000
    ended = ledger.do(
        attempts.change, started(ledger), "failed", NOW, Status("failed", reason=reason)
    )
    assert ended is not None
    assert ended.reason.startswith("? ")
    assert "\0" not in ended.reason
    assert len(ended.reason) == 2000


def test_an_attempt_is_what_the_ledger_says(ledger: Ledger):
    """What an operation gives is what is there, to the last field."""
    running = started(ledger)
    assert stored(ledger) == running
    assert replace(running) == running
    assert (running.started_at, running.run, running.machine) == (NOW, 0, "vm-1")
