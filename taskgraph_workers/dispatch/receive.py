"""From a queue into the ledger: a message is acknowledged when, and only when, it is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable, Union

from taskgraph_workers.dispatch import message as messages
from taskgraph_workers.dispatch.brokers.transport import Judge, Transport
from taskgraph_workers.dispatch.ledger.receipt import Verdict
from taskgraph_workers.dispatch.ledger.values import (
    ACCEPTED,
    DUPLICATE,
    REOPENED,
    Accepted,
    Recorded,
)
from taskgraph_workers.dispatch.means import Means
from taskgraph_workers.dispatch.model import Message, Placed, Refused

#: Where a message runs, or why it can't.
Placing = Callable[[Message], Union[Placed, Refused]]


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
    """Takes messages in, one transaction each, and says what became of each."""

    means: Means
    transport: Transport
    judge: Judge

    def take(self, limit: int) -> int:
        """Record so many waiting messages; how many there were. Raises BrokerDown."""
        for count in range(limit):
            if self.means.stopped() or not self.take_one():
                return count
        return limit

    def take_one(self, wait_s: float = 0.0) -> bool:
        """Record the next message; whether there was one. Raises BrokerDown."""
        verdicts: list[Verdict] = []
        recorded = self.transport.record_next(lambda body: self._judged(body, verdicts), wait_s)
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

    def _say(self, recorded: Recorded, verdicts: Sequence[Verdict]) -> None:
        say, more = self.means.say, {"attempt": recorded.attempt, "reason": recorded.reason}
        more["letter"] = recorded.letter
        verdict = verdicts[-1] if verdicts else None
        if verdict is not None:
            asked = verdict.message if isinstance(verdict, Accepted) else verdict
            more = {"sku": asked.sku, "image": asked.image, **more}
        good = recorded.result in (ACCEPTED, REOPENED, DUPLICATE)
        (say.info if good else say.warn)(recorded.result, recorded.request_id, **more)
