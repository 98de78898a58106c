"""What trainers tell is taken in portions, whoever tells it, and nothing of it is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dispatching import World
from ledgers import NOW

from taskgraph_workers.dispatch import hearing, reconcile
from taskgraph_workers.dispatch.executors.base import Portion
from taskgraph_workers.dispatch.hearing import MOST, MOST_AT_ONCE, Hearing
from taskgraph_workers.dispatch.ledger import progress, steps
from taskgraph_workers.dispatch.model import Progress


def steps_to(count: int, start: int = 0) -> list[Progress]:
    return [Progress("step", NOW + seq, 0, seq) for seq in range(start, count)]


class Teller:
    """An executor that always tells all."""

    def __init__(self, facts: list[Progress]) -> None:
        self.facts = facts

    def progress(self, _: str) -> list[Progress]:
        return self.facts


def heard(teller: Any, mark: Any = None) -> tuple[list[Progress], Any]:
    """All that is told behind a mark."""
    facts: list[Progress] = []
    more = True
    while more:
        found = Hearing().portion(teller, "job", mark)
        assert len(found.facts) <= MOST
        facts += found.facts
        mark, more = found.mark, found.more
    return facts, mark


def test_an_executor_that_tells_all_is_heard_in_portions():
    """Each fact once, in its order; later only what is new."""
    teller = Teller(steps_to(3 * MOST + 7))
    facts, mark = heard(teller)
    assert facts == teller.facts
    assert heard(teller, mark) == ([], mark)
    teller.facts = steps_to(5 * MOST)
    facts, mark = heard(teller, mark)
    assert facts == teller.facts[3 * MOST + 7 :]


@pytest.mark.parametrize("new", [[Progress("other", NOW)], [], steps_to(5, start=2)])
def test_one_that_tells_something_else_is_heard_anew(new: list[Progress]):
    """What it told before may be missing, or changed: nothing is left out by that."""
    _, mark = heard(Teller(steps_to(5)))
    assert heard(Teller(new), mark)[0] == new


def test_a_pass_ends_after_many_facts():
    """Then others have a turn; whose facts were left is heard later."""
    pass_ = Hearing()
    teller: Any = Teller(steps_to(10 * MOST))
    found = [pass_.portion(teller, str(job), None) for job in range(4)]
    assert sum(len(each.facts) for each in found) == MOST_AT_ONCE
    assert found[-1] == Portion((), None, True)


class Transactions:
    """How many facts were written in each transaction."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        real = progress.append

        def counted(conn: Any, request_id: str, attempt: int, facts: Any) -> int:
            self.sizes.append(len(facts))
            return real(conn, request_id, attempt, facts)

        monkeypatch.setattr(steps.progress, "append", counted)


@pytest.mark.parametrize("phase", ["running", "succeeded"])
def test_what_is_told_is_written_in_portions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str
):
    """While a training runs, and after its end, which nothing delays; others go on meanwhile."""
    world = World(tmp_path)
    world.send("r1", "r2")
    world.turns(2)
    told = Transactions(monkeypatch)
    first, second = world.service.statuses
    world.service.told[first] = steps_to(4 * MOST + 3)
    world.service.told[second] = [Progress("imagesDownloaded", NOW)]
    for status in (first, second):
        world.service.statuses[status] = world.service.statuses[status].__class__(phase, 0, "vm-1")
    world.turns(1)
    assert set(world.states().values()) == {phase}
    world.turns(10)
    assert max(told.sizes) <= MOST
    names = world.facts("r1")
    assert names.count("step") == 4 * MOST + 3
    assert "imagesDownloaded" in world.facts("r2")
    assert sum(told.sizes) < 4 * MOST + 3 + 40  # hardly anything was written twice
    world.check_promises()


def test_a_portion_that_could_not_be_written_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What was read of it is not taken for told."""
    world = World(tmp_path)
    world.send("r1")
    world.turns(2)
    (job,) = world.service.statuses
    world.service.told[job] = steps_to(MOST + 1)
    real = reconcile.steps.settled

    def broken(*_: Any) -> None:
        monkeypatch.setattr(reconcile.steps, "settled", real)
        raise RuntimeError("broken")

    monkeypatch.setattr(reconcile.steps, "settled", broken)
    world.turns(5, after_s=20.0)
    assert world.facts().count("step") == MOST + 1


def test_what_is_left_out_is_said_in_the_log_once(tmp_path: Path):
    """How many lines were none, and that no more is kept."""
    world = World(tmp_path)
    world.send("r1")
    world.turns(2)
    (job,) = world.service.statuses
    world.service.told[job] = [
        Progress("progressLinesIgnored", NOW, 0, 0, {"first": "line 1: it is not JSON"}),
        Progress("progressLinesIgnored", NOW, 0, 1, {"lines": 7}),
        Progress("progressFactsDropped", NOW, 0, 0, {"after": 100_000}),
    ]
    world.turns(3)
    world.service.end()
    world.turns(5)
    said = world.said.getvalue()
    assert said.count("lines of its progress were ignored lines=7") == 1
    assert said.count("no more of its progress is kept after=100000") == 1


def test_others_have_a_turn_between_portions(tmp_path: Path):
    """What is told next is not due at once."""
    world = World(tmp_path)
    world.send("r1")
    world.turns(2)
    (job,) = world.service.statuses
    world.service.told[job] = steps_to(3 * MOST)
    world.clock.now += 20
    for count in (1, 2, 3):
        for _ in range(5):  # time stands still
            world.loop.turn()
        assert world.facts().count("step") == count * MOST
        world.clock.now += hearing.TURN_S + 0.001
