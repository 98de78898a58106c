"""End messages: sent at least once, by one at a time."""

from __future__ import annotations

from ledgers import NOW, unsent

from taskgraph_workers.dispatch.ledger import outbox
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.ledger.values import End

LEASE_S = 30.0


def tell(ledger: Ledger, *names: str) -> None:
    for name in names:
        assert ledger.do(outbox.tell, name, {"requestId": name}, NOW)


def take(ledger: Ledger, now: float = NOW, limit: int = 100) -> list[End]:
    return list(ledger.do(outbox.take, now, LEASE_S, limit))


def ids(ends: object) -> list[str]:
    assert isinstance(ends, (list, tuple))
    return [end.message_id for end in ends]


def test_an_end_is_told_once(ledger: Ledger):
    """A second message with the same id is not written."""
    tell(ledger, "r1/1")
    assert not ledger.do(outbox.tell, "r1/1", {"other": 1}, NOW)
    (end,) = ledger.see(unsent)
    assert end.body == {"requestId": "r1/1"}


def test_an_end_is_published_once(ledger: Ledger):
    """Its readers find it at once; a second one with the same id is not written, nor is it sent."""
    assert ledger.do(outbox.publish, "r1/1", {"requestId": "r1"}, NOW)
    assert not ledger.do(outbox.publish, "r1/1", {"other": 1}, NOW + 1)
    (end,) = ledger.see(outbox.ends)
    assert (end.body, end.sent_at) == ({"requestId": "r1"}, NOW)
    assert take(ledger, NOW + LEASE_S) == []


def test_ends_are_sent_in_order_and_by_one(ledger: Ledger):
    """What one dispatcher sends, no other takes while the lease lasts."""
    tell(ledger, "a/1", "b/1", "c/1")
    assert ids(take(ledger, limit=2)) == ["a/1", "b/1"]
    assert ids(take(ledger)) == ["c/1"]
    assert take(ledger, NOW + LEASE_S - 1) == []


def test_what_is_sent_is_sent_no_more(ledger: Ledger):
    """It stays, to be shown, and nobody takes it again."""
    tell(ledger, "a/1", "b/1")
    first, _ = take(ledger)
    assert ledger.do(outbox.sent, first, NOW + 1)
    assert ids(take(ledger, NOW + LEASE_S)) == ["b/1"]
    (sent,) = ledger.see(outbox.ends)
    assert (sent.message_id, sent.sent_at) == ("a/1", NOW + 1)
    assert ids(ledger.see(unsent)) == ["b/1"]


def test_what_a_crashed_dispatcher_took_is_taken_again(ledger: Ledger):
    """After the lease another one sends it, and the first one's mark changes nothing."""
    tell(ledger, "a/1")
    (old,) = take(ledger)
    (new,) = take(ledger, NOW + LEASE_S)
    assert not ledger.do(outbox.sent, old, NOW + LEASE_S)
    assert not ledger.do(outbox.failed, old, NOW)
    assert ledger.see(outbox.is_unsent)
    assert ledger.do(outbox.sent, new, NOW + LEASE_S)
    assert not ledger.do(outbox.sent, new, NOW + LEASE_S)
    assert not ledger.see(outbox.is_unsent)


def test_what_could_not_be_sent_is_tried_later(ledger: Ledger):
    """A broker that is down holds nothing up, and no message is forgotten."""
    tell(ledger, "a/1")
    for tries in range(3):
        (end,) = take(ledger, NOW + tries * 100)
        assert end.tries == tries
        assert ledger.do(outbox.failed, end, NOW + tries * 100 + 100)
        assert take(ledger, NOW + tries * 100 + 99) == []
    assert ledger.see(outbox.is_unsent)


def test_what_could_not_be_sent_is_tried_at_once_by_who_begins(ledger: Ledger):
    """But not what another one is sending."""
    tell(ledger, "a/1", "b/1")
    failed, _ = take(ledger)
    assert ledger.do(outbox.failed, failed, NOW + 300)
    ledger.do(outbox.hurry)
    assert ids(take(ledger)) == ["a/1"]
    ledger.do(outbox.hurry)
    assert take(ledger) == []


def test_ends_are_listed_page_by_page(ledger: Ledger):
    """A list goes on behind the last number."""
    names = [f"r{number}/1" for number in range(5)]
    tell(ledger, *names)
    for end in take(ledger):
        ledger.do(outbox.sent, end, NOW)
    page = ledger.see(outbox.ends, 3)
    assert ids((*page, *ledger.see(outbox.ends, 3, page[-1].number))) == names
