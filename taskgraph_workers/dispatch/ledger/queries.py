"""What is shown of the ledger. Each takes as long with a million finished requests as with none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, and_, func, select

from taskgraph_workers.dispatch.ledger import outbox, queue
from taskgraph_workers.dispatch.ledger.tables import ALIVE, HELD, attempts, requests
from taskgraph_workers.dispatch.ledger.tables import outbox as outbox_table
from taskgraph_workers.dispatch.ledger.values import Request

_REQUEST = (
    *(requests.c.request_id, requests.c.state, requests.c.reason, requests.c.sku),
    *(requests.c.image, requests.c.attempt, requests.c.received_at, requests.c.ended_at),
)
_ATTEMPT = (
    *(attempts.c.executor, attempts.c.key, attempts.c.handle, attempts.c.run, attempts.c.machine),
    *(attempts.c.cancel_asked_at, attempts.c.unheard_since, attempts.c.started_at),
    attempts.c.exit_code,
)


def request(conn: Connection, request_id: str) -> Request | None:
    """One request."""
    found = conn.execute(_requests().where(requests.c.request_id == request_id)).first()
    return None if found is None else Request(**found._mapping)


def alive(conn: Connection, limit: int = 1000) -> tuple[Request, ...]:
    """Requests that have not ended, oldest first."""
    found = _requests().where(requests.c.ended_at.is_(None))
    rows = conn.execute(found.order_by(requests.c.received_at).limit(limit))
    return tuple(Request(**row._mapping) for row in rows)


def newest(conn: Connection, limit: int = 100) -> tuple[Request, ...]:
    """Requests in any state, the newest first."""
    order = (requests.c.received_at.desc(), requests.c.request_id.desc())
    rows = conn.execute(_requests().order_by(*order).limit(limit))
    return tuple(Request(**row._mapping) for row in rows)


def is_idle(conn: Connection) -> bool:
    """Whether nothing is left to do.

    No start message, nothing alive or held, every end message sent.
    """
    if queue.first_at(conn, queue.START) is not None or outbox.is_unsent(conn):
        return False
    left = (select(attempts.c.key).where(each).limit(1) for each in (ALIVE, HELD))
    return all(conn.execute(each).first() is None for each in left)


def next_due(conn: Connection) -> float | None:
    """When the next thing is due (a time that may be past); None if nothing is left to do."""
    due: Sequence[Any] = (
        select(func.min(attempts.c.next_look)).where(ALIVE),
        select(func.min(attempts.c.next_look)).where(HELD),
        select(func.min(outbox_table.c.next_try)).where(outbox_table.c.sent_at.is_(None)),
    )
    times = [queue.first_at(conn, queue.START)]
    times += [conn.execute(each).scalar_one() for each in due]
    return min((float(time) for time in times if time is not None), default=None)


def _requests() -> Select[Any]:
    same = and_(
        attempts.c.request_id == requests.c.request_id, attempts.c.attempt == requests.c.attempt
    )
    return select(*_REQUEST, *_ATTEMPT).select_from(requests.outerjoin(attempts, same))
