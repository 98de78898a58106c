"""End messages, until they are sent: each is written with the state that it tells of."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, exists, select, update

from taskgraph_workers.dispatch.ledger.dialect import insert_new
from taskgraph_workers.dispatch.ledger.tables import outbox
from taskgraph_workers.dispatch.ledger.values import End


def id_of(request_id: str, attempt: int) -> str:
    """The id of an attempt's end message: always the same.

    >>> id_of("c3feb8b2", 1)
    'c3feb8b2/1'
    """
    return f"{request_id}/{attempt}"


def tell(conn: Connection, message_id: str, body: Mapping[str, Any], now: float) -> bool:
    """Have an end message sent; False if there is one with this id."""
    return insert_new(conn, outbox, _row(message_id, body, now))


def publish(conn: Connection, message_id: str, body: Mapping[str, Any], now: float) -> bool:
    """Have an end message here that its readers are to find; False if there is one with this id."""
    return insert_new(conn, outbox, {**_row(message_id, body, now), "sent_at": now})


def take(conn: Connection, now: float, lease_s: float, limit: int = 100) -> tuple[End, ...]:
    """Messages to send now, oldest first, kept from other dispatchers while the lease lasts.

    What is not marked as sent by then is taken again, by whoever comes.
    """
    due = (
        select(outbox)
        .where(outbox.c.sent_at.is_(None), outbox.c.next_try <= now)
        .order_by(outbox.c.next_try, outbox.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    rows = conn.execute(due).all()
    if not rows:
        return ()
    token = secrets.token_hex(16)
    conn.execute(
        update(outbox)
        .where(outbox.c.id.in_([row.id for row in rows]))
        .values(lease=token, next_try=now + lease_s)
    )
    return tuple(_end(row, token) for row in rows)


def sent(conn: Connection, end: End, now: float) -> bool:
    """Mark a message as sent; False if somebody else took it since."""
    return _ours(conn, end, sent_at=now)


def failed(conn: Connection, end: End, next_try: float) -> bool:
    """Try a message again later; False if somebody else took it since."""
    return _ours(conn, end, next_try=next_try, tries=end.tries + 1, lease=None)


def hurry(conn: Connection) -> None:
    """Have at once what failed, and nobody is sending."""
    failed = (outbox.c.sent_at.is_(None), outbox.c.tries > 0, outbox.c.lease.is_(None))
    conn.execute(update(outbox).where(*failed).values(next_try=0.0))


def ends(conn: Connection, limit: int = 1000, after: int = 0) -> tuple[End, ...]:
    """End messages that were sent, oldest first; those after a number, to go on."""
    found = select(outbox).where(outbox.c.sent_at.is_not(None), outbox.c.id > after)
    rows = conn.execute(found.order_by(outbox.c.id).limit(limit))
    return tuple(_end(row, row.lease) for row in rows)


def end_of(conn: Connection, message_id: str) -> End | None:
    """One end message, sent or not."""
    row = conn.execute(select(outbox).where(outbox.c.message_id == message_id)).first()
    return None if row is None else _end(row, row.lease)


def is_unsent(conn: Connection) -> bool:
    """Whether an end message is still to be sent."""
    unsent = select(outbox.c.id).where(outbox.c.sent_at.is_(None))
    return bool(conn.execute(select(exists(unsent))).scalar_one())


def _row(message_id: str, body: Mapping[str, Any], now: float) -> dict[str, Any]:
    text = json.dumps(body, ensure_ascii=True)
    return {"message_id": message_id, "body": text, "created_at": now, "next_try": now, "tries": 0}


def _ours(conn: Connection, end: End, **values: Any) -> bool:
    ours = (
        outbox.c.message_id == end.message_id,
        outbox.c.lease == end.lease,
        outbox.c.sent_at.is_(None),
    )
    return conn.execute(update(outbox).where(*ours).values(**values)).rowcount == 1


def _end(row: Row[Any], lease: str | None) -> End:
    body = json.loads(row.body)
    return End(row.id, row.message_id, body, row.created_at, row.tries, row.sent_at, lease)
