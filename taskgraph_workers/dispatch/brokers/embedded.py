"""The embedded queue: start messages in the ledger's own database, where end messages stay."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskgraph_workers.dispatch.brokers.transport import (
    MOST_FAILURES,
    Judge,
    again_after,
    failure_of,
    given_up,
)
from taskgraph_workers.dispatch.failpoints import reach
from taskgraph_workers.dispatch.ledger import outbox, queue
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.ledger.errors import LedgerError
from taskgraph_workers.dispatch.ledger.receipt import record
from taskgraph_workers.dispatch.ledger.values import POSTPONED, Recorded

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True)
class Embedded:
    """The queue of the ledger. ``clock`` is seconds since the epoch."""

    ledger: Ledger
    clock: Callable[[], float] = time.time

    @property
    def listens(self) -> bool:
        """No: when a message waits is among what the ledger knows to be due."""
        return False

    def record_next(self, judge: Judge, wait_s: float = 0.0) -> Recorded | None:
        """Take the next message, judge it, record it and take it off, in one transaction.

        None if there is none, without waiting. A judge that raises leaves the message for later,
        and after five times a dead letter (result ``dead``). Raises LedgerError.
        """
        begun: list[queue.Waiting] = []
        try:
            recorded = self.ledger.do(self._record_next, judge, begun)
        except LedgerError:
            raise
        except Exception as error:
            if not begun:
                raise
            return self.ledger.do(_put_off, begun[-1], failure_of(error), self.clock())
        if recorded is not None:
            reach("after-commit")
        return recorded

    def relay(self, limit: int) -> int:
        """Mark end messages that are due as sent, in one transaction; how many.

        They are read where they are: in the ledger. Raises LedgerError.
        """
        return self.ledger.do(_relay, self.clock(), limit)

    def is_idle(self) -> bool:
        """Always: there is nothing outside of the ledger."""
        return True

    def _record_next(
        self, conn: Connection, judge: Judge, begun: list[queue.Waiting]
    ) -> Recorded | None:
        now = self.clock()
        row = queue.next_of(conn, queue.START, now)
        if row is None:
            return None
        begun.append(row)
        reach("after-receive")
        recorded = record(conn, row.body, judge(row.body), now)
        queue.drop(conn, row.id)
        reach("before-commit")
        return recorded


def _put_off(conn: Connection, row: queue.Waiting, reason: str, now: float) -> Recorded:
    """Leave a message for later, or bury it: nobody knows what is wrong with it, or with us."""
    failures = row.attempts + 1
    if failures >= MOST_FAILURES and queue.drop(conn, row.id):
        return record(conn, row.body, given_up(row.body, reason), now)
    queue.put_off(conn, row.id, now + again_after(failures), failures)
    return Recorded(POSTPONED, reason=reason)


def _relay(conn: Connection, now: float, limit: int) -> int:
    """Taken and sent at once: no lease is needed, and no crash comes between."""
    taken = outbox.take(conn, now, 0.0, limit)
    for end in taken:
        outbox.sent(conn, end, now)
        reach("during-relay")
    return len(taken)
