"""What attempts hold after their end, and failures that nobody knows the reason of."""

from __future__ import annotations

from ledgers import NOW, ask, own, started

from taskgraph_workers.dispatch.ledger import attempts
from taskgraph_workers.dispatch.ledger.attempts import Owner
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.model import Status

ME = Owner("me", 60.0)


def test_what_an_attempt_holds_is_let_go_of_after_its_end(ledger: Ledger):
    """It is given out once its end is recorded, to one at a time, until that is done."""
    running = started(ledger)
    assert ledger.do(attempts.take_held, ME, NOW) == ()
    ledger.do(attempts.change, running, "succeeded", NOW, Status("succeeded"))
    (held,) = ledger.do(attempts.take_held, ME, NOW)
    assert (held.handle, held.state) == ("job-r1", "succeeded")
    assert ledger.do(attempts.take_held, ME, NOW) == ()
    assert ledger.do(attempts.release_again, held, NOW + 5)
    assert ledger.do(attempts.take_held, ME, NOW + 4) == ()
    (again,) = ledger.do(attempts.take_held, ME, NOW + 5)
    assert again.tries == 1
    assert ledger.do(attempts.released, again, NOW + 5)
    assert ledger.do(attempts.take_held, ME, NOW + 1000) == ()
    assert not ledger.do(attempts.released, again, NOW + 6)
    assert not ledger.do(attempts.release_again, again, NOW + 6)


def test_who_dies_while_letting_go_is_followed_by_another(ledger: Ledger):
    """What was taken and never marked is taken again when its time is over."""
    running = started(ledger)
    ledger.do(attempts.change, running, "failed", NOW, Status("failed"))
    assert ledger.do(attempts.take_held, ME, NOW)
    assert ledger.do(attempts.take_held, ME, NOW + 59) == ()
    assert ledger.do(attempts.take_held, ME, NOW + 60)


def test_what_was_never_submitted_holds_nothing(ledger: Ledger):
    """An attempt that ends before it has a handle has nothing to let go of."""
    ask(ledger)
    ledger.do(attempts.change, own(ledger), "canceled", NOW, Status("canceled"))
    assert ledger.do(attempts.take_held, ME, NOW + 1000) == ()


def test_failures_are_counted_until_it_is_submitted(ledger: Ledger):
    """Beside calls that led nowhere, which are counted, too; a handle makes both nought."""
    ask(ledger)
    assert ledger.do(attempts.failed, own(ledger), NOW + 1) is not None
    mine = own(ledger, NOW + 1)
    assert (mine.failures, mine.tries) == (1, 1)
    ledger.do(attempts.let_go, mine, NOW + 2, mine.tries + 1)
    mine = own(ledger, NOW + 2)
    assert (mine.failures, mine.tries) == (1, 2)
    submitted = ledger.do(attempts.record_handle, mine, "job")
    assert submitted is not None
    assert (submitted.failures, submitted.tries) == (0, 0)
    assert ledger.do(attempts.failed, mine, NOW) is None


def test_all_that_is_nobodys_can_be_looked_at_at_once(ledger: Ledger):
    """Whatever was put off is due; what somebody owns stays as it is."""
    ask(ledger, "r1")
    ledger.do(attempts.let_go, own(ledger), NOW + 1000)
    ask(ledger, "r2")
    theirs = own(ledger)
    ledger.do(attempts.hurry)
    mine = own(ledger)
    assert (mine.request_id, theirs.request_id) == ("r1", "r2")
    assert ledger.do(attempts.own, ME, NOW) == ()


def test_what_those_had_who_are_gone_is_due_at_once(ledger: Ledger):
    """Of what lives and of what is held; what others own stays theirs."""
    ended = started(ledger, "r1")
    ledger.do(attempts.change, ended, "succeeded", NOW, Status("succeeded"))
    ledger.do(attempts.take_held, Owner("dead", 60.0), NOW)
    ask(ledger, "r2")
    own(ledger, name="dead")
    ask(ledger, "r3")
    theirs = own(ledger, name="alive")
    assert ledger.do(attempts.free, lambda owner: owner.startswith("dead ")) == 2
    assert [each.request_id for each in ledger.do(attempts.take_held, ME, NOW)] == ["r1"]
    assert [each.request_id for each in ledger.do(attempts.own, ME, NOW)] == ["r2"]
    assert ledger.do(attempts.keep, theirs, NOW + 60) is not None
    assert ledger.do(attempts.free, lambda owner: False) == 0
