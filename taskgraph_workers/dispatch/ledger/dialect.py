"""All that differs between databases: how to connect, to begin, to insert once, and to back up."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, OperationalError

from taskgraph_workers.dispatch.failpoints import reach
from taskgraph_workers.dispatch.ledger.errors import LedgerError, LedgerUnavailable
from taskgraph_workers.errors import Problem

#: The option of a connection that is going to write.
WRITES = "ledger_writes"

# What SQLite says, and what that means to whoever runs it.
_NOW = {
    "is locked": ("is locked by another process", "see who has it open: fuser"),
    "is full": ("can't grow: the disk is full", "free some space; nothing recorded is lost"),
    "readonly": ("can't be written: it is read-only", "check the file, its folder and its disk"),
    "disk I/O error": ("can't be read or written: disk I/O error", "check the disk, and its space"),
    "unable to open": ("can't be opened", "check the file, its folder, and open files"),
}
_NEVER = {
    "not a database": ("is no SQLite database", "move it away, or restore a back-up"),
    "malformed": ("is damaged", "restore a back-up"),
}
# PostgreSQL: a serialization failure, a deadlock. Whoever meets one is to try again.
_AGAIN = frozenset({"40001", "40P01"})

# How often a lock is looked at that SQLite does not wait for.
_NAP_S = 0.01


def sqlite_engine(file: Path, busy_s: float) -> Engine:
    """An engine on a file, with transactions that are durable when they are committed."""
    url = URL.create("sqlite", database=str(file))
    engine = create_engine(url, connect_args={"timeout": busy_s, "isolation_level": None})

    @event.listens_for(engine, "connect")
    def _connected(raw: Any, _: Any) -> None:
        _set_journal(raw, busy_s)
        raw.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def _begun(conn: Connection) -> None:
        # A transaction that reads first and then writes may find that another one wrote between.
        immediate = conn.get_execution_options().get(WRITES)
        conn.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _set_journal(raw: sqlite3.Connection, busy_s: float) -> None:
    """Have a write-ahead log; another connection that does just that to a new file is waited for.

    SQLite itself doesn't: it says at once that the file is locked, as both may want to write.
    """
    until = time.monotonic() + busy_s
    while True:
        try:
            raw.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "is locked" not in str(error) or time.monotonic() > until:
                raise
        time.sleep(_NAP_S)


def insert_new(conn: Connection, table: Table, values: Mapping[str, Any]) -> bool:
    """Insert a row unless there is one with its key; whether it is new."""
    if conn.dialect.name == "postgresql":
        return conn.execute(_postgresql_insert(table), values).first() is not None
    return conn.execute(_sqlite_insert(table), values).rowcount == 1


def insert_all_new(conn: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert rows but for those whose keys are there; how many are new."""
    if not rows:
        return 0
    if conn.dialect.name == "postgresql":
        return len(conn.execute(_postgresql_insert(table), rows).all())
    return conn.execute(_sqlite_insert(table), rows).rowcount


# Made once for each table: making a statement costs more than SQLite takes to run it.
@cache
def _sqlite_insert(table: Table) -> Any:
    # SQLite knows RETURNING only from 3.35 on; long-lived distributions have older ones.
    return sqlite.insert(table).on_conflict_do_nothing()


@cache
def _postgresql_insert(table: Table) -> Any:
    key = table.primary_key.columns
    return postgresql.insert(table).on_conflict_do_nothing().returning(*key)


def is_transient(error: DBAPIError) -> bool:
    """Whether the same transaction may well succeed when it is tried again at once."""
    return getattr(error.orig, "sqlstate", None) in _AGAIN or "is locked" in str(error.orig)


def explained(error: DBAPIError, called: str) -> Exception:
    """What a database's error means to whoever runs it; the error itself if it is a bug of ours."""
    said = str(error.orig)
    for part, (what, hint) in _NEVER.items():
        if part in said:
            return LedgerError(Problem(f"{called} {what}", hint=hint))
    for part, (what, hint) in _NOW.items():
        if part in said:
            return LedgerUnavailable(Problem(f"{called} {what}", hint=hint))
    if not isinstance(error, OperationalError) and not error.connection_invalidated:
        return error
    # SQLite has said all that passes above; of a server nearly all that it says passes.
    kind = LedgerError if isinstance(error.orig, sqlite3.Error) else LedgerUnavailable
    return kind(Problem(f"{called} can't be used: {_first(said)}"))


def back_up(conn: Connection, target: Path, shown: str) -> None:
    """Copy a database into a new file, while others go on; the copy is there whole or not at all.

    Raises LedgerError where there is such a file, or the database has tools of its own.
    """
    if conn.dialect.name != "sqlite":
        raise LedgerError(Problem(f"{shown} is backed up by its own tools", hint="pg_dump"))
    part = target.with_name(f"{target.name}.part")
    try:
        if target.exists():
            raise LedgerError(Problem(f"{target} is there already"))
        if not target.parent.is_dir():
            raise LedgerError(Problem(f"there is no folder {target.parent} for the copy"))
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
        copy = sqlite3.connect(part)
        try:
            _raw(conn).backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
        finally:
            copy.close()
        reach("before-backup-rename")
        os.replace(part, target)
    except (OSError, sqlite3.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise LedgerUnavailable(Problem(f"{target} can't be written: {why}")) from None


def _raw(conn: Connection) -> sqlite3.Connection:
    raw = conn.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def _first(text: str) -> str:
    return (text.splitlines() or [""])[0]
