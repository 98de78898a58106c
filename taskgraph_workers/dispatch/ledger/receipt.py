"""What becomes of a message: a request, nothing new, a conflict, a rejection, or a dead letter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

from sqlalchemy import Connection, bindparam, insert, select, update

from taskgraph_workers.dispatch.ledger import outbox, progress
from taskgraph_workers.dispatch.ledger.dead import bury
from taskgraph_workers.dispatch.ledger.dialect import insert_new
from taskgraph_workers.dispatch.ledger.queue import START
from taskgraph_workers.dispatch.ledger.tables import attempts, requests
from taskgraph_workers.dispatch.ledger.values import (
    ACCEPTED,
    CONFLICT,
    DEAD,
    DUPLICATE,
    REJECTED,
    REOPENED,
    Accepted,
    Recorded,
    job_to_text,
)
from taskgraph_workers.dispatch.message import end_message
from taskgraph_workers.dispatch.model import END_ROWS, FINAL, Progress, Refused

Verdict = Union[Accepted, Refused]

# Made once: making a statement costs more than SQLite takes to run it.
_KNOWN = (
    select(requests.c.digest, requests.c.state, requests.c.attempt, requests.c.reason)
    .where(requests.c.request_id == bindparam("request_id"))
    .with_for_update()
)
_NEW_ATTEMPT = insert(attempts)

_CONFLICT = "another message with this requestId, and another content, came before"


@dataclass(frozen=True)
class _Received:
    """A message with a requestId, and what was found out about it."""

    body: bytes
    verdict: Verdict
    request_id: str
    digest: str
    now: float


def record(conn: Connection, body: bytes, verdict: Verdict, now: float) -> Recorded:
    """Write down a message and all that follows from it, in this transaction.

    A message is to be acknowledged in the same transaction, or after it.
    """
    if isinstance(verdict, Accepted):
        message = verdict.message
        return _record(conn, _Received(body, verdict, message.request_id, message.digest, now))
    if verdict.request_id is None:
        letter = bury(conn, START, body, verdict, now)
        return Recorded(DEAD, reason=verdict.reason, letter=letter)
    received = _Received(body, verdict, verdict.request_id, verdict.digest, now)
    return _record(conn, received)


def body_of(conn: Connection, request_id: str) -> bytes:
    """The message of a request, as it came. Raises LookupError where there is none."""
    found = select(requests.c.body).where(requests.c.request_id == request_id)
    row = conn.execute(found).first()
    if row is None:
        raise LookupError(request_id)
    return bytes(row.body)


def again(conn: Connection, accepted: Accepted, now: float) -> int | None:
    """Begin one more attempt at a request that has ended; its number, None if it goes on."""
    message = accepted.message
    known = _known(conn, message.request_id)
    if known is None or known.state not in FINAL:
        return None
    received = _Received(b"", accepted, message.request_id, message.digest, now)
    asked = {"sku": message.sku, "image": message.image, "attempt": known.attempt + 1}
    fresh = {"state": ACCEPTED, "reason": "", "ended_at": None, **asked}
    conn.execute(update(requests).where(requests.c.request_id == message.request_id).values(fresh))
    return _begin(conn, received, known.attempt + 1).attempt


def _record(conn: Connection, received: _Received) -> Recorded:
    """A requestId is free until something is accepted under it; then its content is settled."""
    known = _known(conn, received.request_id)
    if known is None and insert_new(conn, requests, _row(received, 1)):
        return _begin(conn, received, 1)
    if known is None:  # a dispatcher elsewhere was faster
        known = _known(conn, received.request_id)
        assert known is not None
    if known.digest == received.digest:
        return Recorded(DUPLICATE, received.request_id, known.attempt, known.reason)
    if known.state != REJECTED:
        refused = Refused(CONFLICT, _CONFLICT, received.digest, received.request_id)
        letter = bury(conn, START, received.body, refused, received.now)
        return Recorded(CONFLICT, received.request_id, known.attempt, _CONFLICT, letter)
    number = known.attempt + 1
    row = _row(received, number)
    conn.execute(update(requests).where(requests.c.request_id == received.request_id).values(row))
    return _begin(conn, received, number)


def _known(conn: Connection, request_id: str) -> Any:
    return conn.execute(_KNOWN, {"request_id": request_id}).first()


def _row(received: _Received, number: int) -> dict[str, Any]:
    verdict, now = received.verdict, received.now
    row = {
        "request_id": received.request_id,
        "digest": received.digest,
        "body": received.body,
        "attempt": number,
        "received_at": now,
    }
    if isinstance(verdict, Refused):
        ended = {"state": REJECTED, "reason": verdict.reason, "ended_at": now}
        return {**row, **ended, "sku": verdict.sku, "image": verdict.image}
    asked = {"sku": verdict.message.sku, "image": verdict.message.image}
    return {**row, **asked, "state": ACCEPTED, "reason": "", "ended_at": None}


def _begin(conn: Connection, received: _Received, number: int) -> Recorded:
    """Begin an attempt, or end it at once."""
    verdict, request_id = received.verdict, received.request_id
    if isinstance(verdict, Refused):
        return _reject(conn, received, verdict, number)
    job = verdict.job(number)
    row = {
        "request_id": request_id,
        "attempt": number,
        "key": job.key,
        "executor": verdict.executor,
        "job": job_to_text(job),
        "state": ACCEPTED,
        "reason": "",
        "tries": 0,
        "next_look": received.now,
        "owned_until": 0.0,
        "run": 0,
        "created_at": received.now,
    }
    conn.execute(_NEW_ATTEMPT, row)
    return Recorded(ACCEPTED if number == 1 else REOPENED, request_id, number)


def _reject(conn: Connection, received: _Received, refused: Refused, number: int) -> Recorded:
    """Tell the sender, and keep the message for whoever can mend what is wrong."""
    request_id, now = received.request_id, received.now
    letter = bury(conn, START, received.body, refused, now)
    told = Progress(END_ROWS[REJECTED], now, data={"code": refused.code, "reason": refused.reason})
    progress.write(conn, request_id, number, told)
    body = end_message(request_id, REJECTED, None, None, refused.reason)
    outbox.tell(conn, outbox.id_of(request_id, number), body, now)
    return Recorded(REJECTED, request_id, number, refused.reason, letter)
