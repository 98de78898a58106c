"""What becomes of a message."""

from __future__ import annotations

import json

import pytest
from ledgers import NOW, ask, body, judge, own, refusal, unsent

from taskgraph_workers.dispatch.ledger import attempts, dead, progress, queries, receipt
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.ledger.values import Recorded, Request
from taskgraph_workers.dispatch.message import key_of
from taskgraph_workers.dispatch.model import Status


def request(ledger: Ledger, request_id: str = "r1") -> Request:
    found = ledger.see(queries.request, request_id)
    assert found is not None
    return found


def end(ledger: Ledger, to: str) -> None:
    assert ledger.do(attempts.change, own(ledger), to, NOW, Status(to)) is not None


def letters(ledger: Ledger) -> list[tuple[str, str | None]]:
    return [(each.code, each.request_id) for each in ledger.see(dead.letters)]


def test_a_new_message_is_a_request_with_an_attempt(ledger: Ledger):
    """It is accepted, due at once, and its job has the attempt's key and number."""
    assert ask(ledger) == Recorded("accepted", "r1", 1)
    found = request(ledger)
    assert (found.state, found.sku, found.image) == ("accepted", "ND6", "cwolff/my_keras_model")
    assert (found.received_at, found.ended_at, found.executor) == (NOW, None, "local")
    mine = own(ledger)
    assert mine.key == mine.job.key == key_of("r1", 1)
    assert (mine.job.request_id, mine.job.attempt, mine.job.pool) == ("r1", 1, "proj-1/b-gpu")


@pytest.mark.parametrize("state", ["accepted", "running", "succeeded", "failed", "canceled"])
def test_the_same_message_again_changes_nothing(ledger: Ledger, state: str):
    """A duplicate is only acknowledged, also with other blanks, and when all is over."""
    ask(ledger)
    if state != "accepted":
        end(ledger, state)
    before = request(ledger), ledger.see(unsent)
    spaced = json.dumps(json.loads(body()), indent=4).encode()
    for content in (body(), spaced):
        again = ledger.do(receipt.record, content, judge(content), NOW + 1)
        assert (again.result, again.attempt) == ("duplicate", 1)
    assert (request(ledger), ledger.see(unsent)) == before
    assert letters(ledger) == []


@pytest.mark.parametrize("state", ["accepted", "running", "succeeded", "failed", "canceled"])
@pytest.mark.parametrize("sku", ["ND6", "ND7"])
def test_another_content_with_the_same_id_is_a_conflict(ledger: Ledger, state: str, sku: str):
    """The first is not touched, no end is told of it, and the second is a dead letter."""
    ask(ledger)
    if state != "accepted":
        end(ledger, state)
    before = request(ledger), ledger.see(unsent)
    again = ask(ledger, trainingVmSku=sku, extra=1)
    assert again.result == "conflict"
    assert (request(ledger), ledger.see(unsent)) == before
    assert letters(ledger) == [("conflict", "r1")]


def test_a_rejected_message_ends_for_its_sender(ledger: Ledger):
    """A request in state rejected, its reason, an end message, a row of progress, a letter."""
    assert ask(ledger, trainingVmSku="ND7").result == "rejected"
    found = request(ledger)
    assert (found.state, found.reason, found.ended_at) == ("rejected", "this SKU is not known", NOW)
    assert (found.executor, found.machine, found.sku) == (None, None, None)
    (told,) = ledger.see(unsent)
    assert told.message_id == "r1/1"
    assert told.body == {
        "trainingVmId": None,
        "requestId": "r1",
        "outcome": "rejected",
        "reason": "this SKU is not known",
        "runId": None,
    }
    (fact,) = ledger.see(progress.facts_of, ["r1"])["r1"]
    assert fact.progress.name == "trainingRejected"
    assert letters(ledger) == [("unknown-sku", "r1")]
    assert ledger.see(queries.alive) == ()


def test_a_rejected_message_again_is_a_duplicate(ledger: Ledger):
    """Its sender was told; nothing is told twice."""
    ask(ledger, trainingVmSku="ND7")
    assert ask(ledger, trainingVmSku="ND7").result == "duplicate"
    assert len(ledger.see(unsent)) == 1
    assert [each.times for each in ledger.see(dead.letters)] == [1]


def test_the_id_of_a_rejected_message_is_free(ledger: Ledger):
    """A corrected message runs as the next attempt, with a key and an end of its own."""
    ask(ledger, trainingVmSku="ND7")
    assert ask(ledger, trainingVmSku="ND8").attempt == 2
    assert ask(ledger) == Recorded("reopened", "r1", 3)
    found = request(ledger)
    assert (found.state, found.reason, found.ended_at, found.sku) == ("accepted", "", None, "ND6")
    mine = own(ledger)
    assert (mine.attempt, mine.key) == (3, key_of("r1", 3))
    ledger.do(attempts.change, mine, "failed", NOW, Status("failed"))
    ends = ledger.see(unsent)
    assert [(each.message_id, each.body["outcome"]) for each in ends] == [
        ("r1/1", "rejected"),
        ("r1/2", "rejected"),
        ("r1/3", "failed"),
    ]
    assert ask(ledger, trainingVmSku="ND9").result == "conflict"


def test_a_malformed_message_with_an_id_is_rejected(ledger: Ledger):
    """Whose message it is can be read, so its sender is told."""
    recorded = ask(ledger, trainingImage=None)
    assert (recorded.result, recorded.reason) == ("rejected", "trainingImage is missing")
    assert ask(ledger).result == "reopened"


def test_a_message_without_an_id_is_a_dead_letter(ledger: Ledger):
    """Nobody can be told: no request, no end."""
    content = b"not a message"
    recorded = ledger.do(receipt.record, content, judge(content), NOW)
    assert (recorded.result, recorded.request_id) == ("dead", None)
    assert letters(ledger) == [("not-json", None)]
    assert ledger.see(queries.newest) == ()
    assert ledger.see(unsent) == ()


def test_a_refusal_of_the_first_content_is_a_duplicate(ledger: Ledger):
    """What was accepted once runs on, also when the configuration would not take it any more."""
    ask(ledger)
    refused = refusal("image-not-allowed")
    assert ledger.do(receipt.record, body(), refused, NOW).result == "duplicate"
    assert request(ledger).state == "accepted"


@pytest.mark.parametrize("request_id", ["../../x", "a/1", "ünï'; DROP TABLE requests; --", " "])
def test_an_id_is_data(ledger: Ledger, request_id: str):
    """Any text is an id like any other (and a blank one is none)."""
    result = ask(ledger, request_id).result
    assert result == ("dead" if request_id == " " else "accepted")
    assert len(ledger.see(queries.newest)) == (result == "accepted")
