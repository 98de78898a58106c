"""How long a request waits in our dispatcher, from its message to its start at the executor.

Run by hand, from the root of the tree, with the package and its extra ``dispatch`` installed::

    python -m benchmarks dispatch_latency --messages 200 --burst 1000 --runs 3

Prints a table in Markdown. The loop runs as ``dispatch run`` runs it, with an executor that starts
nothing and says at once that it did. First messages come one by one to a loop that has nothing
else to do than look after the earlier ones; then many wait when it begins.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from benchmarks import dispatch_work, tables
from taskgraph_workers.dispatch.brokers.embedded import Embedded
from taskgraph_workers.dispatch.ledger import tables as ledger_tables
from taskgraph_workers.dispatch.ledger.database import Ledger, open_ledger
from taskgraph_workers.dispatch.log import Log
from taskgraph_workers.dispatch.loop import Loop
from taskgraph_workers.dispatch.means import Means
from taskgraph_workers.dispatch.model import Job, Progress, Status
from taskgraph_workers.dispatch.receive import Intake

#: Between two messages: not a multiple of the loop's own rests, so that they fall anywhere.
_PAUSE_S = 0.083
_PATIENCE_S = 120


class Nowhere:
    """An executor whose jobs run and are nowhere."""

    name = "local"

    def submit(self, job: Job) -> str:
        return job.key

    def find(self, key: str) -> str | None:
        return None

    def poll(self, handles: Iterable[str]) -> Mapping[str, Status]:
        return {handle: Status("running", machine="nowhere") for handle in handles}

    def cancel(self, handle: str) -> None:
        pass

    def progress(self, handle: str) -> Iterable[Progress]:
        return ()

    def release(self, handle: str) -> None:
        pass


@dataclass(frozen=True)
class Notes(Log):
    """A log that notes when each request was submitted: it says so after the transaction."""

    submitted: dict[str, float] = field(default_factory=dict)

    def info(self, event: str, request_id: str | None = None, **fields: Any) -> None:
        if event == "submitted" and request_id is not None:
            self.submitted[request_id] = self.clock()


@contextmanager
def dispatching(ledger: Ledger) -> Iterator[Notes]:
    """A loop that runs in a thread; what it notes."""
    stop = threading.Event()
    with open(os.devnull, "w") as nowhere:
        notes = Notes(nowhere)
        means = Means(ledger, {"local": Nowhere()}, notes, "benchmark", stopped=stop.is_set)
        loop = Loop(means, Intake(means, Embedded(ledger), dispatch_work.judge))
        thread = threading.Thread(target=loop.run)
        thread.start()
        try:
            yield notes
        finally:
            stop.set()
            thread.join()


def waited(notes: Notes, count: int) -> None:
    """Wait until so many requests are submitted."""
    end = time.monotonic() + _PATIENCE_S
    while len(notes.submitted) < count:
        assert time.monotonic() < end, f"{len(notes.submitted)} of {count} were submitted"
        time.sleep(0.01)


def one_by_one(count: int) -> tuple[list[float], list[float]]:
    """Milliseconds from sent to received, and from there to submitted, message by message."""
    sent: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, open_ledger(folder) as ledger:
        with dispatching(ledger) as notes:
            for number in range(count):
                dispatch_work.put(ledger, 1, number)
                sent[dispatch_work.request_id(number)] = time.time()
                time.sleep(_PAUSE_S)
            waited(notes, count)
        received = _received(ledger)
    taken = [(received[id] - at, notes.submitted[id] - received[id]) for id, at in sent.items()]
    return [a * 1e3 for a, _ in taken], [b * 1e3 for _, b in taken]


def burst(count: int) -> float:
    """Requests a second, from the first received to the last submitted, where all wait at once."""
    with tempfile.TemporaryDirectory() as folder, open_ledger(folder) as ledger:
        dispatch_work.put(ledger, count)
        with dispatching(ledger) as notes:
            waited(notes, count)
        first = min(_received(ledger).values())
    return count / (max(notes.submitted.values()) - first)


def _received(ledger: Ledger) -> dict[str, float]:
    requests = ledger_tables.requests
    found = select(requests.c.request_id, requests.c.received_at)
    return {row[0]: row[1] for row in ledger.see(lambda conn: conn.execute(found).all())}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        prog="benchmarks dispatch_latency", description="How long a request waits."
    )
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--burst", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args(argv)
    arrived, started = one_by_one(given.messages)
    rates = [burst(given.burst) for _ in range(given.runs)]
    tables.show(
        f"{given.messages} messages one by one, {given.burst} at once, {given.runs} runs",
        ("one by one: sent to received, ms", arrived, 1),
        ("one by one: received to submitted, ms", started, 1),
        ("all at once: received and submitted, requests/s", rates, 0),
    )


if __name__ == "__main__":
    main()
