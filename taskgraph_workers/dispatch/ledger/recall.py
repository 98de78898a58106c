"""What a clock put off that was wrong, and was set back: nobody would look at it until then."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table, update

from taskgraph_workers.dispatch.ledger.attempts import AT_ONCE
from taskgraph_workers.dispatch.ledger.queue import START
from taskgraph_workers.dispatch.ledger.tables import ALIVE, HELD, attempts, messages, outbox


def recall(conn: Connection, after: float) -> int:
    """Have at once all that is put off until after this time; how much that was.

    The time is to be further away than anything is put off. Attempts are nobody's then: whoever
    owned one until that time finds that, as after any other taking over.
    """
    anew: dict[str, Any] = {"owner": None, "owned_until": 0.0, "next_look": AT_ONCE}
    count = 0
    for left in (ALIVE, HELD):
        count += _changed(conn, attempts, (left, attempts.c.next_look > after), anew)
    waiting = (messages.c.queue == START, messages.c.visible_at > after)
    count += _changed(conn, messages, waiting, {"visible_at": AT_ONCE, "lease": None})
    unsent = (outbox.c.sent_at.is_(None), outbox.c.next_try > after)
    return count + _changed(conn, outbox, unsent, {"next_try": AT_ONCE, "lease": None})


def _changed(conn: Connection, table: Table, where: tuple[Any, ...], values: dict[str, Any]) -> int:
    return conn.execute(update(table).where(*where).values(values)).rowcount
