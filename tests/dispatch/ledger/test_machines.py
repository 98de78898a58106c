"""Machines: their events in any order, and those that nobody stopped."""

from __future__ import annotations

import itertools

import pytest
from ledgers import NOW, started
from sqlalchemy import select

from taskgraph_workers.dispatch.ledger import attempts, machines, tables
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.ledger.machines import Named
from taskgraph_workers.dispatch.ledger.values import Machine
from taskgraph_workers.dispatch.model import Status

VM = Named("vm-1", "proj-1/b-gpu")
HOUR = 3600.0


def known(ledger: Ledger) -> list[Machine]:
    """All that were ever heard of."""
    rows = ledger.see(lambda conn: conn.execute(select(tables.machines)).all())
    return [Machine(**row._mapping) for row in rows]


def there(ledger: Ledger) -> list[str]:
    return [each.id for each in known(ledger) if each.gone_at is None]


def overdue(ledger: Ledger, now: float) -> list[str]:
    return [each.id for each in ledger.see(machines.overdue, now, HOUR)]


def test_a_machine_comes_and_goes(ledger: Ledger):
    """Each event counts once, and is told apart from its repetition."""
    assert ledger.do(machines.created, VM, NOW)
    assert not ledger.do(machines.created, VM, NOW)
    assert known(ledger) == [Machine("vm-1", "proj-1/b-gpu", True, NOW, None, None)]
    assert ledger.do(machines.stop_asked, VM, NOW + 1)
    assert not ledger.do(machines.stop_asked, VM, NOW + 2)
    assert there(ledger) == ["vm-1"]
    assert ledger.do(machines.gone, VM, NOW + 3)
    assert not ledger.do(machines.gone, VM, NOW + 4)
    assert not ledger.do(machines.stop_asked, VM, NOW + 5)
    assert there(ledger) == []


EVENTS = {"created": 0, "stop_asked": 1, "gone": 2}


@pytest.mark.parametrize("order", list(itertools.permutations(EVENTS)))
def test_events_may_come_in_any_order(ledger: Ledger, order: tuple[str, ...]):
    """In whatever order, and twice, events of one machine leave it gone."""
    for name in order * 2:
        ledger.do(getattr(machines, name), VM, NOW + EVENTS[name])
    assert there(ledger) == []
    assert overdue(ledger, NOW + 10 * HOUR) == []


def test_a_machine_may_come_again(ledger: Ledger):
    """A name that is used again is a machine that is there; late events of the old one are none."""
    ledger.do(machines.created, VM, NOW)
    ledger.do(machines.gone, VM, NOW + 10)
    assert ledger.do(machines.created, VM, NOW + 20)
    assert not ledger.do(machines.gone, VM, NOW + 10)
    assert not ledger.do(machines.stop_asked, VM, NOW + 9)
    assert known(ledger) == [Machine("vm-1", "proj-1/b-gpu", True, NOW + 20, None, None)]


def test_a_machine_is_no_orphan_while_it_is_needed(ledger: Ledger):
    """However long a training runs, its machine is not overdue; an hour after it, it is."""
    running = started(ledger)
    ledger.do(machines.created, VM, NOW)
    assert ledger.do(machines.used, "vm-1", ("r1", 1), 0)
    assert not ledger.do(machines.used, "vm-1", ("r1", 1), 0)
    assert overdue(ledger, NOW + 100 * HOUR) == []
    ledger.do(attempts.change, running, "failed", NOW + 100 * HOUR, Status("failed"))
    assert overdue(ledger, NOW + 101 * HOUR - 1) == []
    assert overdue(ledger, NOW + 101 * HOUR) == ["vm-1"]
    ledger.do(machines.gone, VM, NOW + 101 * HOUR)
    assert overdue(ledger, NOW + 200 * HOUR) == []


def test_a_machine_that_was_asked_to_stop_and_stays_is_an_orphan(ledger: Ledger):
    """Asking is not confirming: what does not go within the hour is told."""
    ledger.do(machines.stop_asked, VM, NOW)
    assert overdue(ledger, NOW + HOUR - 1) == []
    assert overdue(ledger, NOW + HOUR) == ["vm-1"]


def test_a_machine_that_nothing_ever_ran_on_is_an_orphan(ledger: Ledger):
    """It was made, and nobody came."""
    ledger.do(machines.created, VM, NOW)
    assert overdue(ledger, NOW + HOUR - 1) == []
    assert overdue(ledger, NOW + HOUR) == ["vm-1"]


def test_a_machine_of_the_house_is_never_an_orphan(ledger: Ledger):
    """What was there before, and stays, is not overdue."""
    static = Named("rack-7", "proj/onprem", ephemeral=False)
    ledger.do(machines.created, static, NOW)
    assert overdue(ledger, NOW + 100 * HOUR) == []
    assert there(ledger) == ["rack-7"]
