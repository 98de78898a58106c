"""Ledgers of earlier and later releases."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from ledgers import NOW, ask, program, unsent

from taskgraph_workers.dispatch.ledger import attempts, dead, machines, queries, schema
from taskgraph_workers.dispatch.ledger.attempts import Owner
from taskgraph_workers.dispatch.ledger.database import open_ledger
from taskgraph_workers.dispatch.ledger.errors import LedgerError
from taskgraph_workers.dispatch.ledger.files import NAME

VERSION1 = Path(__file__).with_name("version1.sql").read_text(encoding="utf-8")


def make(folder: Path, script: str) -> None:
    folder.mkdir(exist_ok=True)
    database = sqlite3.connect(folder / NAME)
    database.executescript(script)
    database.close()


def ask_sql(folder: Path, question: str) -> list[Any]:
    database = sqlite3.connect(folder / NAME)
    try:
        return database.execute(question).fetchall()
    finally:
        database.close()


def shape(folder: Path) -> dict[str, Any]:
    """Columns and indexes of each table."""
    tables = [
        name for (name,) in ask_sql(folder, "SELECT name FROM sqlite_master WHERE type='table'")
    ]
    return {
        name: (
            sorted(row[1:] for row in ask_sql(folder, f"PRAGMA table_info({name})")),
            sorted(row[1:] for row in ask_sql(folder, f"PRAGMA index_list({name})")),
        )
        for name in tables
    }


def without_places(found: dict[str, Any]) -> dict[str, Any]:
    """A default is written with or without quotes: that makes no difference to a number."""
    return {
        name: ([(*c[:3], str(c[3]).strip("'"), c[4]) for c in columns], indexes)
        for name, (columns, indexes) in found.items()
    }


def test_a_ledger_of_version_1_is_taken_forward(tmp_path: Path):
    """What an earlier release recorded is all there, and work goes on with it."""
    make(tmp_path, VERSION1)
    with open_ledger(tmp_path) as ledger:
        assert ledger.migrated_from == 1
        states = {each.request_id: each.state for each in ledger.see(queries.newest)}
        assert states == {"old-1": "succeeded", "old-2": "running", "old-3": "rejected"}
        assert [letter.times for letter in ledger.see(dead.letters)] == [1]
        assert sorted(end.message_id for end in ledger.see(unsent)) == [
            "old-1/1",
            "old-3/1",
        ]
        (mine,) = ledger.do(attempts.own, Owner("new", 60.0), NOW + 100)
        assert (mine.request_id, mine.handle) == ("old-2", "job-old-2")
        assert ledger.do(machines.used, "vm-1", ("old-2", 1), 0)
        assert ask(ledger, "new").result == "accepted"


def test_a_ledger_that_was_taken_forward_is_like_a_new_one(tmp_path: Path):
    """Every column and index of a new ledger is there after a migration, and no other."""
    make(tmp_path / "old", VERSION1)
    for name in ("old", "new"):
        open_ledger(tmp_path / name).close()
    assert without_places(shape(tmp_path / "old")) == without_places(shape(tmp_path / "new"))
    assert ask_sql(tmp_path / "old", "SELECT version FROM schema_version") == [(schema.VERSION,)]


def test_a_ledger_is_taken_forward_once(tmp_path: Path):
    """The next one who opens it has nothing to do."""
    make(tmp_path, VERSION1)
    open_ledger(tmp_path).close()
    with open_ledger(tmp_path) as ledger:
        assert ledger.migrated_from is None


def test_a_migration_that_is_killed_has_not_happened(tmp_path: Path):
    """SIGKILL in the middle leaves the old version whole, and the next one takes it forward."""
    make(tmp_path, VERSION1)
    code = (
        "import sys\n"
        "from taskgraph_workers.dispatch.ledger.database import open_ledger\n"
        "open_ledger(sys.argv[1])"
    )
    killed = program(code, tmp_path, failpoint="during-migration")
    killed.communicate()
    assert killed.returncode == -9
    assert ask_sql(tmp_path, "SELECT version FROM schema_version") == [(1,)]
    with open_ledger(tmp_path) as ledger:
        assert ledger.migrated_from == 1


OPENER = """
import sys
from ledgers import ask
from taskgraph_workers.dispatch.ledger.database import open_ledger
for folder in sys.stdin:
    with open_ledger(folder.rstrip()) as ledger:
        print(ask(ledger, sys.argv[1]).result, flush=True)
"""


def test_many_may_open_a_ledger_for_the_first_time_at_once(tmp_path: Path):
    """Dispatchers that start together make, or take forward, one ledger."""
    runs = [program(OPENER, f"r{number}") for number in range(8)]
    for number in range(20):
        folder = tmp_path / str(number)
        if number % 2:
            make(folder, VERSION1)
        for run in runs:
            assert run.stdin is not None
            run.stdin.write(f"{folder}\n")
            run.stdin.flush()
        assert [run.stdout and run.stdout.readline() for run in runs] == ["accepted\n"] * 8
    assert [run.communicate() for run in runs] == [("", "")] * 8


def test_who_makes_a_ledger_is_waited_for(tmp_path: Path):
    """Also where SQLite itself would not: a new file is locked while its journal is set."""
    tmp_path.joinpath("state").mkdir()
    first = sqlite3.connect(
        tmp_path / "state" / NAME, isolation_level=None, check_same_thread=False
    )
    first.execute("BEGIN IMMEDIATE")
    done = threading.Timer(0.3, lambda: first.execute("ROLLBACK"))
    done.start()
    with open_ledger(tmp_path / "state") as ledger:
        assert ask(ledger).result == "accepted"
    done.join()
    first.close()


def test_a_newer_ledger_is_refused(tmp_path: Path):
    """What a later release made is left alone, with a word on how to go on."""
    open_ledger(tmp_path).close()
    database = sqlite3.connect(tmp_path / NAME)
    database.execute("UPDATE schema_version SET version = 99")
    database.commit()
    database.close()
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(LedgerError, match="is of version 99: a newer taskgraph-workers") as raised:
        open_ledger(tmp_path)
    assert "upgrade" in raised.value.problems[0].hint
    assert (tmp_path / NAME).read_bytes() == before


def test_another_program_s_database_is_refused(tmp_path: Path):
    """A database that is no ledger gets no tables of ours."""
    make(tmp_path, "CREATE TABLE theirs (a)")
    with pytest.raises(LedgerError, match="another program's database"):
        open_ledger(tmp_path)
    assert ask_sql(tmp_path, "SELECT name FROM sqlite_master") == [("theirs",)]


@pytest.mark.parametrize(
    "content", [b"requests: 5\n" * 100, bytes(range(256)) * 20], ids=["text", "bytes"]
)
def test_what_is_no_database_is_refused(tmp_path: Path, content: bytes):
    """A file of another kind is one clear error, and stays."""
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(LedgerError, match="is no SQLite database"):
        open_ledger(tmp_path)
    assert (tmp_path / NAME).read_bytes() == content
