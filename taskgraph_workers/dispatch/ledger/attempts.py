"""Attempts: who works on one, how far it is, how it ended.

Whoever works on an attempt owns it for a time, by a token that no other has. Every function that
takes an :class:`Attempt` gives back the attempt as it is then, or None where the token, or the
state, is no longer what is in the ledger: somebody else has it, and nothing was changed. But for
those about what an ended one holds: letting go of that twice does no harm, and no token is asked.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Callable

from sqlalchemy import ColumnElement, Connection, Row, Select, case, or_, select, update

from taskgraph_workers.dispatch.failpoints import reach
from taskgraph_workers.dispatch.ledger import outbox, progress
from taskgraph_workers.dispatch.ledger.tables import ALIVE, HELD, attempts, requests
from taskgraph_workers.dispatch.ledger.values import Attempt, job_from_text
from taskgraph_workers.dispatch.message import end_message
from taskgraph_workers.dispatch.model import (
    ACCEPTED,
    END_ROWS,
    FINAL,
    REJECTED,
    RUNNING,
    STATES,
    SUBMITTED,
    Progress,
    Status,
)

#: Due at once, whatever the time is.
AT_ONCE = 0.0

# The longest reason that is kept.
_MOST_REASON = 2000

_RANK = {ACCEPTED: 0, SUBMITTED: 1, RUNNING: 2, **dict.fromkeys(FINAL, 3)}


@dataclass(frozen=True)
class Owner:
    """Who is to own attempts, for how long, and how many at once."""

    name: str
    for_s: float
    limit: int = 50


def own(conn: Connection, owner: Owner, now: float) -> tuple[Attempt, ...]:
    """Attempts that are due, the longest waiting first, owned from now on.

    Also those whose owner's time is over: they are taken over. While an attempt is owned it is
    due for others when that time ends.
    """
    found = attempts.select().where(
        ALIVE,
        attempts.c.next_look <= now,
        or_(attempts.c.owner.is_(None), attempts.c.owned_until <= now),
    )
    until = now + owner.for_s
    return _take(conn, found, owner, owned_until=until, next_look=until)


def keep(conn: Connection, mine: Attempt, until: float) -> Attempt | None:
    """Own it for longer."""
    return _write(conn, mine, owned_until=until, next_look=_unless_at_once(until))


def let_go(conn: Connection, mine: Attempt, next_look: float, tries: int = 0) -> Attempt | None:
    """Own it no longer, and say when somebody is to look again.

    Where it was asked meanwhile that it be canceled, that is at once.
    """
    look = _unless_at_once(next_look)
    return _write(conn, mine, owner=None, owned_until=0.0, next_look=look, tries=tries)


def record_handle(conn: Connection, mine: Attempt, handle: str) -> Attempt | None:
    """What its executor calls it. An attempt that was accepted is submitted now."""
    state = SUBMITTED if mine.state == ACCEPTED else mine.state
    fresh = {"tries": 0, "failures": 0, "unheard_since": None, "reason": ""}
    changed = _write(conn, mine, handle=handle, state=state, **fresh)
    if changed is not None and (state, "") != (mine.state, mine.reason):
        _show(conn, changed)
    return changed


def heard(conn: Connection, mine: Attempt, status: Status) -> Attempt | None:
    """Its executor was asked and told this; its state stays."""
    reason = storable(status.reason)
    changed = _write(conn, mine, **_told(mine, status), reason=reason)
    if changed is not None and reason != mine.reason:
        _show(conn, changed)
    return changed


def unheard(conn: Connection, mine: Attempt, now: float, why: str = "") -> Attempt | None:
    """Nobody could be asked. Since when that is so stays as it was said first; why, as it was last.

    The next answer says another reason, or none.
    """
    since = now if mine.unheard_since is None else mine.unheard_since
    reason = storable(why) or mine.reason
    changed = _write(conn, mine, unheard_since=since, reason=reason)
    if changed is not None and reason != mine.reason:
        _show(conn, changed)
    return changed


def failed(conn: Connection, mine: Attempt, next_look: float) -> Attempt | None:
    """Working on it failed in a way nobody knows: counted, and let go of for a while."""
    counted = _write(conn, mine, failures=mine.failures + 1)
    return counted and let_go(conn, counted, next_look, mine.tries + 1)


def change(conn: Connection, mine: Attempt, to: str, now: float, status: Status) -> Attempt | None:
    """Move it forward to another state: the one place where that happens.

    To the state that it is in, it is only :func:`heard`; backward, nothing happens (None). The end
    comes with its end message, in the same transaction; nobody owns it then.
    """
    if to not in STATES or to == REJECTED:
        raise ValueError(f"no attempt becomes {to}")
    if _RANK[to] < _RANK[mine.state] or mine.is_final:
        return None
    if to == mine.state:
        return heard(conn, mine, status)
    values: dict[str, Any] = {"state": to, **_told(mine, status), "tries": 0}
    values["reason"] = storable(status.reason)
    if mine.started_at is None and (to == RUNNING or status.machine):
        values["started_at"] = now
    if to in FINAL:
        values.update(ended_at=now, owner=None, owned_until=0.0, exit_code=status.exit_code)
        # What was never submitted holds nothing.
        values.update(next_look=now, released_at=now if mine.handle is None else None)
    changed = _write(conn, mine, **values)
    if changed is None:
        return None
    reach("after-state-change")
    _show(conn, changed)
    if to in FINAL:
        _tell(conn, changed, now)
    return changed


def ask_cancel(conn: Connection, request_id: str, now: float) -> str | None:
    """Ask for a request to end: the state it is in, where a final one stays; None if unknown.

    Whoever owns its attempt sees that with the next look, which is at once.
    """
    found = select(requests.c.state, requests.c.attempt)
    row = conn.execute(found.where(requests.c.request_id == request_id)).first()
    if row is None:
        return None
    alive = (
        attempts.c.request_id == request_id,
        attempts.c.attempt == row.attempt,
        ALIVE,
        attempts.c.cancel_asked_at.is_(None),
    )
    conn.execute(update(attempts).where(*alive).values(cancel_asked_at=now, next_look=AT_ONCE))
    return str(row.state)


def hurry(conn: Connection) -> None:
    """Have everything that is alive, or held, and nobody's looked at at once."""
    for left in (ALIVE, HELD):
        nobodys = update(attempts).where(left, attempts.c.owner.is_(None))
        conn.execute(nobodys.values(next_look=AT_ONCE))


