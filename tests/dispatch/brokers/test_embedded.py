"""The embedded queue: taken and recorded at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from dispatching import Clock
from ledgers import NOW, ask, body, judge, send, waits

from taskgraph_workers.dispatch.brokers.embedded import Embedded
from taskgraph_workers.dispatch.brokers.transport import MOST_FAILURES
from taskgraph_workers.dispatch.ledger import dead, outbox, queries, queue
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.ledger.queue import START
from taskgraph_workers.dispatch.ledger.values import Accepted, Recorded
from taskgraph_workers.dispatch.model import Refused


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def broker(ledger: Ledger, clock: Clock) -> Embedded:
    return Embedded(ledger, clock)


def everything(broker: Embedded) -> Iterator[Recorded]:
    """What becomes of all messages."""
    while (recorded := broker.record_next(judge)) is not None:
        yield recorded


def test_a_message_is_recorded_and_gone(broker: Embedded, ledger: Ledger):
    """Taken, recorded and acknowledged in one step."""
    send(ledger, body("r1"))
    send(ledger, b"nonsense")
    send(ledger, body("r2", trainingVmSku="ND7"))
    send(ledger, body("r1"))
    send(ledger, body("r1", extra=1))
    results = [each.result for each in everything(broker)]
    assert results == ["accepted", "dead", "rejected", "duplicate", "conflict"]
    assert not waits(ledger)
    assert len(ledger.see(queries.newest)) == 2


def test_a_judge_that_fails_stops_nobody(broker: Embedded, ledger: Ledger, clock: Clock):
    """Its message waits, longer each time, then is a dead letter; others go on meanwhile."""

    def fails(content: bytes) -> Accepted | Refused:
        if b"poison" in content:
            raise KeyError("secret")
        return judge(content)

    send(ledger, body("poison"))
    send(ledger, body("good"))
    first, second = broker.record_next(fails), broker.record_next(fails)
    assert first == Recorded("postponed", reason="handling it failed: KeyError")
    assert second is not None
    assert second.request_id == "good"
    results = []
    for _ in range(1000):
        clock.sleep(1.0)
        found = broker.record_next(fails)
        results += [found.result] if found else []
    assert results == ["postponed"] * (MOST_FAILURES - 2) + ["dead"]
    (letter,) = ledger.see(dead.letters)
    assert (letter.code, letter.body) == ("handler-failed", body("poison"))
    assert "secret" not in letter.reason


def test_a_message_that_can_not_be_recorded_leaves_nothing(broker: Embedded, ledger: Ledger):
    """What was written before it failed is taken back."""

    def unstorable(content: bytes) -> Accepted | Refused:
        verdict = judge(content)
        assert isinstance(verdict, Accepted)
        return Accepted(verdict.message, verdict.placed, "\ud800")

    send(ledger, body())
    recorded = broker.record_next(unstorable)
    assert recorded is not None
    assert recorded.result == "postponed"
    assert ledger.see(queries.newest) == ()
    assert waits(ledger)


def test_an_interrupted_judge_leaves_the_message(broker: Embedded, ledger: Ledger):
    """Ctrl-C in the middle changes nothing and counts nothing."""

    def interrupted(_: bytes) -> Accepted | Refused:
        raise KeyboardInterrupt

    send(ledger, body())
    with pytest.raises(KeyboardInterrupt):
        broker.record_next(interrupted)
    found = ledger.see(queue.next_of, START, NOW)
    assert found is not None
    assert found.attempts == 0


def test_ends_are_told_once_and_kept_once(broker: Embedded, ledger: Ledger, clock: Clock):
    """Relaying tells each end once, by marking it, so that it is listed; no copy is made."""
    for number in range(3):
        ask(ledger, f"r{number}", trainingVmSku="ND7")
    assert [broker.relay(2), broker.relay(2), broker.relay(2)] == [2, 1, 0]
    sent = ledger.see(outbox.ends)
    assert [end.message_id for end in sent] == ["r0/1", "r1/1", "r2/1"]
