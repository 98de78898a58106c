"""What is shown, and that it is found by an index."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from ledgers import NOW, ask, body, fill, judge, own, send, started
from sqlalchemy import Connection

from taskgraph_workers.dispatch.brokers.embedded import Embedded
from taskgraph_workers.dispatch.ledger import (
    attempts,
    dead,
    machines,
    outbox,
    progress,
    queries,
    queue,
    receipt,
)
from taskgraph_workers.dispatch.ledger.attempts import Owner
from taskgraph_workers.dispatch.ledger.database import Ledger, open_ledger
from taskgraph_workers.dispatch.ledger.machines import Named
from taskgraph_workers.dispatch.ledger.queue import START
from taskgraph_workers.dispatch.model import Status


def ids(found: Any) -> list[str]:
    return [each.request_id for each in found]


def test_a_request_is_shown_with_its_newest_attempt(ledger: Ledger):
    """State, machine, run: what its sender wants to know."""
    started(ledger)
    found = ledger.see(queries.request, "r1")
    assert found is not None
    assert (found.state, found.executor, found.handle) == ("running", "local", "job-r1")
    assert (found.machine, found.run, found.started_at) == ("vm-1", 0, NOW)
    assert ledger.see(queries.request, "unknown") is None


def test_requests_are_listed_from_the_newest(ledger: Ledger):
    """So many of them, in one order, also where several came at the same time."""
    for number in range(6):
        ask(ledger, f"r{number}", NOW + number // 3)
    assert ids(ledger.see(queries.newest)) == ["r5", "r4", "r3", "r2", "r1", "r0"]
    assert ids(ledger.see(queries.newest, 2)) == ["r5", "r4"]


def test_what_is_alive_is_told_apart(ledger: Ledger):
    """Requests that have ended, or were rejected, are not among those alive."""
    ended = started(ledger, "r1")
    ledger.do(attempts.change, ended, "succeeded", NOW, Status("succeeded"))
    started(ledger, "r2")
    ask(ledger, "r3", NOW + 1)
    ask(ledger, "r4", trainingVmSku="ND7")
    assert ids(ledger.see(queries.alive)) == ["r2", "r3"]


def test_a_ledger_is_idle_when_all_is_done(ledger: Ledger):
    """Not while a message waits, an attempt lives or holds something, or an end is unsent."""
    broker = Embedded(ledger, lambda: NOW)
    seen = [ledger.see(queries.is_idle)]
    send(ledger, b"{", NOW + 5)
    seen.append(ledger.see(queries.is_idle))
    taken = ledger.do(queue.take, START, NOW + 5, 30.0)
    assert taken is not None
    seen.append(ledger.see(queries.is_idle))
    ledger.do(queue.acknowledge, taken)
    running = started(ledger)
    seen.append(ledger.see(queries.is_idle))
    ledger.do(attempts.change, running, "succeeded", NOW, Status("succeeded"))
    seen.append(ledger.see(queries.is_idle))
    broker.relay(100)
    seen.append(ledger.see(queries.is_idle))
    ledger.do(attempts.released, running, NOW)
    seen.append(ledger.see(queries.is_idle))
    assert seen == [True, False, False, False, False, False, True]


def test_when_something_is_due_is_known(ledger: Ledger):
    """The earliest of message, attempt and end message, so that nobody looks in vain."""
    assert ledger.see(queries.next_due) is None
    ask(ledger)
    mine = own(ledger, for_s=60.0)
    assert ledger.see(queries.next_due) == NOW + 60
    free = ledger.do(attempts.let_go, mine, NOW + 30)
    assert free is not None
    assert ledger.see(queries.next_due) == NOW + 30
    send(ledger, b"{", NOW + 5)
    assert ledger.see(queries.next_due) == NOW + 5
    ask(ledger, "r2", NOW - 9, trainingVmSku="ND7")
    assert ledger.see(queries.next_due) == NOW - 9


QUERIES = {
    "request": lambda conn: queries.request(conn, "old-7"),
    "alive": queries.alive,
    "newest": lambda conn: queries.newest(conn, 10),
    "is_idle": queries.is_idle,
    "next_due": queries.next_due,
    "progress": lambda conn: progress.facts_of(conn, ["old-1", "old-2"]),
    "own": lambda conn: attempts.own(conn, Owner("me", 60.0), NOW + 10**6),
    "take": lambda conn: queue.take(conn, START, NOW, 30.0),
    "outbox": lambda conn: outbox.take(conn, NOW, 30.0),
    "ends": lambda conn: outbox.ends(conn, 10, 5),
    "letters": lambda conn: dead.letters(conn, 10),
    "overdue": lambda conn: machines.overdue(conn, NOW + 10**6, 60.0),
    "record": lambda conn: receipt.record(conn, body("r3"), judge(body("r3")), NOW),
    "reject": lambda conn: receipt.record(conn, b"{", judge(b"{"), NOW),
    "cancel": lambda conn: attempts.ask_cancel(conn, "r1", NOW),
}


def steps(ledger: Ledger, operation: Any) -> int:
    """How many instructions SQLite runs for an operation, whose changes are taken back."""
    counted = itertools.count()

    def run(conn: Connection) -> None:
        raw: Any = conn.connection.driver_connection
        raw.set_progress_handler(lambda: next(counted) < 0, 1)
        try:
            operation(conn)
        finally:
            raw.set_progress_handler(None, 1)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        ledger.do(run)
    return next(counted)


@pytest.fixture(scope="module")
def small_and_large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ledger, Ledger]]:
    """Two ledgers with the same that is alive, and far more in one that has ended."""
    made = []
    for count in (100, 3000):
        ledger = open_ledger(tmp_path_factory.mktemp("state"))
        ledger.do(fill, count)
        started(ledger)
        ask(ledger, "r2", trainingVmSku="ND7")
        ledger.do(machines.created, Named("vm-1"), NOW)
        ledger.do(machines.used, "vm-1", ("r1", 1), 0)
        made.append(ledger)
    yield made[0], made[1]
    for ledger in made:
        ledger.close()


@pytest.mark.parametrize("name", QUERIES)
def test_what_has_ended_costs_nothing(small_and_large: tuple[Ledger, Ledger], name: str):
    """Every operation takes SQLite as many steps with thirty times as much that is over."""
    small, large = (steps(ledger, QUERIES[name]) for ledger in small_and_large)
    assert 0 < large <= small * 1.1 + 20