def free(conn: Connection, is_gone: Callable[[str], bool]) -> int:
    """Have at once what owners had who are gone; how many these were. They own nothing then."""
    count = 0
    for left in (ALIVE, HELD):
        owned = (left, attempts.c.owner.is_not(None))
        for owner in conn.execute(select(attempts.c.owner).where(*owned).distinct()).scalars():
            if is_gone(owner):
                theirs = update(attempts).where(left, attempts.c.owner == owner)
                nobodys = {"owner": None, "owned_until": 0.0, "next_look": AT_ONCE}
                count += conn.execute(theirs.values(nobodys)).rowcount
    return count


def take_held(conn: Connection, owner: Owner, now: float) -> tuple[Attempt, ...]:
    """Attempts that have ended and still hold something, kept from other dispatchers for a while.

    What is not marked as released by then is taken again, by whoever comes.
    """
    found = attempts.select().where(HELD, attempts.c.next_look <= now)
    return _take(conn, found, owner, next_look=now + owner.for_s)


def _take(
    conn: Connection, found: Select[Any], owner: Owner, **until: float
) -> tuple[Attempt, ...]:
    """Of what was found the longest waiting, with a token of this owner's."""
    some = found.order_by(attempts.c.next_look).limit(owner.limit)
    rows = conn.execute(some.with_for_update(skip_locked=True)).all()
    if not rows:
        return ()
    mine: dict[str, Any] = {"owner": f"{owner.name} {secrets.token_hex(8)}", **until}
    keys = [row.key for row in rows]
    conn.execute(update(attempts).where(attempts.c.key.in_(keys)).values(mine))
    return tuple(_attempt(row, **mine) for row in rows)


