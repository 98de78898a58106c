"""Dead letters: messages that can never work, kept for people to look at.

The same content, refused for the same reason, is one letter that is counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from taskgraph_workers.dispatch.ledger.queue import put
from taskgraph_workers.dispatch.ledger.tables import dead_letters, requests
from taskgraph_workers.dispatch.ledger.values import Letter
from taskgraph_workers.dispatch.message import MOST_BYTES
from taskgraph_workers.dispatch.model import REJECTED, Refused

_COLUMNS = (
    *(dead_letters.c.id, dead_letters.c.queue, dead_letters.c.body, dead_letters.c.size),
    *(dead_letters.c.code, dead_letters.c.reason, dead_letters.c.request_id),
    *(dead_letters.c.first_at, dead_letters.c.last_at, dead_letters.c.times),
)


@dataclass(frozen=True)
class PutBack:
    """What putting back a letter came to: ``ok``, or why not, in one sentence."""

    ok: bool
    reason: str = ""


def bury(conn: Connection, queue: str, body: bytes, refused: Refused, now: float) -> int:
    """Keep a message as a dead letter, or count it if it is there; the letter's number."""
    same = (
        dead_letters.c.queue == queue,
        dead_letters.c.digest == refused.digest,
        dead_letters.c.code == refused.code,
    )
    again = update(dead_letters).where(*same).values(last_at=now, times=dead_letters.c.times + 1)
    if not conn.execute(again).rowcount:
        row = {"body": body[:MOST_BYTES], "size": len(body), "digest": refused.digest}
        told = {"code": refused.code, "reason": refused.reason, "request_id": refused.request_id}
        times = {"first_at": now, "last_at": now, "times": 1}
        conn.execute(insert(dead_letters).values(queue=queue, **row, **told, **times))
    number: int = conn.execute(select(dead_letters.c.id).where(*same)).scalar_one()
    return number


def letters(conn: Connection, limit: int = 100) -> tuple[Letter, ...]:
    """The newest letters, the last one first."""
    found = select(*_COLUMNS).order_by(dead_letters.c.id.desc()).limit(limit)
    return tuple(Letter(**row._mapping) for row in conn.execute(found))


def letter(conn: Connection, id: int) -> Letter | None:
    """One letter."""
    row = conn.execute(select(*_COLUMNS).where(dead_letters.c.id == id)).first()
    return None if row is None else Letter(**row._mapping)


def put_back(conn: Connection, id: int, now: float) -> PutBack:
    """Move a letter back into its queue of this ledger, as somebody mended what was wrong.

    A request that was rejected for it may then be tried with the very same message.
    """
    found = letter(conn, id)
    if found is None:
        return PutBack(False, f"there is no dead letter {id}")
    if not found.is_whole:
        return PutBack(False, f"only the first {len(found.body)} of {found.size} bytes are kept")
    digest = select(dead_letters.c.digest).where(dead_letters.c.id == id)
    rejected = (
        requests.c.request_id == found.request_id,
        requests.c.state == REJECTED,
        requests.c.digest == digest.scalar_subquery(),
    )
    conn.execute(update(requests).where(*rejected).values(digest=""))
    conn.execute(delete(dead_letters).where(dead_letters.c.id == id))
    put(conn, found.queue, found.body, now)
    return PutBack(True)


def discard(conn: Connection, id: int) -> bool:
    """Delete a letter for good; whether there was one."""
    return conn.execute(delete(dead_letters).where(dead_letters.c.id == id)).rowcount == 1
