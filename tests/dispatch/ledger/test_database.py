"""Transactions: whole, or not at all, whatever the disk and other processes do."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from ledgers import NOW, ask, body, judge, program, send, waits
from sqlalchemy import Connection

from taskgraph_workers.dispatch.brokers.embedded import Embedded
from taskgraph_workers.dispatch.ledger import queries, queue
from taskgraph_workers.dispatch.ledger.database import Ledger, Settings, open_ledger
from taskgraph_workers.dispatch.ledger.errors import LedgerError, LedgerUnavailable
from taskgraph_workers.dispatch.ledger.files import NAME


def broker(ledger: Ledger) -> Embedded:
    return Embedded(ledger, lambda: NOW)


def test_an_operation_that_raises_changes_nothing(ledger: Ledger):
    """A transaction is all of an operation or nothing of it."""

    def operation(conn: Connection) -> None:
        queue.put(conn, queue.START, b"x", NOW)
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        ledger.do(operation)
    assert not waits(ledger)


def test_looking_sees_one_state(ledger: Ledger):
    """Who reads sees nothing of what is committed meanwhile, and stops nobody."""

    def operation(conn: Connection) -> list[float | None]:
        before = queue.first_at(conn, queue.START)
        ledger.do(queue.put, queue.START, b"x", NOW)
        return [before, queue.first_at(conn, queue.START)]

    assert ledger.see(operation) == [None, None]
    assert waits(ledger)


def test_a_locked_ledger_is_waited_for_and_then_told(tmp_path: Path):
    """Another process's transaction is waited for; one that doesn't end is a clear error."""
    with open_ledger(tmp_path, Settings(busy_s=0.05)) as ledger:
        send(ledger, body())
        other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailable, match="is locked by another process"):
            broker(ledger).record_next(judge)
        other.execute("ROLLBACK")
        other.close()
        recorded = broker(ledger).record_next(judge)
    assert recorded is not None
    assert recorded.result == "accepted"


def test_a_lock_that_ends_is_waited_for(tmp_path: Path):
    """A try that meets a lock is made again, a few times."""
    with open_ledger(tmp_path, Settings(busy_s=0.2)) as ledger:
        other = sqlite3.connect(tmp_path / NAME, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.3, lambda: other.execute("ROLLBACK"))
        release.start()
        assert ask(ledger).result == "accepted"
        release.join()
        other.close()


def test_a_full_disk_is_told_and_loses_nothing(ledger: Ledger):
    """Without space nothing is recorded, the message stays, and all goes on with space again."""
    send(ledger, body())

    def limit(conn: Connection, pages: int) -> None:
        conn.exec_driver_sql(f"PRAGMA max_page_count={pages}")

    ledger.see(limit, 1)
    more = (body(f"more-{number}", filler="x" * 1000) for number in range(1000))
    with pytest.raises(LedgerUnavailable, match="the disk is full"):
        any(send(ledger, each) for each in more)
    count = 0
    ledger.see(limit, 2**30)
    while broker(ledger).record_next(judge) is not None:
        count += 1
    assert ledger.see(queries.request, "r1") is not None
    assert count == len(ledger.see(queries.newest)) >= 1


def test_a_disk_that_fills_in_the_middle_loses_nothing(ledger: Ledger, tmp_path: Path):
    """A process whose files can't grow stops with a clear error; what it recorded is there."""
    send(ledger, body("before"))
    code = (
        "import resource, signal, sys\n"
        "from ledgers import ask\n"
        "from taskgraph_workers.dispatch.ledger.database import open_ledger\n"
        "from taskgraph_workers.dispatch.ledger.errors import LedgerUnavailable\n"
        "ledger = open_ledger(sys.argv[1])\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))\n"
        "try:\n"
        "    for number in range(1000):\n"
        "        ask(ledger, f'r{number}', filler='x' * 2000)\n"
        "        print(number, flush=True)\n"
        "except LedgerUnavailable as error:\n"
        "    sys.exit(str(error))"
    )
    run = program(code, tmp_path / "state")
    out, err = run.communicate()
    assert run.returncode == 1, err
    assert f"the ledger {tmp_path / 'state' / NAME} can" in err
    told = {f"r{number}" for number in out.split()}
    found = {each.request_id for each in ledger.see(queries.newest, 2000)}
    assert told <= found
    assert len(found - told) <= 1
    assert waits(ledger)


