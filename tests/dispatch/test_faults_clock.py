"""Clocks that are wrong, and are set right (T8)."""

from __future__ import annotations

import pytest
from dispatching import World, down
from ledgers import NOW

from taskgraph_workers.dispatch import owners
from taskgraph_workers.dispatch.executors import processes
from taskgraph_workers.dispatch.ledger import attempts, queries
from taskgraph_workers.dispatch.ledger.attempts import Owner
from taskgraph_workers.dispatch.ledger.errors import LedgerUnavailable
from taskgraph_workers.errors import Problem

YEAR_S = 365 * 86400.0


@pytest.mark.parametrize(("back_s", "anew"), [(120.0, False), (YEAR_S, False), (YEAR_S, True)])
def test_the_clock_is_set_back(world: World, back_s: float, anew: bool):
    """What was sent, started and ended by the wrong clock goes on at once by the right one."""
    world.clock.now = NOW + back_s
    world.send("r1", "r2")
    world.service.before["release"] = [down()] * 5
    world.turns(3)
    world.service.end()
    world.turns(5)
    world.send("r3")
    world.service.before["find"] = [down()] * 5
    world.turns(5)
    world.send("r4")
    world.clock.now = NOW
    world.turns(20, world.dispatcher("new") if anew else world.loop, after_s=10.0)
    world.service.end()
    world.turns(10, world.dispatcher("new") if anew else world.loop, after_s=10.0)
    assert world.states() == dict.fromkeys(["r1", "r2", "r3", "r4"], "succeeded")
    assert world.ledger.see(queries.is_idle)
    world.check_promises()


def test_the_clock_is_set_back_during_a_rest(world: World):
    """It ends then: whoever rests until a time that is an hour away again misses all."""
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        world.clock.now += seconds - (3600.0 if len(slept) == 3 else 0.0)

    world.loop.sleep = sleep
    world.loop._wait()
    assert len(slept) == 3
    slept.clear()
    world.loop._nap(world.clock.now + 30.0)
    assert len(slept) == 3


def test_the_clock_is_set_back_while_the_ledger_is_locked(world: World):
    """It is asked again as soon as ever, and not only when the old time is reached."""
    tries = []

    def see(*_: object) -> bool:
        tries.append(world.clock.now)
        if len(tries) == 2:
            world.clock.now -= 86400.0
        if len(tries) > 4:
            return True
        raise LedgerUnavailable(Problem("locked"))

    world.loop.is_idle = see  # type: ignore[method-assign]
    world.loop.run(until_idle=True)
    assert max(tries[2:]) < NOW - 80000.0
    assert world.clock.now < NOW - 80000.0


def test_nothing_is_started_by_an_owner_that_can_not_know_for_how_long(world: World):
    """A clock that was set back makes an owned time look long: the ledger is asked first."""
    world.send("r1")
    world.loop._part("receiving", lambda: world.loop.intake.take(1))
    (mine,) = world.ledger.do(attempts.own, Owner("me", 60.0), world.clock.now)
    world.ledger.do(attempts.free, lambda _: True)
    world.clock.now -= 1000.0
    world.loop._work_at([mine])
    assert world.service.starts == {}


def test_what_is_put_off_as_long_as_ever_stays_so(world: World):
    """A dispatcher that looks around leaves alone what waits for good reasons."""
    world.send("r1")
    world.service.before["find"] = [down()] * 1000
    world.turns(400, after_s=5.0)
    assert world.service.calls["find"] < 25
    assert "clock" not in world.said.getvalue()


@pytest.mark.parametrize("known", ["boot/123", "Mon Nov 30 15:04:05 2026"])
def test_an_owner_is_known_whatever_tells_processes_apart(
    monkeypatch: pytest.MonkeyPatch, known: str
):
    """Without /proc, ps says when one started: with blanks and colons."""
    monkeypatch.setattr(processes, "identity", lambda _: known)
    owner = f"{owners.name()} 0123456789abcdef"
    assert not owners.is_gone(owner)
    monkeypatch.setattr(processes, "identity", lambda _: f"{known}6")
    assert owners.is_gone(owner)
    monkeypatch.setattr(processes, "identity", lambda _: None)
    assert owners.is_gone(owner)
