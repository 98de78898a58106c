"""The embedded queue: taken and recorded at once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from ledgers import NOW, ask, body, judge

from taskgraph_workers.dispatch.brokers.base import Broker, BrokerDown
from taskgraph_workers.dispatch.brokers.sql import MOST_FAILURES, SqlBroker
from taskgraph_workers.dispatch.ledger import dead, outbox, queries, queue
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.ledger.errors import LedgerUnavailable
from taskgraph_workers.dispatch.ledger.queue import START, is_waiting
from taskgraph_workers.dispatch.ledger.values import Accepted, Recorded
from taskgraph_workers.dispatch.model import Refused


class Clock:
    """A time that goes by only where it is said, or slept."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def broker(ledger: Ledger, clock: Clock) -> SqlBroker:
    return SqlBroker(ledger, clock, lease_s=30.0, sleep=clock.sleep)


def everything(broker: SqlBroker) -> Iterator[Recorded]:
    """What becomes of all messages."""
    while (recorded := broker.record_next(judge)) is not None:
        yield recorded


def test_it_is_a_broker(broker: SqlBroker):
    """The loop can do with it what it does with any."""
    as_any: Broker = broker
    assert as_any.name == "sql"


def test_a_message_is_recorded_and_gone(broker: SqlBroker, ledger: Ledger):
    """Taken, recorded and acknowledged in one step."""
    broker.send(body("r1"))
    broker.send(b"nonsense")
    broker.send(body("r2", trainingVmSku="ND7"))
    broker.send(body("r1"))
    broker.send(body("r1", extra=1))
    results = [each.result for each in everything(broker)]
    assert results == ["accepted", "dead", "rejected", "duplicate", "conflict"]
    assert not ledger.see(queue.is_waiting, START)
    assert len(ledger.see(queries.newest)) == 2


def test_a_message_with_an_id_waits_once(broker: SqlBroker):
    """Sending again what waits already changes nothing."""
    assert broker.send(body(), "m1")
    assert not broker.send(body(), "m1")
    assert len(list(everything(broker))) == 1


def test_a_judge_that_fails_stops_nobody(broker: SqlBroker, ledger: Ledger, clock: Clock):
    """Its message waits, longer each time, then is a dead letter; others go on meanwhile."""

    def fails(content: bytes) -> Accepted | Refused:
        if b"poison" in content:
            raise KeyError("secret")
        return judge(content)

    broker.send(body("poison"))
    broker.send(body("good"))
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


def test_a_message_that_can_not_be_recorded_leaves_nothing(broker: SqlBroker, ledger: Ledger):
    """What was written before it failed is taken back."""

    def unstorable(content: bytes) -> Accepted | Refused:
        verdict = judge(content)
        assert isinstance(verdict, Accepted)
        return Accepted(verdict.message, verdict.placed, "\ud800")

    broker.send(body())
    recorded = broker.record_next(unstorable)
    assert recorded is not None
    assert recorded.result == "postponed"
    assert ledger.see(queries.newest) == ()
    assert ledger.see(queue.is_waiting, START)


def test_an_interrupted_judge_leaves_the_message(broker: SqlBroker, ledger: Ledger):
    """Ctrl-C in the middle changes nothing and counts nothing."""

    def interrupted(_: bytes) -> Accepted | Refused:
        raise KeyboardInterrupt

    broker.send(body())
    with pytest.raises(KeyboardInterrupt):
        broker.record_next(interrupted)
    delivery = broker.receive(0.0)
    assert delivery is not None
    assert delivery.attempts == 1


def test_ends_are_told_once_and_kept_once(broker: SqlBroker, ledger: Ledger, clock: Clock):
    """Relaying tells each end once, by marking it, so that it is listed; no copy is made."""
    for number in range(3):
        ask(ledger, f"r{number}", trainingVmSku="ND7")
    assert [broker.relay(2), broker.relay(2), broker.relay(2)] == [2, 1, 0]
    sent = ledger.see(outbox.ends)
    assert [end.message_id for end in sent] == ["r0/1", "r1/1", "r2/1"]
    broker.publish(sent[0].body, sent[0].message_id)
    assert ledger.see(outbox.ends) == sent
    assert not ledger.see(is_waiting, "ends")


def test_receiving_waits_as_long_as_it_is_told(broker: SqlBroker, clock: Clock):
    """Without a message it comes back with none; with one, at once."""
    assert broker.receive(2.0) is None
    assert clock.now == NOW + 2.0
    broker.send(body())
    assert broker.receive(2.0) is not None
    assert clock.now == NOW + 2.0


def test_a_message_comes_while_somebody_waits(ledger: Ledger, clock: Clock):
    """Waiting looks again and again."""
    naps = itertools.count()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if next(naps) == 3:
            broker.send(body())

    broker = SqlBroker(ledger, clock, sleep=sleep)
    assert broker.receive(60.0) is not None
    assert clock.now < NOW + 1


def test_a_received_message_is_held_by_its_lease(broker: SqlBroker, clock: Clock):
    """It can be given back and acknowledged by its holder alone."""
    broker.send(body())
    first = broker.receive(0.0)
    assert first is not None
    clock.sleep(20.0)
    assert broker.receive(0.0) is None
    assert broker.record_next(judge) is None
    broker.release(first, 5.0)
    clock.sleep(5.0)
    second = broker.receive(0.0)
    assert second is not None
    assert second.attempts == 2
    assert not broker.acknowledge(first)
    assert broker.acknowledge(second)


def test_a_late_holder_does_not_undo_a_recording(broker: SqlBroker, clock: Clock):
    """Whose lease is over while another records the message has nothing to acknowledge."""
    broker.send(body())
    late = broker.receive(0.0)
    assert late is not None
    clock.sleep(30.0)
    assert [each.result for each in everything(broker)] == ["accepted"]
    assert not broker.acknowledge(late)


def test_a_ledger_that_is_down_is_a_broker_that_is_down(broker: SqlBroker, ledger: Ledger):
    """To whoever only knows brokers it is one that can't be reached now."""
    broker.send(body())
    delivery = broker.receive(0.0)
    assert delivery is not None
    ledger.see(lambda conn: conn.exec_driver_sql("PRAGMA query_only=1"))
    with pytest.raises(BrokerDown, match="read-only"):
        broker.acknowledge(delivery)
    with pytest.raises(LedgerUnavailable):
        broker.send(body())


def test_a_message_is_read_once(broker: SqlBroker, monkeypatch: pytest.MonkeyPatch):
    """Whatever becomes of it: one that is refused may be as large as any."""
    loads, read = json.loads, []

    def counted(text: str, **how: Any) -> Any:
        read.append(text.encode())
        return loads(text, **how)

    monkeypatch.setattr(json, "loads", counted)
    contents = [b"nonsense", body("r1", trainingVmSku="ND7"), body("r2"), body("r2", extra=1)]
    for content in contents:
        broker.send(content)
    results = [each.result for each in everything(broker)]
    assert results == ["dead", "rejected", "accepted", "conflict"]
    assert read == contents
