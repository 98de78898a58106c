"""What a ledger costs when it holds a million requests that have ended.

Run by hand, from the root of the tree, with the package and its extra ``dispatch`` installed::

    python -m benchmarks dispatch_rows --sizes 1000 1000000 --runs 20

Prints a table in Markdown with a column for each size. A ledger is filled by statements that make
rows inside SQLite, with all that belongs to a request: its attempt, progress, machine and end
message. Ids are in no order, as in the field. Then a process of its own opens it, does each thing
``--runs`` times, of which the median is shown, records 500 requests, and says what memory it took
at most.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, Callable

from sqlalchemy import ColumnElement, Connection, Table, func, insert, literal, select

from benchmarks import dispatch_work
from taskgraph_workers.dispatch.brokers.embedded import Embedded
from taskgraph_workers.dispatch.ledger import attempts, outbox, progress, queries, tables
from taskgraph_workers.dispatch.ledger.attempts import Owner
from taskgraph_workers.dispatch.ledger.database import Ledger, open_ledger
from taskgraph_workers.dispatch.ledger.files import NAME
from taskgraph_workers.dispatch.ledger.values import Accepted, job_to_text

ROOT = Path(__file__).resolve().parent.parent
STATUS = (sys.executable, "-m", "taskgraph_workers", "dispatch", "status", "--json")

#: An odd number: times this, modulo 2**32, numbers become as many others, in no order.
_SCATTER = 2_654_435_761
_RECORDED = 500

#: A requestId that is there: that of row 7.
IDENTITY = f"{7 * _SCATTER % 2**32:08x}-ended"


def fill(conn: Connection, count: int) -> None:
    """Add requests that have succeeded, with all that belongs to one."""
    conn.exec_driver_sql("PRAGMA cache_size=-1000000")  # of this connection: to be done sooner
    first = select(literal(0).label("number")).cte("counted", recursive=True)
    numbers = first.union_all(select(first.c.number + 1).where(first.c.number + 1 < count))
    for table, row in _rows(numbers.c.number):
        values = [value.label(name) for name, value in _columns(row)]
        conn.execute(insert(table).from_select(list(row), select(*values)))


def identity(number: Any) -> ColumnElement[Any]:
    """The requestId of a row."""
    return func.printf("%08x-ended", number.op("*")(_SCATTER).op("%")(2**32))


def _columns(row: Mapping[str, Any]) -> Iterator[tuple[str, ColumnElement[Any]]]:
    for name, value in row.items():
        yield name, value if isinstance(value, ColumnElement) else literal(value)


def _rows(number: Any) -> Iterator[tuple[Table, dict[str, Any]]]:
    content = dispatch_work.body(0)
    accepted = dispatch_work.judge(content)
    assert isinstance(accepted, Accepted)
    id, now = identity(number), time.time()
    at = now - 10**7 + number
    own = {"request_id": id, "attempt": 1}
    ended = {**own, "state": "succeeded", "reason": "", "ended_at": at}
    asked = {"digest": accepted.message.digest, "body": content, "sku": "ND6", "image": "a/b"}
    yield tables.requests, {**ended, **asked, "received_at": at}
    ran = {"key": id, "executor": "local", "job": job_to_text(accepted.job(1)), "handle": id}
    ran |= {"tries": 0, "run": 0, "owned_until": 0.0, "machine": id}
    yield tables.attempts, {**ended, **ran, "next_look": at, "created_at": at, "released_at": at}
    for name in ("trainingVmCreated", "imagesDownloaded", "trainingSuceededWithImages"):
        fact = {"run": 0, "seq": 0, "at": at, "data": "{}"}
        yield tables.progress, {**own, "name": name, **fact}
    told = {"message_id": id.op("||")("/1"), "body": "{}", "tries": 0}
    yield tables.outbox, {**told, "created_at": at, "next_try": at, "sent_at": at}
    vm = {"id": id, "pool": "p", "ephemeral": True}
    yield tables.machines, {**vm, "created_at": at, "stop_asked_at": at, "gone_at": at}
    yield tables.uses, {"machine": id, **own, "run": 0}


def filled(folder: str, count: int) -> None:
    """Make a ledger that holds so many requests that have ended, and two that wait."""
    with open_ledger(folder) as ledger:
        ledger.do(fill, count)
        dispatch_work.put(ledger, 2)
    dispatch_work.drain(folder)


OPERATIONS: Mapping[str, Callable[[Connection], Any]] = {
    "one request": lambda conn: queries.request(conn, IDENTITY),
    "requests alive": queries.alive,
    "the newest 100": queries.newest,
    "progress of these": lambda conn: progress.facts_of(
        conn, [each.request_id for each in queries.newest(conn)]
    ),
    "whether all is done": queries.is_idle,
    "what is due next": queries.next_due,
    "end messages, 100": outbox.ends,
    "own what is due": lambda conn: attempts.own(conn, Owner("me", 0.0), time.time()),
}


def looked(folder: str, runs: int) -> dict[str, float]:
    """What it takes to open a ledger, to do each thing, and to record a request: by name."""
    start = time.perf_counter()
    with open_ledger(folder) as ledger:
        found = {"open, ms": (time.perf_counter() - start) * 1e3}
        for name, operation in OPERATIONS.items():
            found[f"{name}, ms"] = median(_ms(ledger.do, operation) for _ in range(runs))
        found |= _recorded(ledger)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {**found, "memory at most, MiB": peak / (2**20 if sys.platform == "darwin" else 2**10)}


def _recorded(ledger: Ledger) -> dict[str, float]:
    broker = Embedded(ledger)
    dispatch_work.put(ledger, _RECORDED, first=2)
    start = time.process_time()
    taken = [_ms(broker.record_next, dispatch_work.judge) for _ in range(_RECORDED)]
    cpu = (time.process_time() - start) / _RECORDED * 1e3
    return {"record a request, ms": median(taken), "record a request, CPU ms": cpu}


def _ms(call: Callable[..., Any], *given: Any) -> float:
    start = time.perf_counter()
    found = call(*given)
    assert found is not None, "there is nothing to find"
    return (time.perf_counter() - start) * 1e3


def status(folder: str) -> float:
    """How long ``taskgraph-workers dispatch status`` takes, in milliseconds."""
    start = time.perf_counter()
    done = subprocess.run(
        [*STATUS, "--state", folder], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert len(json.loads(done.stdout)["requests"]) > 0
    return (time.perf_counter() - start) * 1e3


def measure(count: int, runs: int) -> dict[str, float]:
    """All of one size: what there is, and what each thing takes."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        _apart(filled, folder, count)
        found = {"filled in, s": time.perf_counter() - start}
        found["file, MiB"] = (Path(folder) / NAME).stat().st_size / 2**20
        taken = median(status(folder) for _ in range(min(runs, 5)))
        found["`dispatch status --json`, the whole process, ms"] = taken
        return {**found, **_apart(looked, folder, runs)}


def _apart(call: Callable[..., Any], *given: Any) -> Any:
    """Call in a new process, so that its memory is its own."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(call, *given).result()


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        prog="benchmarks dispatch_rows", description="What a ledger with many rows costs."
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 1_000_000])
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args(argv)
    columns = [measure(size, given.runs) for size in given.sizes]
    print(f"Requests that have ended, {given.runs} runs\n")
    print("| what | " + " | ".join(f"{size:,}" for size in given.sizes) + " |")
    print("|---|" + "---|" * len(columns))
    for what in columns[0]:
        print(f"| {what} | " + " | ".join(f"{each[what]:.1f}" for each in columns) + " |")


if __name__ == "__main__":
    main()
