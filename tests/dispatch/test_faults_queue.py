"""Real dispatchers with a queue of its own, killed at every step; and a queue that goes away."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from dispatching import World
from ledgers import waits
from sqlalchemy import event
from trainings import Site

from taskgraph_workers.dispatch.brokers.base import BrokerDown
from taskgraph_workers.dispatch.ledger import outbox
from taskgraph_workers.dispatch.ledger.files import NAME, QUEUE

#: Every step of a message's way at which a dispatcher can die: of the first, and of the second.
STEPS = [
    f"{step}{nth}"
    for step in ("after-receive", "after-commit", "after-acknowledge", "after-publish")
    for nth in ("", ":2")
]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, apart=True)


def ask(file: Path, statement: str) -> list[tuple[object, ...]]:
    """What a statement of SQL finds, or changes."""
    with closing(sqlite3.connect(file, isolation_level=None)) as opened:
        return opened.execute(statement).fetchall()


def left(site: Site) -> int:
    """How many start messages are in the queue, with whomever."""
    assert site.queue is not None
    ((count,),) = ask(site.queue / QUEUE.name, "SELECT count(*) FROM messages")
    assert isinstance(count, int)
    return count


def lapse(site: Site) -> None:
    """All that a dispatcher had leased is anybody's: the time of the leases is over."""
    assert site.queue is not None
    ask(site.queue / QUEUE.name, "UPDATE messages SET visible_at = 0")
    ask(site.state / NAME, "UPDATE outbox SET next_try = 0 WHERE sent_at IS NULL")


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_each_request_is_trained_once(site: Site, step: str):
    """T1, P1, P2, P7: what was held comes again, and nothing is lost or doubled."""
    site.send("r1", "r2")
    site.killed_at(step)
    held = {"after-receive": 2, "after-commit": 2, "after-receive:2": 1, "after-commit:2": 1}
    held["after-acknowledge"] = 1
    assert left(site) == held.get(step, 0)
    lapse(site)
    site.finish()
    site.assert_each_once("r1", "r2")
    assert left(site) == 0


def test_killed_at_one_step_after_the_other(site: Site):
    """A dispatcher that comes again and again, and never gets further than one step."""
    site.send("r1")
    for step in STEPS[::2]:
        site.killed_at(step)
        lapse(site)
    site.finish()
    assert (site.trained(), left(site)) == ({"r1": 1}, 0)
    assert len(site.ends()) == 1


@contextmanager
def moved(file: Path) -> Iterator[None]:
    away = file.parent.with_name("away")
    file.parent.rename(away)
    yield
    away.rename(file.parent)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    with closing(sqlite3.connect(file, isolation_level=None)) as held:
        held.execute("BEGIN IMMEDIATE")
        yield
        held.execute("ROLLBACK")


@pytest.mark.parametrize("fault", [moved, locked])
def test_a_queue_that_can_not_be_used_for_a_while(tmp_path: Path, fault: Callable[..., object]):
    """T6, T11: trainings end meanwhile, and a dispatcher begins; all is told when it is over."""
    site = Site(tmp_path, apart=True)
    go = tmp_path / "go"
    waits_for_it = f"until [ -e {go} ]; do sleep 0.05; done"
    text = site.config.read_text("utf-8")
    site.config.write_text(text.replace("sleep 0.0", waits_for_it), "utf-8")
    assert site.queue is not None
    site.send("r1")
    site.call("run", "--config", str(site.config), "--once")
    site.send("r2", "r3")
    with fault(site.queue / QUEUE.name):  # type: ignore[attr-defined]
        run = site.dispatcher()
        go.touch()
        until(lambda: site.requests()["r1"]["state"] == "succeeded")
        time.sleep(1.0)
        assert run.poll() is None
    _, said = run.communicate(timeout=120)
    assert run.returncode == 0, said
    assert "the queue" in said or "no queue" in said
    assert site.trained() == {"r1": 1, "r2": 1, "r3": 1}
    assert sorted(end["requestId"] for end in site.ends()) == ["r1", "r2", "r3"]
    assert left(site) == 0


def test_a_queue_that_became_read_only(tmp_path: Path):
    """T6: nothing is received or told meanwhile; nothing is lost."""
    world = World(tmp_path / "state", apart=True)
    assert world.broker is not None
    world.send("r1")
    world.turns(2)
    world.send("r2")
    broken = ["ON"]

    def spoil(raw: object, *_: object) -> None:
        raw.execute(f"PRAGMA query_only={broken[0]}")  # type: ignore[attr-defined]

    opened = world.broker._opened
    assert opened is not None
    event.listen(opened.engine, "checkout", spoil)
    world.service.end()
    with pytest.raises(BrokerDown, match=r"the queue .* it is read-only"):
        world.broker.receive(0.0)
    world.turns(10)
    assert world.states() == {"r1": "succeeded"}
    assert (waits(world.queue), world.queue.see(outbox.ends)) == (True, ())
    broken[0] = "OFF"
    world.turns(100, after_s=10.0)
    world.service.end()
    world.turns(100, after_s=10.0)
    assert world.states() == {"r1": "succeeded", "r2": "succeeded"}
    told = [end.message_id for end in world.queue.see(outbox.ends)]
    assert (told, waits(world.queue)) == (["r1/1", "r2/1"], False)
    world.check_promises()
    world.close()


def test_a_message_waits_for_the_end_of_a_dead_dispatcher_s_lease(tmp_path: Path):
    """T12: ``--until-idle`` does not end before it; nobody else's time is waited for."""
    world = World(tmp_path / "state", apart=True)
    assert world.broker is not None
    world.send("r1")
    assert world.broker.receive(0.0) is not None
    began = world.clock.now
    sleep = world.loop.sleep

    def sleeps(seconds: float) -> None:
        sleep(seconds)
        world.service.end()

    world.broker.sleep = world.loop.sleep = sleeps
    world.loop.run(until_idle=True)
    assert world.states() == {"r1": "succeeded"}
    assert world.broker.lease_s <= world.clock.now - began < world.broker.lease_s + 30
    world.close()
