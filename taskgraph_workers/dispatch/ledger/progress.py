"""Progress: facts about attempts, each once, in whatever order they come."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, case, func, select

from taskgraph_workers.dispatch.ledger.dialect import insert_all_new, insert_new
from taskgraph_workers.dispatch.ledger.tables import progress, requests
from taskgraph_workers.dispatch.ledger.values import Fact
from taskgraph_workers.dispatch.message import is_deep, valid_id
from taskgraph_workers.dispatch.model import (
    DROPPED,
    END_ROWS,
    IMAGES_DOWNLOADED,
    LATEST,
    LEFT_ROWS,
    MACHINE_ROWS,
    MOST_FACTS,
    SPELLINGS,
    VM_CREATED,
    VM_DESTROYED,
    VM_RELEASED,
    VM_STOPPING,
    Progress,
)

# In what order facts of one run are shown. What a trainer calls its own lies in between.
_FIRST = {VM_CREATED: 0, IMAGES_DOWNLOADED: 1}
_OWN = 2
_ENDS = dict.fromkeys(END_ROWS.values(), 3)
_LAST = {VM_STOPPING: 4, VM_RELEASED: 5, VM_DESTROYED: 6}
_RANKS = {**_FIRST, **_ENDS, **_LAST}

# The same order as that of _order, backward.
_LATEST_FIRST = [
    each.desc()
    for each in (
        progress.c.attempt,
        progress.c.run,
        case(_RANKS, value=progress.c.name, else_=_OWN),
        progress.c.at,
        progress.c.seq,
        progress.c.name,
    )
]

# What is kept however many facts there are.
_ALWAYS = {*MACHINE_ROWS, DROPPED}

# How many requests one query names.
_MANY = 500

# The longest data of a fact, as JSON, and the largest number that every database takes.
_MOST_DATA, _MOST_COUNT = 16 * 1024, 2**31


def append(conn: Connection, request_id: str, attempt: int, facts: Iterable[Progress]) -> int:
    """Add facts; how many are new.

    Those that are known already are left as they are, however late they come. How an attempt
    ended is never taken from here: only a change of its state writes that. A request that is not
    known, or had no such attempt, takes nothing. Nor is a fact taken that no table can show:
    without a name, with endless or bottomless data, at no time. An attempt has MOST_FACTS; that
    there were more is one more.
    """
    known = select(requests.c.attempt).where(requests.c.request_id == request_id)
    last = conn.execute(known).scalar_one_or_none()
    if last is None or not 1 <= attempt <= last:
        return 0
    rows = []
    for fact in facts:
        data = _fit_data(fact)
        name = fact.name if data is None else SPELLINGS.get(fact.name, fact.name)
        if data is not None and name not in _ENDS:
            rows.append(_row(request_id, attempt, name, fact, data))
    if all(row["name"] in _ALWAYS for row in rows):  # no need to count, which takes a while
        return insert_all_new(conn, progress, rows)
    room = MOST_FACTS - _count(conn, request_id, attempt)
    if len(rows) <= room:
        return insert_all_new(conn, progress, rows)
    return _insert_some(conn, rows, room)


def left_at(conn: Connection, request_id: str, attempt: int, run: int) -> float | None:
    """When the machine of a run was gone, or free again, as it was told; None if it was not."""
    of = (progress.c.request_id == request_id, progress.c.attempt == attempt)
    left = (progress.c.run == run, progress.c.name.in_(LEFT_ROWS))
    at: float | None = conn.execute(select(func.min(progress.c.at)).where(*of, *left)).scalar_one()
    return at


def is_full(conn: Connection, request_id: str, attempt: int) -> bool:
    """Whether no more is kept of what is told of an attempt."""
    return _count(conn, request_id, attempt) >= MOST_FACTS


def _count(conn: Connection, request_id: str, attempt: int) -> int:
    """How many facts an attempt has, up to the most."""
    of = (progress.c.request_id == request_id, progress.c.attempt == attempt)
    some = select(progress.c.seq).where(*of).limit(MOST_FACTS).subquery()
    count: int = conn.execute(select(func.count()).select_from(some)).scalar_one()
    return count


def _insert_some(conn: Connection, rows: Sequence[Mapping[str, Any]], room: int) -> int:
    """Add as many as there is room for; how many are new. What is the ledger's has room."""
    new, told = 0, False
    for row in rows:
        if new < room or row["name"] in _ALWAYS:
            new += insert_new(conn, progress, row)
        elif not told and not _is_there(conn, row):
            told = True
            _tell_dropped(conn, row)
    return new


