"""Messages, leases, tokens."""

from __future__ import annotations

from ledgers import NOW, waits

from taskgraph_workers.dispatch.brokers.base import Delivery
from taskgraph_workers.dispatch.ledger import queue
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.ledger.queue import START

LEASE_S = 30.0


def put(ledger: Ledger, body: bytes = b"x", now: float = NOW) -> None:
    ledger.do(queue.put, START, body, now)


def take(ledger: Ledger, now: float = NOW) -> Delivery | None:
    return ledger.do(queue.take, START, now, LEASE_S)


def taken(ledger: Ledger, now: float = NOW) -> Delivery:
    found = take(ledger, now)
    assert found is not None
    return found


def test_messages_come_in_the_order_they_were_put(ledger: Ledger):
    """First in, first out, byte for byte."""
    bodies = [b"a", b"\0\xff", b""]
    for each in bodies:
        put(ledger, each)
    assert [taken(ledger).body for _ in bodies] == bodies
    assert take(ledger) is None


def test_a_taken_message_is_hidden_until_its_lease_ends(ledger: Ledger):
    """Nobody else gets it while it is leased; then it comes again, with another token."""
    put(ledger)
    first = taken(ledger)
    assert take(ledger, NOW + LEASE_S - 1) is None
    second = taken(ledger, NOW + LEASE_S)
    assert first.id == second.id
    assert first.token != second.token


def test_a_stale_token_changes_nothing(ledger: Ledger):
    """T12: who held a message too long neither deletes it nor gives it back."""
    put(ledger)
    stale, ours = taken(ledger), taken(ledger, NOW + LEASE_S)
    assert not ledger.do(queue.acknowledge, stale)
    assert not ledger.do(queue.release, stale, NOW, 0.0)
    assert take(ledger, NOW + LEASE_S) is None
    assert ledger.do(queue.acknowledge, ours)
    assert not ledger.do(queue.acknowledge, ours)
    assert not waits(ledger)


def test_a_lease_that_is_over_holds_until_somebody_takes_it(ledger: Ledger):
    """A slow holder may still acknowledge if nobody came."""
    put(ledger)
    ours = taken(ledger)
    assert ledger.do(queue.acknowledge, ours)


def test_a_message_that_is_given_back_comes_again(ledger: Ledger):
    """After its delay it is anybody's, and who gave it back has no say any more."""
    put(ledger)
    ours = taken(ledger)
    assert ledger.do(queue.release, ours, NOW, 5.0)
    assert take(ledger, NOW + 4) is None
    assert not ledger.do(queue.acknowledge, ours)
    assert taken(ledger, NOW + 5).id == ours.id


def test_when_a_message_may_be_taken_is_known(ledger: Ledger):
    """That of the first, whether somebody holds it or not."""
    assert ledger.see(queue.first_at, START) is None
    put(ledger)
    assert ledger.see(queue.first_at, START) == NOW
    taken(ledger)
    put(ledger, now=NOW + 60)
    assert ledger.see(queue.first_at, START) == NOW + LEASE_S


def test_a_number_is_never_given_twice(ledger: Ledger):
    """A late acknowledgement can't meet a new message that has an old one's number."""
    put(ledger)
    first = taken(ledger)
    ledger.do(queue.acknowledge, first)
    put(ledger)
    assert taken(ledger).id != first.id


def test_queues_are_apart(ledger: Ledger):
    """Who takes starts gets nothing of another queue."""
    ledger.do(queue.put, "other", b"other", NOW)
    assert take(ledger) is None
