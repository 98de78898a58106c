"""How long is waited after faults: longer each time, never longer than needed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from dispatching import Service, World, down
from ledgers import NOW, body, judge, program
from sqlalchemy import Connection, event
from trainings import Site

from taskgraph_workers.dispatch.brokers.base import BrokerDown
from taskgraph_workers.dispatch.brokers.external import External
from taskgraph_workers.dispatch.ledger import attempts, queries, steps
from taskgraph_workers.dispatch.ledger.attempts import Owner
from taskgraph_workers.dispatch.ledger.errors import LedgerUnavailable
from taskgraph_workers.dispatch.ledger.files import NAME
from taskgraph_workers.dispatch.means import Pace
from taskgraph_workers.dispatch.model import Progress, Status
from tests.dispatch.test_faults_broker import Queue


def test_who_can_not_be_asked_about_is_asked_less_and_less(world: World):
    """An hour of no answer costs few calls."""
    world.send("r1")
    world.turns(2)
    (handle,) = world.service.statuses
    world.service.statuses[handle] = Status("unknown")
    before = world.service.calls["poll"]
    world.turns(360, after_s=10.0)
    assert 10 < world.service.calls["poll"] - before < 25


def test_what_waited_behind_another_keeps_its_own_count(world: World):
    """An attempt that was not tried itself is not as good as new by that."""
    world.send("r1")
    world.service.before["find"] = [down()] * 3
    world.turns(6)
    found = world.ledger.see(attempts.read, "r1", 1)
    assert found is not None
    assert found.tries == 3
    world.loop.means.failed_reaching("local")
    world.loop.means.down["local"].until = world.clock.now + 500
    world.clock.now += 400
    world.turns(1)
    found = world.ledger.see(attempts.read, "r1", 1)
    assert found is not None
    assert (found.tries, found.owner) == (3, None)


def test_a_cancellation_is_followed_closely(world: World):
    """However old the training is: whoever canceled it waits for its end."""
    world.send("r1")
    world.turns(2)
    world.clock.now += 86400.0
    world.ledger.do(attempts.ask_cancel, "r1", world.clock.now)
    world.service.before["cancel"] = [down()]
    world.turns(1, after_s=0.0)
    due = world.ledger.see(queries.next_due)
    assert due is not None
    assert due - world.clock.now < 1.0


def test_end_messages_are_tried_again_soon(world: World):
    """A broker that was down for a moment has them within seconds, all of them."""
    world.send("r1", "r2", trainingVmSku="ND7")
    queue = Queue(faults={"publish": [BrokerDown("no")]})
    world.loop.intake.take(10)
    external = External(world.loop.means, queue)
    assert external.relay(100) == 0
    world.clock.now += 2.0
    assert external.relay(100) == 2
    assert queue.ends == ["r1/1", "r2/1"]


def test_a_fault_of_the_ledger_costs_seconds_not_the_time_of_an_owner(world: World):
    """What was under way when it failed is gone on with as soon as it works again."""
    world.send("r1")
    submit = world.service.submit

    def fails(job: object) -> str:
        world.service.submit = submit  # type: ignore[method-assign]
        submit(job)  # type: ignore[arg-type]
        world.service.end()
        raise LedgerUnavailable(*_problem())

    world.service.submit = fails  # type: ignore[method-assign]
    world.loop.looked_at_owners = world.clock.now
    world.loop.run(until_idle=True)
    assert world.states() == {"r1": "succeeded"}
    assert list(world.service.starts.values()) == [1]
    assert world.clock.now - NOW < Pace().rest_s


@pytest.mark.parametrize("apart", [False, True])
def test_a_fault_of_the_ledger_during_a_rest_ends_no_dispatcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: bool
):
    """T6: most of the time it rests, so that is when most faults come up."""
    world = World(tmp_path, apart=apart)
    next_due, faults = queries.next_due, [_problem()]

    def fails(conn: Connection) -> float | None:
        world.service.end()
        if faults:
            raise LedgerUnavailable(*faults.pop())
        return next_due(conn)

    monkeypatch.setattr(queries, "next_due", fails)
    world.send("r1")
    world.loop.run(until_idle=True)
    assert world.states() == {"r1": "succeeded"}
    assert "the ledger: the ledger is away" in world.said.getvalue()
    assert faults == []
    world.close()


@pytest.mark.parametrize("status", [Status("running", 0, "vm-1", "news"), Status("unknown")])
def test_a_cancellation_that_comes_during_a_look_is_not_put_off(world: World, status: Status):
    """Whatever that look tells: the executor is told with the next one, which is at once."""
    world.send("r1")
    world.turns(2, after_s=1000.0)
    poll = world.service.poll

    def asked_meanwhile(handles: Iterable[str]) -> Mapping[str, Status]:
        world.service.poll = poll  # type: ignore[method-assign]
        world.ledger.do(attempts.ask_cancel, "r1", world.clock.now)
        return dict.fromkeys(handles, status)

    world.service.poll = asked_meanwhile  # type: ignore[method-assign]
    world.turns(2, after_s=0.0)
    assert world.states() == {"r1": "canceled"}


def test_unforeseen_failures_count_in_a_row(world: World, monkeypatch: pytest.MonkeyPatch):
    """A training of weeks does not end by five that were hours apart."""
    world.send("r1")
    world.turns(3)
    (told,) = world.service.told.values()
    for number in range(6):
        told.append(Progress(f"reached{number}", world.clock.now))
        with monkeypatch.context() as broken:
            broken.setattr(steps, "settled", lambda *_: 1 / 0)
            world.turns()
        world.turns(5, after_s=3600.0)
    assert "ZeroDivisionError" in world.said.getvalue()
    assert (world.states(), world.service.canceled) == ({"r1": "running"}, set())


@pytest.mark.parametrize("answer", [None, {}.fromkeys])
def test_an_executor_whose_answers_make_no_sense_stops_no_other(world: World, answer: object):
    """Nothing is known of its jobs, so they go on (P9); those of another start and end."""
    world.send("r1")
    world.turns(2)
    other = Service("other")
    loop = world.dispatcher(executors={"local": world.service, "other": other})
    world.service.poll = lambda asked: answer and answer(asked)  # type: ignore
    world.turns(3, loop, after_s=10.0)
    assert world.states() == {"r1": "running"}
    assert world.request().unheard_since is not None
    theirs = replace(judge(body("r2")), executor="other")  # type: ignore[type-var]
    loop.intake = replace(loop.intake, judge=lambda _: theirs)  # type: ignore[arg-type,return-value]
    world.send("r2")
    world.turns(3, loop, after_s=10.0)
    assert world.states() == {"r1": "running", "r2": "running"}


def test_who_begins_waits_for_nothing_that_failed_before(world: World):
    """A mended configuration counts at once; what another one works on stays that one's."""
    world.send("r1", "r2")
    world.service.before["find"] = [down() for _ in range(100)]
    world.turns(12, after_s=1000.0)
    world.turns()
    world.service.before["find"] = []
    look = world.ledger.see(queries.next_due)
    assert look is not None
    assert look > world.clock.now + 200
    (others,) = world.ledger.do(attempts.own, Owner("other", 60.0, 1), look)
    stop = [False]
    begun = world.clock.now

    def sleep(seconds: float) -> None:
        world.clock.sleep(seconds)
        stop[0] = True

    loop = world.dispatcher("new", stopped=lambda: stop[0])
    loop.sleep = sleep
    loop.run()
    assert world.clock.now < begun + 5
    (mine,) = {"r1", "r2"} - {others.request_id}
    assert world.states() == {mine: "submitted", others.request_id: "accepted"}