def test_a_read_only_ledger_is_told(ledger: Ledger):
    """A disk that became read-only is a clear error, and reading goes on."""
    ask(ledger)
    ledger.see(lambda conn: conn.exec_driver_sql("PRAGMA query_only=1"))
    with pytest.raises(LedgerUnavailable, match="it is read-only"):
        ask(ledger, "r2")
    assert [each.request_id for each in ledger.see(queries.newest)] == ["r1"]


def test_a_damaged_file_is_told(tmp_path: Path):
    """A file whose pages are garbage is an error that says what to do, not a traceback."""
    with open_ledger(tmp_path) as ledger:
        for number in range(50):
            ask(ledger, f"r{number}")
    file = tmp_path / NAME
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    file.write_bytes(content)
    with pytest.raises(LedgerError, match="damaged"), open_ledger(tmp_path) as ledger:
        ledger.see(queries.newest)


def test_a_backup_is_a_ledger(ledger: Ledger, tmp_path: Path):
    """A copy has all that was recorded, is private, and is opened like the first."""
    ask(ledger)
    copy = tmp_path / "copy" / NAME
    copy.parent.mkdir()
    ledger.backup(copy)
    assert copy.stat().st_mode & 0o077 == 0
    assert [path.name for path in copy.parent.iterdir()] == [NAME]
    with open_ledger(copy.parent) as second:
        assert second.see(queries.newest) == ledger.see(queries.newest)


def test_a_backup_overwrites_nothing(ledger: Ledger, tmp_path: Path):
    """A file that is there stays."""
    (tmp_path / "copy").write_text("mine")
    with pytest.raises(LedgerError, match="is there already"):
        ledger.backup(tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "mine"
    with pytest.raises(LedgerError, match=r"there is no folder .*absent for the copy"):
        ledger.backup(tmp_path / "absent" / "copy")
    (tmp_path / "taken.part").mkdir()
    with pytest.raises(LedgerUnavailable, match=r"taken can't be written: Is a directory$"):
        ledger.backup(tmp_path / "taken")


def test_a_backup_is_of_one_moment(ledger: Ledger, tmp_path: Path):
    """Copies that are made while others write are whole, each with all of every transaction."""
    writer = threading.Thread(target=lambda: [ask(ledger, f"r{each}") for each in range(100)])
    writer.start()
    for number in range(5):
        ledger.backup(tmp_path / str(number))
    writer.join()
    assert len(ledger.see(queries.newest, 1000)) == 100
    for number in range(5):
        copy = sqlite3.connect(tmp_path / str(number))
        question = "SELECT (SELECT count(*) FROM requests), (SELECT count(*) FROM attempts)"
        ((requests, attempts),) = copy.execute(question).fetchall()
        assert requests == attempts
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        copy.close()


def test_a_backup_that_is_killed_is_not_there(ledger: Ledger, tmp_path: Path):
    """Half a copy never has the name of a whole one, and a second try succeeds."""
    code = (
        "import sys\n"
        "from taskgraph_workers.dispatch.ledger.database import open_ledger\n"
        "open_ledger(sys.argv[1]).backup(sys.argv[2])"
    )
    killed = program(code, tmp_path / "state", tmp_path / "copy", failpoint="before-backup-rename")
    killed.communicate()
    assert killed.returncode == -9
    assert not (tmp_path / "copy").exists()
    ledger.backup(tmp_path / "copy")
    assert (tmp_path / "copy").exists()


@pytest.mark.parametrize("module", ["ledger.database", "brokers.sql", "brokers.transport", "loop"])
def test_without_sqlalchemy_the_extra_is_named(module: str):
    """An import without it says what to install, whichever a command begins with."""
    code = (
        "import sys\n"
        "sys.modules['sqlalchemy'] = None\n"
        "from taskgraph_workers.errors import WorkersError\n"
        "try:\n"
        f"    import taskgraph_workers.dispatch.{module}\n"
        "except WorkersError as error:\n"
        "    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'taskgraph-workers[dispatch]'" in run.stdout