def _is_there(conn: Connection, row: Mapping[str, Any]) -> bool:
    key = (each == row[each.name] for each in progress.primary_key.columns)
    return conn.execute(select(progress.c.seq).where(*key)).first() is not None


def _tell_dropped(conn: Connection, row: Mapping[str, Any]) -> None:
    """Tell that a fact is left out, once for each attempt."""
    fact = Progress(DROPPED, row["at"], row["run"], data={"after": MOST_FACTS})
    there = (progress.c[name] == row[name] for name in ("request_id", "attempt"))
    found = select(progress.c.seq).where(*there, progress.c.name == DROPPED).limit(1)
    if conn.execute(found).first() is None:
        write(conn, row["request_id"], row["attempt"], fact)


def write(conn: Connection, request_id: str, attempt: int, fact: Progress) -> bool:
    """Add a fact of the ledger's own; whether it is new."""
    row = _row(request_id, attempt, fact.name, fact, _as_text(fact))
    return insert_new(conn, progress, row)


def facts_of(conn: Connection, request_ids: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
    """What is known of requests, each in the order of attempt, run, rank and time."""
    found: dict[str, list[Fact]] = defaultdict(list)
    for start in range(0, len(request_ids), _MANY):
        some = request_ids[start : start + _MANY]
        for row in conn.execute(select(progress).where(progress.c.request_id.in_(some))):
            found[row.request_id].append(_fact(row))
    return {each: tuple(sorted(found[each], key=_order)) for each in found}


def last(conn: Connection, request_id: str, limit: int) -> tuple[tuple[Fact, ...], int]:
    """The last facts of a request, in the order of :func:`facts_of`, and how many there are."""
    of = progress.c.request_id == request_id
    rows = conn.execute(select(progress).where(of).order_by(*_LATEST_FIRST).limit(limit)).all()
    count = conn.execute(select(func.count()).select_from(progress).where(of)).scalar_one()
    return tuple(_fact(row) for row in reversed(rows)), count


def reached(conn: Connection, request_id: str, besides: Collection[str]) -> Fact | None:
    """The last fact of a request but for those of these names; None if there is none."""
    of = (progress.c.request_id == request_id, progress.c.name.not_in(sorted(besides)))
    found = select(progress).where(*of).order_by(*_LATEST_FIRST).limit(1)
    row = conn.execute(found).first()
    return None if row is None else _fact(row)


def _fit_data(fact: Progress) -> str | None:
    """The data of a fact, as it is kept; None where the fact is unfit, of a wrong type even."""
    try:
        if not (valid_id(fact.name) and 0 <= fact.at <= LATEST) or is_deep(dict(fact.data)):
            return None
        if not (0 <= fact.run < _MOST_COUNT and 0 <= fact.seq < _MOST_COUNT):
            return None
        data = _as_text(fact)
    except (TypeError, ValueError, RecursionError):
        return None
    return data if len(data) <= _MOST_DATA else None


def _as_text(fact: Progress) -> str:
    return json.dumps(dict(fact.data), ensure_ascii=True, allow_nan=False)


def _order(fact: Fact) -> tuple[int, int, int, float, int, str]:
    told = fact.progress
    rank = _RANKS.get(told.name, _OWN)
    return fact.attempt, told.run, rank, told.at, told.seq, told.name


def _row(request_id: str, attempt: int, name: str, fact: Progress, data: str) -> dict[str, Any]:
    of = {"request_id": request_id, "attempt": attempt}
    return {**of, "name": name, "run": fact.run, "seq": fact.seq, "at": fact.at, "data": data}


def _fact(row: Row[Any]) -> Fact:
    told = Progress(row.name, row.at, row.run, row.seq, json.loads(row.data))
    return Fact(row.request_id, row.attempt, told)
