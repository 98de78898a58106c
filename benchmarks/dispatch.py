"""How many start messages a second are accepted and recorded, beside Celery on Redis.

Run by hand, from the root of the tree, with the package and its extra ``dispatch`` installed::

    python -m benchmarks dispatch --messages 3000 --runs 5

Prints a table in Markdown. All that is compared is on one disk, one process each, in turn: our
dispatcher with its embedded queue, and a Celery worker (``--pool solo``) that reads and places the
same messages by the same functions and writes the same rows into a ledger of its own. Redis syncs
each message to the disk, as the embedded queue does; and, in a second round, keeps them in memory
only. The time is from the first request recorded to the last, as the rows themselves say. One row
by itself in a table of SQLite's, with the same pragmas, is what this disk allows.

Celery has an environment of its own (``make .venvs/celery/.bench``); without it, or without
redis-server, only our side is measured.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks import dispatch_work, tables
from taskgraph_workers.dispatch.ledger.database import open_ledger
from taskgraph_workers.dispatch.ledger.files import NAME

ROOT = Path(__file__).resolve().parent.parent
WORKER = (
    *("-m", "celery", "-A", "benchmarks.dispatch_celery", "worker", "--pool", "solo"),
    *("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "ERROR"),
)
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")
IN_MEMORY = ("--appendonly", "no")
_PATIENCE_S = 120


def commits(folder: Path, count: int) -> float:
    """Transactions of one row that SQLite makes durable in a second."""
    with closing(sqlite3.connect(folder / "plain.sqlite", isolation_level=None)) as plain:
        plain.execute("PRAGMA journal_mode=WAL")
        plain.execute("PRAGMA synchronous=FULL")
        plain.execute("CREATE TABLE plain (id INTEGER PRIMARY KEY, body BLOB)")
        start = time.perf_counter()
        for number in range(count):
            plain.execute("INSERT INTO plain (body) VALUES (?)", [dispatch_work.body(number)])
        return count / (time.perf_counter() - start)


def recorded(folder: Path) -> tuple[int, float]:
    """How many requests a ledger has, and how many were recorded in a second."""
    with closing(sqlite3.connect(folder / NAME)) as plain:
        found = "SELECT count(*), max(received_at) - min(received_at) FROM requests"
        count, seconds = plain.execute(found).fetchone()
    return count, (count - 1) / seconds if seconds else 0.0


def ours(folder: Path, count: int) -> float:
    """Requests a second, by our dispatcher."""
    with open_ledger(folder) as ledger:
        dispatch_work.put(ledger, count)
    command = [sys.executable, "-m", "benchmarks.dispatch_work", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    done, rate = recorded(folder)
    assert done == count, f"{done} of {count} were recorded"
    return rate


def celerys(python: str, folder: Path, count: int, redis: Sequence[str]) -> float:
    """Requests a second, by a Celery worker. ``redis`` is how its broker keeps messages."""
    state = folder / "state"
    open_ledger(state).close()
    with _redis(folder, redis) as broker:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        env |= {"BENCHMARK_BROKER": broker, "BENCHMARK_STATE": str(state)}
        send = [python, "-m", "benchmarks.dispatch_celery", str(count)]
        subprocess.run(send, env=env, cwd=folder, check=True)
        with _running([python, *WORKER], env, folder) as worker:
            end = time.monotonic() + _PATIENCE_S
            while (found := recorded(state))[0] < count:
                assert worker.poll() is None, "the Celery worker ended"
                assert time.monotonic() < end, f"{found[0]} of {count} were recorded"
                time.sleep(0.2)
    return found[1]


@contextmanager
def _redis(folder: Path, options: Sequence[str]) -> Iterator[str]:
    """A Redis of our own, without a port; the URL of the broker that it is."""
    socket = folder / "redis.sock"
    command = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "", *options]
    with _running(command, dict(os.environ), folder):
        end = time.monotonic() + _PATIENCE_S
        while not socket.exists() and time.monotonic() < end:
            time.sleep(0.02)
        yield f"redis+socket://{socket}"


@contextmanager
def _running(
    command: Sequence[str], env: dict[str, str], folder: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, env=env, cwd=folder, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


def measure(count: int, python: str) -> list[float]:
    """All sides once: commits, ours, and Celery's two where there is a ``python`` for it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = [commits(folder, count), ours(folder / "ours", count)]
        for kept in (DURABLE, IN_MEMORY) if python else ():
            each = folder / kept[-1]
            each.mkdir()
            figures.append(celerys(python, each, count, kept))
    return figures


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks dispatch", description=__doc__.split("\n")[0])
    parser.add_argument("--celery", default=str(ROOT / ".venvs" / "celery" / "bin" / "python"))
    parser.add_argument("--messages", type=int, default=3000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args(argv)
    missing = _missing(given.celery)
    if missing:
        print(f"{missing}: Celery is not measured\n")
    runs = [measure(given.messages, "" if missing else given.celery) for _ in range(given.runs)]
    tables.show(f"{given.messages} messages a run, {given.runs} runs", *_rows(runs))


def _missing(python: str) -> str:
    if not Path(python).exists():
        return f"there is no {python}, which `make .venvs/celery/.bench` makes"
    return "" if shutil.which("redis-server") else "redis-server is not installed"


def _rows(runs: Sequence[Sequence[float]]) -> Iterator[tables.Row]:
    disk, our, *theirs = zip(*runs)
    yield "plain SQLite, transactions/s", disk, 0
    yield "dispatch, requests/s", our, 0
    for name, their in zip(("Redis on the disk", "Redis in memory"), theirs):
        yield f"Celery, {name}, requests/s", their, 0
        yield f"ours over Celery's, {name}, pair by pair", [a / b for a, b in zip(our, their)], 2


if __name__ == "__main__":
    main()
