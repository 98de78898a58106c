"""How requests are shown that have much to tell, on 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledgers import NOW, ask, started

from taskgraph_workers.cli import main
from taskgraph_workers.dispatch.ledger import attempts, progress
from taskgraph_workers.dispatch.ledger.database import Ledger, open_ledger
from taskgraph_workers.dispatch.model import Progress, Status

UUID = "c3feb8b2-287e-11e8-b467-0ed5f89f718b"
PATH = "/no/blank/" + "abcdefghij" * 15


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TASKGRAPH_WORKERS_STATE", str(tmp_path))
    return tmp_path


def failed(ledger: Ledger, request_id: str, reason: str) -> None:
    """A request that failed for this reason."""
    mine = started(ledger, request_id)
    ended = ledger.do(attempts.change, mine, "failed", NOW, Status("failed", 0, "vm", reason, 3))
    assert ended is not None


def shown(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> list[str]:
    """The lines that ``dispatch status`` prints."""
    assert main(["dispatch", "status", *words]) == code
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    return lines


def test_an_image_is_shown_where_there_is_room(state: Path, capsys: pytest.CaptureFixture[str]):
    """Without most of its digest; where there is none, ids stand whole, and images are left out."""
    digest = "sha256:" + "0123456789abcdef" * 4
    with open_ledger(state) as ledger:
        ask(ledger, "r1", trainingImage=f"me/trainer:2@{digest}")
        assert shown(capsys)[1].split() == ["r1", "accepted", "ND6", "me/trainer:2@0123456"]
        ask(ledger, UUID, trainingImage="registry.example.com/trainers/resnet:2026-11-30")
        lines = shown(capsys)
        assert lines[0].split() == ["request", "state", "sku", "so", "far"]
        assert f"{UUID} " in "\n".join(lines)
    assert "registry.example.com/trainers/resnet:2026-11-30" in "".join(shown(capsys, UUID))


def test_no_name_gives_way_for_a_long_value(state: Path, capsys: pytest.CaptureFixture[str]):
    """A reason without a blank is broken; it is shown once."""
    with open_ledger(state) as ledger:
        failed(ledger, "r1", PATH)
    lines = shown(capsys, "r1", code=1)
    assert "  exit code  3" in lines
    assert "".join(line.strip() for line in lines).count(PATH) == 1
    assert lines[-1].split()[-2:] == ["trainingFailed", "0"]


def test_the_reason_of_another_attempt_is_told(state: Path, capsys: pytest.CaptureFixture[str]):
    """Where it is not that of the request."""
    with open_ledger(state) as ledger:
        failed(ledger, "r1", "it ended with exit code 3")
        fact = Progress("trainingFailed", NOW, 1, data={"reason": "another one"})
        ledger.do(progress.write, "r1", 1, fact)
    assert "reason: another one" in shown(capsys, "r1", code=1)[-1]


def test_of_many_facts_the_last_are_shown(state: Path, capsys: pytest.CaptureFixture[str]):
    """With how many there are besides, and where."""
    with open_ledger(state) as ledger:
        started(ledger)
        facts = [Progress("step", NOW + seq, seq=seq, data={"at": seq}) for seq in range(500)]
        ledger.do(progress.append, "r1", 1, facts)
    lines = shown(capsys, "r1")
    assert "450 earlier facts: --json has them all" in "\n".join(lines)
    assert sum(" step " in line for line in lines) == 50
    assert lines[-1].endswith("at: 499")
    assert len(shown(capsys)) == 2