def released(conn: Connection, ended: Attempt, now: float) -> bool:
    """It holds nothing any more; False if that is known."""
    return _held(conn, ended, released_at=now, owner=None)


def release_again(conn: Connection, ended: Attempt, next_look: float) -> bool:
    """Try later to let go of what it holds; False if it holds nothing."""
    return _held(conn, ended, next_look=next_look, tries=ended.tries + 1, owner=None)


def held_on(conn: Connection, ended: Attempt, next_look: float) -> bool:
    """Go on then with letting go of what it holds; False if it holds nothing."""
    return _held(conn, ended, next_look=next_look, owner=None)


def _held(conn: Connection, ended: Attempt, **values: Any) -> bool:
    held = (attempts.c.key == ended.key, attempts.c.released_at.is_(None))
    return conn.execute(update(attempts).where(*held).values(values)).rowcount == 1


def read(conn: Connection, request_id: str, attempt: int) -> Attempt | None:
    """One attempt, to look at."""
    found = attempts.select().where(*_key(request_id, attempt))
    row = conn.execute(found).first()
    return None if row is None else _attempt(row)


def _write(conn: Connection, mine: Attempt, **values: Any) -> Attempt | None:
    """Compare and swap: write if owner and state are what they are believed to be."""
    believed = (
        *_key(mine.request_id, mine.attempt),
        attempts.c.state == mine.state,
        attempts.c.owner == mine.owner,
        ALIVE,
    )
    if mine.owner is None:
        return None
    if conn.execute(update(attempts).where(*believed).values(values)).rowcount != 1:
        return None
    return read(conn, mine.request_id, mine.attempt)


def storable(reason: str) -> str:
    """A reason as it is kept: it may quote a program, and is made a text for any database."""
    return reason.encode(errors="replace").decode().replace("\0", " ")[:_MOST_REASON]


def _unless_at_once(next_look: float) -> Any:
    """When to look at what is owned, which is at once where that was asked since it was taken."""
    return case((attempts.c.next_look == AT_ONCE, AT_ONCE), else_=next_look)


def _told(mine: Attempt, status: Status) -> dict[str, Any]:
    """What a status says of the run; an earlier run than the one that is known says nothing."""
    told: dict[str, Any] = {"unheard_since": None, "failures": 0}
    if status.run >= mine.run:
        told["run"] = status.run
        if status.machine or status.run > mine.run:
            told["machine"] = status.machine
    return told


def _show(conn: Connection, now_is: Attempt) -> None:
    """The request is in the state of its newest attempt, which is the only one that lives."""
    of = (
        requests.c.request_id == now_is.request_id,
        requests.c.attempt == now_is.attempt,
    )
    values = {"state": now_is.state, "reason": now_is.reason, "ended_at": now_is.ended_at}
    conn.execute(update(requests).where(*of).values(values))


def _tell(conn: Connection, ended: Attempt, now: float) -> None:
    data = {"reason": ended.reason} if ended.reason else {}
    # That its machine is gone may be told by now: it ended before that.
    gone_at = progress.left_at(conn, ended.request_id, ended.attempt, ended.run)
    at = now if gone_at is None else min(now, gone_at)
    fact = Progress(END_ROWS[ended.state], at, ended.run, data=data)
    progress.write(conn, ended.request_id, ended.attempt, fact)
    run = ended.run if ended.handle is not None else None
    body = end_message(ended.request_id, ended.state, ended.machine, run, ended.reason)
    outbox.tell(conn, outbox.id_of(ended.request_id, ended.attempt), body, now)
    reach("after-outbox-write")


def _key(request_id: str, attempt: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return attempts.c.request_id == request_id, attempts.c.attempt == attempt


def _attempt(row: Row[Any], **changed: Any) -> Attempt:
    values = {**row._mapping, **changed}
    return Attempt(**{**values, "job": job_from_text(values["job"])})
