"""The embedded queue: start messages in the ledger's own database, where end messages stay."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from taskgraph_workers.dispatch.brokers.base import BrokerDown, Delivery
from taskgraph_workers.dispatch.failpoints import reach
from taskgraph_workers.dispatch.ledger import outbox
from taskgraph_workers.dispatch.ledger import queue as queues
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.ledger.dead import bury
from taskgraph_workers.dispatch.ledger.errors import LedgerError, LedgerUnavailable
from taskgraph_workers.dispatch.ledger.receipt import Verdict, record
from taskgraph_workers.dispatch.ledger.values import DEAD, POSTPONED, Recorded
from taskgraph_workers.dispatch.message import digest_of
from taskgraph_workers.dispatch.model import Refused

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")

#: Makes of a message what is to be recorded. It changes nothing, and may be asked again.
Judge = Callable[[bytes], Verdict]

#: How often a judge may fail in an unknown way before its message is a dead letter.
MOST_FAILURES = 5

#: The code of such a dead letter.
HANDLER_FAILED = "handler-failed"

# How long to wait between looks at an empty queue, and after a judge failed.
_LOOK_S, _AGAIN_S = 0.05, 1.0


@dataclass(frozen=True)
class SqlBroker:
    """A queue of the ledger. ``clock`` is seconds since the epoch; ``sleep`` waits for some.

    A message that is received is another's when ``lease_s`` is over.
    """

    ledger: Ledger
    clock: Callable[[], float] = time.time
    queue: str = queues.START
    lease_s: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    name: str = "sql"

    # --- in one transaction: what the loop does with this broker ---

    def record_next(self, judge: Judge) -> Recorded | None:
        """Take the next message, judge it, record it and take it off, in one transaction.

        None if there is none. A judge that raises leaves the message for later, and after five
        times a dead letter (result ``dead``). Raises LedgerUnavailable.
        """
        begun: list[queues.Waiting] = []
        try:
            recorded = self.ledger.do(self._record_next, judge, begun)
        except LedgerError:
            raise
        except Exception as error:
            if not begun:
                raise
            return self.ledger.do(_put_off, begun[-1], type(error).__name__, self.clock())
        reach("after-commit")
        return recorded

    def relay(self, limit: int = 100) -> int:
        """Mark end messages that are due as sent, in one transaction; how many.

        They are read where they are: in the ledger.
        """
        return self.ledger.do(_relay, self.clock(), limit)

    def send(self, body: bytes, message_id: str | None = None) -> bool:
        """Queue a message; False where one with this id waits already. Raises LedgerUnavailable."""
        message = queues.Outgoing(self.queue, body, message_id)
        return self.ledger.do(queues.put, message, self.clock())

    # --- message by message, as any broker ---

    def receive(self, wait_s: float) -> Delivery | None:
        """The next message, leased, or None after ``wait_s`` without one. Raises BrokerDown."""
        end = self.clock() + wait_s
        while True:
            found = self._reached(self._take)
            left = end - self.clock()
            if found is not None or left <= 0:
                return found
            self.sleep(min(_LOOK_S, left))

    def acknowledge(self, delivery: Delivery) -> bool:
        """Take it off the queue; False if it is no longer ours. Raises BrokerDown."""
        return self._reached(lambda: self.ledger.do(queues.acknowledge, delivery))

    def release(self, delivery: Delivery, delay_s: float) -> None:
        """Give it back, to be delivered again after a while. Raises BrokerDown."""
        now = self.clock()
        self._reached(lambda: self.ledger.do(queues.release, delivery, now, delay_s))

    def publish(self, body: Mapping[str, Any], message_id: str) -> None:
        """Nothing is left to do: an end message is in the ledger already, and is read there."""

    def _take(self) -> Delivery | None:
        # Looking takes no lock, so that waiting stops nobody from writing.
        now = self.clock()
        if not self.ledger.see(queues.is_waiting, self.queue, now):
            return None
        return self.ledger.do(queues.take, self.queue, now, self.lease_s)

    def _reached(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except LedgerUnavailable as error:
            raise BrokerDown(str(error)) from error

    def _record_next(
        self, conn: Connection, judge: Judge, begun: list[queues.Waiting]
    ) -> Recorded | None:
        now = self.clock()
        row = queues.next_of(conn, self.queue, now)
        if row is None:
            return None
        begun.append(row)
        reach("after-receive")
        recorded = record(conn, row.body, judge(row.body), now)
        queues.drop(conn, row.id)
        reach("before-commit")
        return recorded


def _put_off(conn: Connection, row: queues.Waiting, error: str, now: float) -> Recorded:
    """Leave a message for later, or bury it: nobody knows what is wrong with it, or with us."""
    reason = f"handling it failed: {error}"
    failures = row.attempts + 1
    if failures < MOST_FAILURES:
        queues.put_off(conn, row.id, now + _AGAIN_S * 2**row.attempts, failures)
        return Recorded(POSTPONED, reason=reason)
    if queues.drop(conn, row.id):
        refused = Refused(HANDLER_FAILED, reason, digest_of(row.body))
        bury(conn, queues.START, row.body, refused, now)
    return Recorded(DEAD, reason=reason)


def _relay(conn: Connection, now: float, limit: int) -> int:
    """Taken and sent at once: no lease is needed, and no crash comes between."""
    taken = outbox.take(conn, now, 0.0, limit)
    for end in taken:
        outbox.sent(conn, end, now)
        reach("during-relay")
    return len(taken)
