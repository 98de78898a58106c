"""What was told of a job on this machine: run by run, some at a time, and not without end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from taskgraph_workers.dispatch.executors import told
from taskgraph_workers.dispatch.executors.told import Mark, Run, portion
from taskgraph_workers.dispatch.model import Progress


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    """One that was lost, and one that goes on."""
    files = [tmp_path / f"run-{run}.jsonl" for run in range(2)]
    files[0].write_text('no\n{"name": "a"}\n{"name": "b"}')
    files[1].write_text('{"name": "a"}\n{"name": "b"')
    return [Run("box", 1.0, 2.0, str(files[0])), Run("box", 2.0, None, str(files[1]))]


def all_of(runs: list[Run], mark: Mark, most: int) -> tuple[list[Progress], Mark]:
    """All that was told behind a mark."""
    facts: list[Progress] = []
    more = True
    while more:
        found = portion(runs, mark, most, 9.0)
        assert len(found.facts) <= most + 4
        facts += found.facts
        mark, more = found.mark, found.more
    return facts, mark


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_each_run_is_told_of_from_its_beginning_to_its_end(runs: list[Run], most: int):
    """Its machine, its trainer's facts, lines that are none, the end of its machine."""
    facts, mark = all_of(runs, Mark(), most)
    first = Progress("progressLinesIgnored", 9.0, 0, 0, {"first": "line 1: it is not JSON"})
    facts.remove(first)  # it comes with what was read together with that line
    assert [(fact.name, fact.run, fact.at, fact.seq) for fact in facts] == [
        ("trainingVmCreated", 0, 1.0, 0),
        ("a", 0, 9.0, 0),
        ("b", 0, 9.0, 0),
        ("progressLinesIgnored", 0, 9.0, 1),
        ("trainingVmDestroyed", 0, 2.0, 0),
        ("trainingVmCreated", 1, 2.0, 0),
        ("a", 1, 9.0, 0),
    ]
    assert all_of(runs, mark, most) == ([], mark)
    runs[1] = replace(runs[1], ended=3.0)
    later, mark = all_of(runs, mark, most)
    assert [(fact.name, fact.run, fact.data) for fact in later] == [
        ("progressLinesIgnored", 1, {"first": "line 2: it is not JSON"}),
        ("progressLinesIgnored", 1, {"lines": 1}),
        ("trainingVmDestroyed", 1, {"trainingVmId": "box"}),
    ]
    assert all_of(runs, mark, most) == ([], mark)


@pytest.mark.parametrize("most", [1, 2, 100])
@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4])
def test_not_all_is_taken_of_one_that_tells_without_end(
    runs: list[Run], most: int, limit: int, monkeypatch: pytest.MonkeyPatch
):
    """So many facts of all its runs; that there were more is told once. Machines are told of."""
    monkeypatch.setattr(told, "MOST_FACTS", limit)
    names = [fact.name for fact in all_of(runs, Mark(), most)[0]]
    assert names.count("a") + names.count("b") == min(limit, 3)
    assert names.count("progressFactsDropped") == (limit < 3)
    assert names.count("trainingVmCreated") == 2
    assert names.count("trainingVmDestroyed") == 1


def test_nothing_is_told_of_a_job_that_has_not_begun():
    """Its mark stays."""
    assert portion([], Mark(), 5, 9.0).facts == ()
