"""Machines that attempts run on: when each came, was asked to stop, and was gone.

Events of them come late, twice and in any order; the time that they tell decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, exists, func, or_, select, update

from taskgraph_workers.dispatch.ledger.dialect import insert_new
from taskgraph_workers.dispatch.ledger.tables import attempts, machines, uses
from taskgraph_workers.dispatch.ledger.values import Machine


@dataclass(frozen=True)
class Named:
    """A machine as an event names it. ``id`` is the trainingVmId."""

    id: str
    pool: str = ""
    ephemeral: bool = True


def created(conn: Connection, named: Named, at: float) -> bool:
    """It is there; False if that is known, or it was gone later.

    It may come again after it went.
    """
    _add(conn, named)
    again = and_(machines.c.gone_at.is_not(None), machines.c.gone_at < at)
    first = and_(machines.c.gone_at.is_(None), machines.c.created_at.is_(None))
    told = {"pool": named.pool, "ephemeral": named.ephemeral}
    fresh = {"created_at": at, "stop_asked_at": None, "gone_at": None}
    return _set(conn, named.id, or_(again, first), {**told, **fresh})


def stop_asked(conn: Connection, named: Named, at: float) -> bool:
    """Somebody asked for it to go; False if that is known, or it is gone."""
    _add(conn, named)
    there = and_(machines.c.gone_at.is_(None), machines.c.stop_asked_at.is_(None), _since(at))
    return _set(conn, named.id, there, {"stop_asked_at": at})


def gone(conn: Connection, named: Named, at: float) -> bool:
    """It is confirmed that it is gone; False if that is known, or it came again later."""
    _add(conn, named)
    there = and_(machines.c.gone_at.is_(None), _since(at))
    return _set(conn, named.id, there, {"gone_at": at})


def used(conn: Connection, id: str, of: tuple[str, int], run: int) -> bool:
    """A run of an attempt (requestId, number) is on it; whether that is new."""
    row = {"machine": id, "request_id": of[0], "attempt": of[1], "run": run}
    return insert_new(conn, uses, row)


def overdue(conn: Connection, now: float, after_s: float) -> tuple[Machine, ...]:
    """Orphans: machines made for attempts, not gone, and unneeded for longer than ``after_s``.

    One is unneeded from when it was asked to stop, or from when the last attempt on it ended; if
    none ever ran on it, from when it was created.
    """
    on = and_(uses.c.request_id == attempts.c.request_id, uses.c.attempt == attempts.c.attempt)
    here = uses.c.machine == machines.c.id
    alive = exists(select(uses.c.run).join(attempts, on).where(here, attempts.c.ended_at.is_(None)))
    last = select(func.max(attempts.c.ended_at)).join(uses, on).where(here).scalar_subquery()
    since = func.coalesce(last, machines.c.created_at)
    long_ago = now - after_s
    found = select(machines).where(
        machines.c.gone_at.is_(None),
        machines.c.ephemeral,
        or_(machines.c.stop_asked_at <= long_ago, and_(~alive, since <= long_ago)),
    )
    return tuple(Machine(**row._mapping) for row in conn.execute(found.order_by(machines.c.id)))


def _add(conn: Connection, named: Named) -> None:
    row = {"id": named.id, "pool": named.pool, "ephemeral": named.ephemeral}
    insert_new(conn, machines, row)


def _since(at: float) -> Any:
    """Whether an event of this time is of the machine as it is now, not of one before."""
    return or_(machines.c.created_at.is_(None), machines.c.created_at <= at)


def _set(conn: Connection, id: str, where: Any, values: dict[str, Any]) -> bool:
    made = update(machines).where(machines.c.id == id, where).values(values)
    return conn.execute(made).rowcount == 1
