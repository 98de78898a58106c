"""The rules of the Queue that tests use, against what a real one answered."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.queue.rules import ROOT, Queue, Refusal, read_time, require

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "recordings" / "taskcluster-queue"
# Of each scenario, the exchanges before anything claims a task, or takes a route not kept here.
SCENARIOS = {
    "01-create-new": 6,
    "02-create-replay-identical": 4,
    "03-create-replay-other-created": 99,
    "04-create-replay-changed": 99,
    "05-create-replay-equivalent": 99,
    "07-create-created-window": 99,
    "08-create-deadline": 99,
    "09-taskid-malformed": 99,
    "10-taskqueueid": 99,
    "11-create-schema": 99,
    "12-dependency-unknown": 7,
    "14-insufficient-scopes": 8,
    "18-task-group": 99,
}
DISPATCHER = (
    "queue:create-task:lowest:proj-train/*",
    "queue:create-task:project:none",
    "queue:scheduler-id:tg-workers",
    "queue:route:taskgraph-workers.training.*",
)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_answers_as_a_real_queue(scenario: str):
    """Each recorded createTask, and each look at a task, gets the recorded answer."""
    path = RECORDINGS / f"{scenario}.json"
    if not path.exists():
        pytest.skip("the recordings of a real Queue are not here")
    exchanges = json.loads(path.read_text())["exchanges"]
    queue, compared = Queue(), 0
    for exchange in exchanges[: SCENARIOS[scenario]]:
        request = exchange.get("request")
        if request is None or not isinstance(request.get("body"), (dict, list, type(None))):
            continue
        queue.now = datetime.fromtimestamp(read_time(exchange["at"]).timestamp(), timezone.utc)
        told = answer(queue, request)
        if told is not None:
            compared += 1
            response = exchange["response"]
            assert told[0] == response["status"], exchange.get("note")
            assert told[1] == essence(response["body"]), exchange.get("note")
    assert compared > 2


def answer(queue: Queue, request: dict[str, Any]) -> tuple[int, Any] | None:
    """What the queue answers to a recorded request; None for one that it knows nothing of."""
    parts = request["path"].split("?")[0].split("/")[4:]
    scopes = request.get("authorizedScopes") or (
        ROOT if request["as"].startswith("root") else DISPATCHER
    )
    try:
        if request["method"] == "PUT" and request.get("body") is not None:
            return 200, essence({"status": queue.create(parts[1], request["body"], scopes)})
        if (
            request["method"] == "GET"
            and parts[0] == "task"
            and not request.get("authorizedScopes")
        ):
            found = queue.status(parts[1]) if len(parts) > 2 else queue.task(parts[1])
            return 200, essence({"status": found} if len(parts) > 2 else found)
        if parts[0] == "task-group" and parts[2:] == ["seal"]:
            queue.group(parts[1]).sealed = True
        elif parts[0] == "task-group":
            queue.group(parts[1])
    except Refusal as refusal:
        return refusal.status, refusal.code
    return None


def essence(body: dict[str, Any]) -> Any:
    """What is compared of an answer: the code of a refusal; else all but when a run was made."""
    if "code" in body:
        return body["code"]
    for run in body.get("status", {}).get("runs", ()):
        run.pop("scheduled", None)
    return body


def test_a_higher_priority_is_as_good():
    """Who may create a task of a high priority may create one of a lower."""
    scopes = ("queue:create-task:high:p/w",)
    require([("queue:create-task:high:p/w", "queue:create-task:low:p/w")], scopes)
    with pytest.raises(Refusal, match="InsufficientScopes"):
        require([("queue:create-task:highest:p/w",)], scopes)
