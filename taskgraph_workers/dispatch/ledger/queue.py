"""Messages that wait: in the ledger itself, or in a database of their own, with leases.

Whoever takes a message has it until its lease ends, and is then known by the token it was given:
what a stale token says changes nothing.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

from taskgraph_workers.dispatch.brokers.base import Delivery
from taskgraph_workers.dispatch.ledger.tables import messages

#: The queue of start messages.
START = "start"

# Made once: making a statement costs more than SQLite takes to run it.
_NEXT = (
    select(messages.c.id, messages.c.body, messages.c.attempts)
    .where(messages.c.queue == bindparam("queue"), messages.c.visible_at <= bindparam("now"))
    .order_by(messages.c.visible_at, messages.c.id)
    .limit(1)
    .with_for_update(skip_locked=True)
)
_DROP = delete(messages).where(messages.c.id == bindparam("number"))
_PUT = insert(messages)


def put(conn: Connection, queue: str, body: bytes, now: float) -> None:
    """Have a message wait from now on."""
    conn.execute(_PUT, {"queue": queue, "body": body, "visible_at": now, "attempts": 0})


def take(conn: Connection, queue: str, now: float, lease_s: float) -> Delivery | None:
    """The next message, hidden from others until the lease ends."""
    row = next_of(conn, queue, now)
    if row is None:
        return None
    token = secrets.token_hex(16)
    leased = {"lease": token, "visible_at": now + lease_s, "attempts": row.attempts + 1}
    conn.execute(update(messages).where(messages.c.id == row.id).values(leased))
    return Delivery(str(row.id), row.body, token)


def release(conn: Connection, delivery: Delivery, now: float, delay_s: float) -> bool:
    """Give a message back, to be taken again after a while; False if it is no longer ours."""
    back = {"visible_at": now + delay_s, "lease": None}
    given = update(messages).where(*_is_ours(delivery)).values(back)
    return conn.execute(given).rowcount == 1


def acknowledge(conn: Connection, delivery: Delivery) -> bool:
    """Delete a message; False if it is no longer ours."""
    return conn.execute(delete(messages).where(*_is_ours(delivery))).rowcount == 1


def first_at(conn: Connection, queue: str) -> float | None:
    """When the first message may be taken, a time that may be past; None where there is none."""
    found = select(func.min(messages.c.visible_at)).where(messages.c.queue == queue)
    at = conn.execute(found).scalar_one()
    return None if at is None else float(at)


@dataclass(frozen=True)
class Waiting:
    """A message that a transaction has got, with the number of times it was tried before."""

    id: int
    body: bytes
    attempts: int


def next_of(conn: Connection, queue: str, now: float) -> Waiting | None:
    """The next message, locked until the transaction ends where rows can be."""
    row = conn.execute(_NEXT, {"queue": queue, "now": now}).first()
    return None if row is None else Waiting(row.id, bytes(row.body), row.attempts)


def drop(conn: Connection, id: int) -> bool:
    """Delete a message that this transaction has got by :func:`next_of`; whether it was there."""
    return conn.execute(_DROP, {"number": id}).rowcount == 1


def put_off(conn: Connection, id: int, until: float, attempts: int) -> None:
    """Hide a message that this transaction has got, and say how often it was tried."""
    conn.execute(
        update(messages)
        .where(messages.c.id == id)
        .values(visible_at=until, attempts=attempts, lease=None)
    )


def _is_ours(delivery: Delivery) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return messages.c.id == int(delivery.id), messages.c.lease == delivery.token
