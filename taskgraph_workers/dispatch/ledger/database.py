"""A ledger that is open: one transaction for each operation."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from taskgraph_workers.dispatch.ledger import dialect, files, schema
from taskgraph_workers.dispatch.ledger.errors import LedgerError
from taskgraph_workers.errors import Problem

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")

#: How often a transaction is tried while the ledger is locked; each try waits for ``busy_s``.
_TRIES = 3


@dataclass(frozen=True)
class Settings:
    """How a ledger is opened.

    ``create`` makes what is missing. ``busy_s`` is how long one of three tries waits for another's
    transaction.
    ``kind`` is what it is for. ``filesystem`` says what a folder is on, as Linux names it.
    """

    create: bool = True
    busy_s: float = 10.0
    kind: files.Kind = files.LEDGER
    filesystem: Callable[[Path], str] = files.filesystem_of


@dataclass(frozen=True)
class Ledger:
    """An open ledger. Safe for threads; a forked child opens its own.

    ``shown`` names it to people, who call it a ``noun``. ``migrated_from`` is the version that its
    schema was taken forward from. ``is_there`` says whether what is open is still what others open:
    a file that was moved or deleted can be written to, and nobody reads it.
    """

    engine: Engine
    shown: str
    noun: str = "ledger"
    migrated_from: int | None = field(default=None, compare=False)
    is_there: Callable[[], bool] = field(default=lambda: True, compare=False)

    def do(
        self, operation: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation in one transaction that writes: all of it happens, or nothing.

        It may be run more than once, so it changes nothing but the ledger. Raises
        :class:`LedgerUnavailable` where the ledger is locked, full, read-only or down, and
        :class:`LedgerError` where it was moved away.
        """
        return self._run(True, lambda conn: operation(conn, *args, **kwargs))

    def see(
        self, operation: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation that only reads: on one state of the ledger, stopping nobody."""
        return self._run(False, lambda conn: operation(conn, *args, **kwargs))

    def backup(self, target: str | os.PathLike[str]) -> None:
        """Copy the ledger into a new file, while others work on it. Raises LedgerError."""
        self.see(dialect.back_up, Path(target), self.shown)

    def close(self) -> None:
        """Close its connections."""
        self.engine.dispose()

    @property
    def called(self) -> str:
        """What messages to people begin with."""
        return f"the {self.noun} {self.shown}"

    def _run(self, writes: bool, operation: Callable[[Connection], T]) -> T:
        if not self.is_there():
            what = f"{self.called} was moved or deleted while it was open"
            raise LedgerError(Problem(what, hint="start anew, with --state where it is now"))
        for left in reversed(range(_TRIES)):
            try:
                with self.engine.connect() as conn:
                    conn.execution_options(**{dialect.WRITES: writes})
                    with conn.begin():
                        return operation(conn)
            except DBAPIError as error:
                if not (left and dialect.is_transient(error)):
                    raise dialect.explained(error, self.called) from error
        raise AssertionError("the last try returns or raises")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


_USUAL = Settings()


def open_ledger(folder: str | os.PathLike[str], settings: Settings = _USUAL) -> Ledger:
    """Open the ledger, or what else is kept so, in a folder; its schema is made, or taken forward.

    Raises LedgerError: no ledger and not to create one, another user's, a newer schema's, another
    program's, or on a file system that machines share.
    """
    place, kind = Path(folder), settings.kind
    shared = files.is_shared(place, settings.filesystem)
    if shared:
        raise LedgerError(
            Problem(
                f"the {kind.noun} would be on {shared}, a file system that machines share: {place}",
                hint=f"give a folder on a disk of this machine's by {kind.option}",
            )
        )
    file = files.prepared(place, settings.create, kind)
    made = opened(dialect.sqlite_engine(file, settings.busy_s), str(file), kind.noun)
    known = files.identity(file)
    return replace(made, is_there=lambda: files.identity(file) == known)


def opened(engine: Engine, shown: str, noun: str = "ledger") -> Ledger:
    """A ledger on any engine, with its schema brought up."""
    ledger = Ledger(engine, shown, noun)
    try:
        before = ledger.see(schema.version_of, ledger.called)
        if before < schema.VERSION:
            before = ledger.do(schema.brought_up, ledger.called)
    except BaseException:
        ledger.close()
        raise
    return replace(ledger, migrated_from=before if 0 < before < schema.VERSION else None)
