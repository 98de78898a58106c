"""The benchmarks of the door ``dispatch``: that they run, and compare like with like."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from taskgraph_workers.dispatch.ledger import tables
from taskgraph_workers.dispatch.ledger.database import Ledger, open_ledger

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def bench(name: str, *options: str) -> str:
    """What a benchmark prints, here of a small case."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", name, "--runs", "1", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def figures(printed: str) -> dict[str, list[float]]:
    """The figures of each line of a table."""
    found = re.findall(r"^\| (\D.*?) \| ([\d.]+(?: \| [\d.]+)*) \|$", printed, re.MULTILINE)
    return {what: [float(each) for each in values.split(" | ")] for what, values in found}


def kept(ledger: Ledger) -> list[list[dict[str, Any]]]:
    """All requests and attempts, and what waits, but for the times."""

    def read(conn: Connection) -> list[list[dict[str, Any]]]:
        found = []
        for table in (tables.requests, tables.attempts, tables.messages, tables.dead_letters):
            columns = [each for each in table.c if each.name not in TIMES]
            order = table.c.keys()[0]
            rows = conn.execute(select(*columns).order_by(table.c[order]))
            found.append([dict(row._mapping) for row in rows])
        return found

    return ledger.see(read)


TIMES = ("received_at", "created_at", "next_look")


def test_recording_is_measured_without_celery():
    """Where there is no Celery, that is said, and the rest has its figures."""
    printed = bench("dispatch", "--messages", "20", "--celery", "/nowhere/python")
    assert printed.startswith("there is no /nowhere/python")
    assert "Celery is not measured" in printed
    rows = figures(printed)
    assert list(rows) == ["plain SQLite, transactions/s", "dispatch, requests/s"]
    assert all(value > 0 for values in rows.values() for value in values)


def test_both_sides_write_the_same_rows(tmp_path: Path):
    """What Celery's worker does with each message leaves the ledger that our dispatcher leaves."""
    from benchmarks import dispatch_work

    with open_ledger(tmp_path / "ours") as ours, open_ledger(tmp_path / "theirs") as theirs:
        dispatch_work.put(ours, 5)
        dispatch_work.drain(str(tmp_path / "ours"))
        results = [dispatch_work.record(theirs, dispatch_work.body(number)) for number in range(5)]
        assert results == ["accepted"] * 5
        assert [len(rows) for rows in kept(ours)] == [5, 5, 0, 0]
        assert kept(ours) == kept(theirs)


def test_rates_are_of_what_was_recorded(tmp_path: Path):
    """The rate is that of the rows' own times, from the first to the last."""
    from benchmarks import dispatch

    with open_ledger(tmp_path) as ledger:

        def write(conn: Connection) -> None:
            for number in range(5):
                row = {"request_id": str(number), "received_at": 1000.0 + number / 10}
                fixed = {"digest": "", "body": b"", "attempt": 1, "state": "x", "reason": ""}
                conn.execute(tables.requests.insert().values(**row, **fixed))

        ledger.do(write)
    assert dispatch.recorded(tmp_path) == (5, pytest.approx(10.0))


def test_what_fills_a_ledger_is_whole(tmp_path: Path):
    """Each request that has ended has all that belongs to one, under an id of its own."""
    from benchmarks import dispatch_rows

    with open_ledger(tmp_path) as ledger:
        ledger.do(dispatch_rows.fill, 1000)

        def counted(conn: Connection) -> dict[str, int]:
            every = tables.metadata.sorted_tables
            return {each.name: len(conn.execute(select(each)).all()) for each in every}

        once = ("requests", "attempts", "outbox", "machines", "uses")
        none = {"messages": 0, "dead_letters": 0, "schema_version": 1}
        wanted = {**dict.fromkeys(once, 1000), "progress": 3000, **none}
        assert ledger.see(counted) == wanted


def test_a_ledger_with_many_rows_is_measured():
    """A column for each size, and in each a figure for everything, the command's start included."""
    rows = figures(bench("dispatch_rows", "--sizes", "10", "40"))
    assert {len(values) for values in rows.values()} == {2}
    assert {"`dispatch status --json`, the whole process, ms", "memory at most, MiB"} < set(rows)
    assert all(value > 0 for values in rows.values() for value in values)


def test_waiting_is_measured():
    """Messages one by one, and many at once, are all submitted, and each wait has its figures."""
    rows = figures(bench("dispatch_latency", "--messages", "3", "--burst", "10"))
    assert list(rows) == [
        "one by one: sent to received, ms",
        "one by one: received to submitted, ms",
        "all at once: received and submitted, requests/s",
    ]
