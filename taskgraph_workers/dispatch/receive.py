"""From a queue into the ledger: a message is acknowledged when, and only when, it is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Callable, Union

from taskgraph_workers.dispatch import message as messages
from taskgraph_workers.dispatch.brokers.base import Broker, Delivery
from taskgraph_workers.dispatch.brokers.sql import HANDLER_FAILED, MOST_FAILURES, Judge, SqlBroker
from taskgraph_workers.dispatch.failpoints import reach
from taskgraph_workers.dispatch.ledger import receipt
from taskgraph_workers.dispatch.ledger.errors import LedgerError
from taskgraph_workers.dispatch.ledger.receipt import Verdict
from taskgraph_workers.dispatch.ledger.values import (
    ACCEPTED,
    DUPLICATE,
    POSTPONED,
    REOPENED,
    Accepted,
    Recorded,
)
from taskgraph_workers.dispatch.means import Means
from taskgraph_workers.dispatch.model import Message, Placed, Refused

#: Where a message runs, or why it can't.
Placing = Callable[[Message], Union[Placed, Refused]]

# How many messages of another's queue are remembered that failed.
_MOST_FAILED = 1000


def judge_of(placing: Placing, executor: str) -> Judge:
    """What is made of a message: the bytes are read, placed, and run by this executor."""

    def judge(body: bytes) -> Verdict:
        found = messages.read(body)
        if isinstance(found, Refused):
            return found
        placed = placing(found)
        return placed if isinstance(placed, Refused) else Accepted(found, placed, executor)

    return judge


@dataclass(frozen=True)
class Intake:
    """Takes messages from a broker, one transaction each."""

    means: Means
    broker: Broker
    judge: Judge
    failed: dict[str, int] = field(default_factory=dict)

    def take(self, limit: int) -> int:
        """Record so many waiting messages; how many there were. Raises BrokerDown."""
        for count in range(limit):
            if self.means.stopped() or not self.take_one():
                return count
        return limit

    def take_one(self, wait_s: float = 0.0) -> bool:
        """Record the next message; whether there was one. Raises BrokerDown."""
        verdicts: list[Verdict] = []
        if isinstance(self.broker, SqlBroker):
            recorded = self.broker.record_next(lambda body: self._judged(body, verdicts))
        else:
            delivery = self.broker.receive(wait_s)
            recorded = None if delivery is None else self._record(delivery, verdicts)
        if recorded is not None:
            self._say(recorded, verdicts)
        return recorded is not None

    def _judged(self, body: bytes, verdicts: list[Verdict]) -> Verdict:
        try:
            verdicts.append(self.judge(body))
        except Exception as error:
            self.means.unforeseen("a message could not be judged", error)
            raise
        return verdicts[-1]

    def _record(self, delivery: Delivery, verdicts: list[Verdict]) -> Recorded:
        """Commit, then acknowledge: what is lost between comes again, as a duplicate."""
        reach("after-receive")
        try:
            verdict = self._judged(delivery.body, verdicts)
        except LedgerError:
            raise
        except Exception as error:
            reason = f"handling it failed: {type(error).__name__}"
            if self._count(delivery) < MOST_FAILURES:
                self.broker.release(delivery, self.means.pace.first_s)
                return Recorded(POSTPONED, reason=reason)
            verdict = Refused(HANDLER_FAILED, reason, messages.digest_of(delivery.body))
        recorded = self.means.ledger.do(receipt.record, delivery.body, verdict, self.means.clock())
        reach("after-commit")
        if not self.broker.acknowledge(delivery):
            self.means.say.warn("the lease was over: it comes again", recorded.request_id)
        reach("after-acknowledge")
        return recorded

    def _count(self, delivery: Delivery) -> int:
        """How often this message failed: not every broker counts its deliveries."""
        digest = messages.digest_of(delivery.body)
        self.failed[digest] = max(self.failed.get(digest, 0) + 1, delivery.attempts)
        while len(self.failed) > _MOST_FAILED:
            del self.failed[next(iter(self.failed))]
        return self.failed[digest]

    def _say(self, recorded: Recorded, verdicts: Sequence[Verdict]) -> None:
        say, more = self.means.say, {"attempt": recorded.attempt, "reason": recorded.reason}
        verdict = verdicts[-1] if verdicts else None
        if isinstance(verdict, Accepted):
            more = {"sku": verdict.message.sku, "image": verdict.message.image, **more}
        good = recorded.result in (ACCEPTED, REOPENED, DUPLICATE)
        (say.info if good else say.warn)(recorded.result, recorded.request_id, **more)
