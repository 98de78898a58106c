"""A broker outside of the ledger, with faults of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from dispatching import World
from ledgers import NOW, body, judge

from taskgraph_workers.dispatch.brokers.base import BrokerDown, Delivery
from taskgraph_workers.dispatch.brokers.external import External
from taskgraph_workers.dispatch.brokers.transport import MOST_FAILURES
from taskgraph_workers.dispatch.ledger import dead, outbox
from taskgraph_workers.dispatch.ledger.errors import LedgerUnavailable
from taskgraph_workers.dispatch.ledger.files import NAME
from taskgraph_workers.dispatch.ledger.values import Accepted
from taskgraph_workers.dispatch.loop import Loop
from taskgraph_workers.dispatch.receive import Intake


@dataclass
class Queue:
    """A broker in memory. What is delivered and not acknowledged can be delivered again."""

    waiting: list[Delivery] = field(default_factory=list)
    out: list[Delivery] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    faults: dict[str, list[Exception | None]] = field(default_factory=dict)
    lost: bool = False
    name: str = "memory"

    def _fault(self, method: str) -> None:
        ordered = self.faults.get(method)
        fault = ordered.pop(0) if ordered else None
        if fault is not None:
            raise fault

    def put(self, content: bytes) -> None:
        self.waiting.append(Delivery(str(len(self.waiting)), content))

    def receive(self, wait_s: float) -> Delivery | None:
        self._fault("receive")
        if not self.waiting:
            return None
        self.out.append(self.waiting.pop(0))
        return self.out[-1]

    def acknowledge(self, delivery: Delivery) -> bool:
        self._fault("acknowledge")
        if not self.lost:
            self.out.remove(delivery)
        return not self.lost

    def release(self, delivery: Delivery, delay_s: float) -> None:
        self._fault("release")
        self.out.remove(delivery)
        self.waiting.append(delivery)

    def publish(self, end: Mapping[str, Any], message_id: str) -> None:
        self._fault("publish")
        self.ends.append(message_id)

    def is_empty(self) -> bool:
        self._fault("is_empty")
        return not self.waiting and not self.out

    def redeliver(self) -> None:
        self.waiting, self.out = self.waiting + self.out, []


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def loop(world: World, queue: Queue) -> Loop:
    made = world.dispatcher()
    made.intake = Intake(made.means, External(made.means, queue), judge)
    return made


def test_a_message_is_acknowledged_when_it_is_recorded(world: World, queue: Queue, loop: Loop):
    """P2: then, and the end goes out by the same broker, once."""
    queue.put(body("r1"))
    queue.put(b"{")
    world.turns(2, loop)
    assert (queue.out, world.states()) == ([], {"r1": "running"})
    world.service.end()
    world.turns(3, loop)
    assert queue.ends == ["r1/1"]


def test_a_broker_that_is_down_at_the_acknowledgement(world: World, queue: Queue, loop: Loop):
    """T6: the message comes again, which changes nothing, and is acknowledged then."""
    queue.put(body("r1"))
    queue.faults["acknowledge"] = [BrokerDown("no")]
    world.turns(2, loop)
    assert (len(queue.out), world.states()) == (1, {"r1": "running"})
    queue.redeliver()
    world.turns(3, loop)
    assert queue.out == queue.waiting == []
    assert list(world.service.starts.values()) == [1]


def test_a_lease_that_was_lost_is_no_fault(world: World, queue: Queue, loop: Loop):
    """P6: what somebody else has by now is not acknowledged, and comes to nothing new."""
    queue.put(body("r1"))
    queue.lost = True
    world.turns(1, loop)
    queue.redeliver()
    queue.lost = False
    world.turns(2, loop)
    assert list(world.service.starts.values()) == [1]
    assert "the lease was over" in world.said.getvalue()


def test_a_broker_that_is_down_at_the_start(world: World, queue: Queue, loop: Loop):
    """T6: all else goes on meanwhile; it is asked again, less and less often."""
    world.send("r1")
    world.turns(2)
    queue.put(body("r2"))
    queue.faults["receive"] = [BrokerDown("connection refused")] * 4
    world.service.end()
    world.turns(2, loop)
    assert world.states() == {"r1": "succeeded"}
    world.turns(20, loop)
    assert world.states() == {"r1": "succeeded", "r2": "running"}
    assert world.said.getvalue().count("connection refused") == 4


def test_end_messages_wait_for_their_broker(world: World, queue: Queue, loop: Loop):
    """T11: ten minutes of outage, and then each is there, once."""
    for number in range(5):
        queue.put(body(f"r{number}"))
    world.turns(2, loop)
    world.service.end()
    queue.faults["publish"] = [BrokerDown("no")] * 9
    world.turns(100, loop, after_s=6.0)
    assert set(world.states().values()) == {"succeeded"}
    queue.faults["publish"] = []
    world.turns(60, loop, after_s=6.0)
    assert sorted(queue.ends) == [f"r{number}/1" for number in range(5)]
    assert not world.ledger.see(outbox.is_unsent)


def test_who_dies_between_sending_and_marking_sends_again(world: World, queue: Queue, loop: Loop):
    """P7: at least once, with the same id each time."""
    queue.put(body("r1", trainingVmSku="ND7"))
    world.turns(1, world.loop)
    loop.intake.take(10)
    (end,) = world.ledger.do(outbox.take, world.clock.now, 60.0)
    queue.publish(end.body, end.message_id)
    world.clock.now += 61
    world.turns(1, loop)
    assert queue.ends == ["r1/1", "r1/1"]


def test_a_message_that_fails_in_an_unknown_way(world: World, queue: Queue, loop: Loop):
    """P5: five times, longer each time; then it is a dead letter, and others went on."""

    def judging(content: bytes) -> Any:
        if b"r1" in content:
            raise ZeroDivisionError
        return judge(content)

    loop.intake = Intake(loop.means, loop.intake.transport, judging)
    queue.put(body("r1"))
    queue.put(body("r2"))
    world.turns(10, loop)
    assert world.states() == {"r2": "running"}
    (letter,) = world.ledger.see(dead.letters)
    assert (letter.code, letter.body) == ("handler-failed", body("r1"))
    assert queue.waiting == queue.out == []


def test_a_message_that_can_not_be_recorded(world: World, queue: Queue, loop: Loop):
    """P5: that is bounded in the same way, whatever part of handling it fails."""

    def unstorable(content: bytes) -> Any:
        verdict = judge(content)
        assert isinstance(verdict, Accepted)
        return Accepted(verdict.message, verdict.placed, "\ud800")

    loop.intake = Intake(loop.means, loop.intake.transport, unstorable)
    queue.put(body("r1"))
    world.turns(10, loop)
    (letter,) = world.ledger.see(dead.letters)
    assert (letter.code, letter.body) == ("handler-failed", body("r1"))
    assert queue.waiting == queue.out == []
    assert world.states() == {}


def test_a_ledger_that_is_down_counts_for_no_message(world: World, queue: Queue, loop: Loop):
    """P5: the message is given back at once, as often as it takes, and is none that failed."""
    queue.put(body("r1"))
    held = sqlite3.connect(world.folder / NAME, isolation_level=None)

    def locks(content: bytes) -> Any:
        held.execute("BEGIN IMMEDIATE")
        return judge(content)

    intake = Intake(loop.means, loop.intake.transport, locks)
    for _ in range(MOST_FAILURES + 1):
        with pytest.raises(LedgerUnavailable):
            intake.take_one()
        held.execute("ROLLBACK")
        assert (len(queue.waiting), queue.out) == (1, [])
    held.close()
    world.turns(2, loop)
    assert world.states() == {"r1": "running"}
    assert world.ledger.see(dead.letters) == ()


def test_a_dead_letter_that_is_put_back_is_taken(world: World, queue: Queue, loop: Loop):
    """It waits in the ledger, whatever carries messages."""
    queue.put(body("r1", trainingVmSku="ND7"))
    world.turns(1, loop)
    (letter,) = world.ledger.see(dead.letters)
    assert world.ledger.do(dead.put_back, letter.id, world.clock.now).ok
    assert not loop.is_idle()
    world.turns(2, loop)
    (again,) = world.ledger.see(dead.letters)
    assert again.first_at > letter.first_at
    assert queue.ends == ["r1/1", "r1/2"]


def test_it_is_not_idle_while_the_broker_may_have_a_message(world: World, queue: Queue, loop: Loop):
    """Nor where another holds it, who may be dead, and it comes again; nor while nobody knows."""
    seen = [loop.is_idle()]
    queue.put(body("r1"))
    queue.receive(0.0)
    seen.append(loop.is_idle())
    queue.out = []
    queue.faults["is_empty"] = [BrokerDown("no"), ValueError("hunter2"), None]
    seen += [loop.is_idle() for _ in range(3)]
    assert seen == [True, False, False, False, True]
    assert "hunter2" not in world.said.getvalue()


def test_it_listens_while_it_waits(world: World, queue: Queue, loop: Loop):
    """What comes while nothing is due is taken at once, and the loop ends when all is done."""

    def sleep(seconds: float) -> None:
        world.clock.sleep(seconds)

    receive = queue.receive

    def listening(wait_s: float) -> Delivery | None:
        if wait_s:
            world.clock.sleep(wait_s)
            world.service.end()
        return receive(wait_s)

    queue.receive = listening  # type: ignore[method-assign]
    queue.put(body("r1"))
    loop.sleep = sleep
    loop.run(until_idle=True)
    assert (queue.ends, world.states()) == (["r1/1"], {"r1": "succeeded"})
    assert world.clock.now - NOW < 60.0