def _problem() -> tuple[object, ...]:
    from taskgraph_workers.errors import Problem

    return (Problem("the ledger is away"),)


@pytest.mark.parametrize(
    ("pragma", "told"),
    [("PRAGMA query_only=ON", "read-only"), ("PRAGMA max_page_count=1", "the disk is full")],
)
def test_a_ledger_that_can_not_be_written(world: World, pragma: str, told: str):
    """T6: read-only or full, it says so and waits; when that is over, nothing is lost."""
    for number in range(40):
        world.send(f"r{number}", trainingBaseModelBlobId="m" * 2000)
    broken = [True]

    def spoil(raw: object, *_: object) -> None:
        raw.execute(pragma if broken else "PRAGMA query_only=OFF")  # type: ignore[attr-defined]
        if not broken:
            raw.execute("PRAGMA max_page_count=1073741823")  # type: ignore[attr-defined]

    event.listen(world.ledger.engine, "checkout", spoil)
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        world.clock.sleep(seconds)
        naps.append(seconds)
        if len(naps) == 50:
            broken.clear()
        world.service.end()

    world.loop.sleep = sleep
    world.loop.run(until_idle=True)
    assert told in world.said.getvalue()
    assert set(world.states().values()) == {"succeeded"}
    assert len(world.states()) == len(world.ends()) == 40
    world.check_promises()


#: A dispatcher that waits for a locked ledger for a twentieth of a second at a time.
IMPATIENT = """
import functools, sys
from taskgraph_workers.dispatch.ledger import database
database.Settings = functools.partial(database.Settings, busy_s=0.05)
from taskgraph_workers.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("ends", [True, False])
def test_a_ledger_that_is_locked_when_a_dispatcher_starts(tmp_path: Path, ends: bool):
    """It waits, longer each time, and begins when it can; a stop ends it. ``--once`` has failed."""
    site = Site(tmp_path)
    site.send("r1")
    held = sqlite3.connect(site.state / NAME, isolation_level=None)
    held.execute("PRAGMA locking_mode=EXCLUSIVE")
    held.execute("BEGIN EXCLUSIVE")
    words = ("dispatch", "run", "--config", site.config, "--state", site.state)
    once = program(IMPATIENT, *words, "--once")
    assert "locked by another process" in once.communicate(timeout=60)[1]
    assert once.returncode == 2
    run = program(IMPATIENT, *words, "--until-idle")
    assert run.stderr is not None
    said = [run.stderr.readline() for _ in range(2)]
    assert all("warning: " in each and "is locked by another process" in each for each in said)
    if ends:
        run.terminate()
    else:
        held.execute("ROLLBACK")
    held.close()
    assert run.wait(timeout=60) == 0
    run.communicate()
    assert site.trained() == ({} if ends else {"r1": 1})
