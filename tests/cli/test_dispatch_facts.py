"""What ``dispatch status`` tells of requests."""

from __future__ import annotations

from dataclasses import fields

import pytest

from taskgraph_workers.cli.dispatch_told import Shown, notes, show_facts
from taskgraph_workers.cli.output import Output
from taskgraph_workers.dispatch.ledger.values import Fact, Request
from taskgraph_workers.dispatch.model import Progress


def request(**said: object) -> Request:
    empty = dict.fromkeys(field.name for field in fields(Request))
    return Request(**{**empty, "request_id": "r1", "reason": "", "attempt": 1, **said})  # type: ignore[arg-type]


def step(seq: int, attempt: int = 1) -> Fact:
    return Fact("r1", attempt, Progress("step", 1.0, seq=seq))


@pytest.mark.parametrize(
    ("facts", "columns"),
    [
        ([step(0)], ["time", "so far", "run"]),
        ([step(0), step(1)], ["time", "so far", "seq", "run"]),
        ([step(0), step(0, 2)], ["time", "so far", "attempt", "run"]),
    ],
)
def test_what_tells_facts_apart_is_shown_where_it_does(
    capsys: pytest.CaptureFixture[str], facts: list[Fact], columns: list[str]
):
    """The number of those of one name, and the attempt; neither where there is but one."""
    of = request(attempt=facts[-1].attempt)
    show_facts(Shown(of, facts, len(facts)), Output("never"))
    header, *rows = capsys.readouterr().out.splitlines()
    assert [each.strip() for each in header.split("  ") if each] == columns
    assert len({row.split("step")[1] for row in rows}) == len(facts)


def test_why_nobody_could_be_asked_is_told_with_since_when():
    """As long as that is so."""
    (note,) = notes(request(reason="pyton3 can't be run", unheard_since=1.0))
    assert note.startswith("nobody could be asked about it since ")
    assert note.endswith(": pyton3 can't be run")
    assert notes(request(reason="it failed", unheard_since=1.0, ended_at=2.0)) == ["it failed"]
