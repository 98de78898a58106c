"""What the loop writes about an attempt in one transaction: all of it happens, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from taskgraph_workers.dispatch.failpoints import reach
from taskgraph_workers.dispatch.ledger import attempts, machines, progress
from taskgraph_workers.dispatch.ledger.machines import Named
from taskgraph_workers.dispatch.ledger.values import Attempt
from taskgraph_workers.dispatch.model import (
    LEFT_ROWS,
    MACHINE_ROWS,
    VM_CREATED,
    VM_DESTROYED,
    VM_STOPPING,
    Progress,
    Status,
)

#: In the data of what is told of a machine: which one.
_MACHINE = "trainingVmId"


@dataclass(frozen=True)
class News:
    """What was heard of a job: how it is, and facts, some of which may be known.

    ``ephemeral``: whether its machine was made for it.
    """

    to: str
    status: Status
    facts: tuple[Progress, ...] = ()
    ephemeral: bool = True


def submitted(conn: Connection, mine: Attempt, handle: str, next_look: float) -> Attempt | None:
    """Its executor has it; somebody is to look at it then."""
    changed = attempts.record_handle(conn, mine, handle)
    return changed and attempts.let_go(conn, changed, next_look)


def settled(
    conn: Connection, mine: Attempt, news: News, now: float, next_look: float
) -> Attempt | None:
    """Facts, machine and state; what has not ended is let go of. None where it is not ours."""
    changed = attempts.change(conn, mine, news.to, now, news.status)
    if changed is None:
        return None
    tell(conn, changed, news.facts, news.ephemeral, now)
    reach("before-settled")
    return changed if changed.is_final else attempts.let_go(conn, changed, next_look)


def same(conn: Connection, mine: Sequence[tuple[Attempt, float]]) -> None:
    """Nothing is new of these: somebody is to look at each then."""
    for each, next_look in mine:
        attempts.let_go(conn, each, next_look, each.tries)


def unheard(conn: Connection, mine: Sequence[tuple[Attempt, float, str]], now: float) -> None:
    """Nobody could be asked about these: since when, and why, is kept; nothing follows from it."""
    for each, next_look, why in mine:
        changed = attempts.unheard(conn, each, now, why)
        if changed is not None:
            attempts.let_go(conn, changed, next_look, each.tries + 1)


def told(
    conn: Connection,
    ended: Attempt,
    facts: Sequence[Progress],
    ephemeral: bool,
    now: float,
    next_look: float,
) -> None:
    """Some of what was told of it last; there is more, so it is taken again then."""
    tell(conn, ended, facts, ephemeral, now)
    attempts.held_on(conn, ended, next_look)


def asked_to_go(
    conn: Connection, ended: Attempt, ephemeral: bool, now: float, next_look: float
) -> None:
    """Its machine was asked to go, and may be there: it is asked again then."""
    data = {} if ended.machine is None else {_MACHINE: ended.machine}
    fact = Progress(VM_STOPPING, now, ended.run, data=data)
    if progress.append(conn, ended.request_id, ended.attempt, [fact]):
        _machine(conn, ended, fact, ephemeral)
    attempts.release_again(conn, ended, next_look)


def released(
    conn: Connection, ended: Attempt, facts: Sequence[Progress], ephemeral: bool, now: float
) -> bool:
    """It holds nothing any more, and this is all that will ever be told of it."""
    tell(conn, ended, facts, ephemeral, now)
    return attempts.released(conn, ended, now)


def tell(
    conn: Connection, of: Attempt, facts: Sequence[Progress], ephemeral: bool, now: float
) -> None:
    """Write down facts, and what they say of machines. What is known already stays as it is."""
    facts = [_not_before_end(of, fact) for fact in facts]
    progress.append(conn, of.request_id, of.attempt, facts)
    if of.machine is not None:
        fact = Progress(VM_CREATED, now, of.run, data={_MACHINE: of.machine})
        if progress.append(conn, of.request_id, of.attempt, [fact]):
            _machine(conn, of, fact, ephemeral)
    for fact in facts:
        if fact.name in MACHINE_ROWS:
            _machine(conn, of, fact, ephemeral)


def _not_before_end(of: Attempt, fact: Progress) -> Progress:
    """A fact as it is kept: an end is written down when it is noticed, and machines go after it."""
    is_last = fact.name in LEFT_ROWS and fact.run == of.run
    if is_last and of.ended_at is not None and fact.at < of.ended_at:
        return replace(fact, at=of.ended_at)
    return fact


def _machine(conn: Connection, of: Attempt, fact: Progress, ephemeral: bool) -> None:
    id = fact.data.get(_MACHINE, of.machine)
    if not isinstance(id, str):
        return
    named = Named(id, of.job.pool, ephemeral)
    if fact.name == VM_CREATED:
        machines.created(conn, named, fact.at)
        machines.used(conn, id, (of.request_id, of.attempt), fact.run)
    elif fact.name == VM_STOPPING:
        machines.stop_asked(conn, named, fact.at)
    elif fact.name == VM_DESTROYED:
        machines.gone(conn, named, fact.at)
