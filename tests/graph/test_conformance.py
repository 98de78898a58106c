"""The example against the schemas of Taskcluster: what a Queue and real workers take."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7
from slugid import nice as slugid
from taskgraph.util.parameterization import resolve_task_references, resolve_timestamps
from taskgraph.util.time import current_json_time

from tests.graph.support import EXAMPLE, ROOT, full_graph

SCHEMAS = ROOT / "tests" / "data" / "taskcluster-schemas"
PARAMETERS = EXAMPLE / "test" / "params"
DECISION = "decisionQSGmFn1vYuB1QA"

PROFILES = [
    profile
    for said in (
        yaml.safe_load((EXAMPLE / "config.yml").read_text())["workers-config"],
        yaml.safe_load((EXAMPLE / "workers" / "lab.yml").read_text()),
    )
    for profile in said["profiles"]
]
# Each profile on a pull request, where all of them may be used; and each file of parameters.
CASES = [(PARAMETERS / "pull-request.yml", profile) for profile in PROFILES]
CASES += [(path, None) for path in sorted(PARAMETERS.glob("*.yml"))]

# What a payload is read as. A generic-worker also takes payloads in the form of docker-worker; here
# they would be tasks that were moved and not changed, so only its own form will do.
PAYLOADS = {
    "docker-worker": "/schemas/docker-worker/v1/payload.json",
    "generic-worker": "/schemas/generic-worker/multiuser_posix.json#/oneOf/0",
    # A payload of this project's own, which no schema of Taskcluster describes.
    "scriptworker-publish": None,
}
DEFINITION = "/schemas/queue/v1/create-task-request.json"

# What a Queue asks of the fields that create-task-request.json takes from task.json.
NAME = "[a-zA-Z0-9-_]{1,38}"
WORKER_TYPE = "[a-z]([-a-z0-9]{0,36}[a-z0-9])?"
SLUG = "[A-Za-z0-9_-]{8}[Q-T][A-Za-z0-9_-][CGKOSWaeimquy26-][A-Za-z0-9_-]{10}[AQgw]"
TASK_ID = {"type": "string", "pattern": f"^{SLUG}$"}
PRIORITIES = ["highest", "very-high", "high", "medium", "low", "very-low", "lowest", "normal"]
TASK_FIELDS = {
    "provisionerId": {"type": "string", "pattern": f"^{NAME}$"},
    "workerType": {"type": "string", "pattern": f"^{WORKER_TYPE}$"},
    "taskQueueId": {"type": "string", "pattern": f"^{NAME}/{WORKER_TYPE}$"},
    "schedulerId": {"type": "string", "pattern": f"^{NAME}$"},
    "projectId": {"type": "string", "pattern": "^[a-zA-Z0-9._/-]{1,500}$"},
    "taskGroupId": TASK_ID,
    "dependencies": {"type": "array", "items": TASK_ID, "uniqueItems": True},
    "requires": {"enum": ["all-completed", "all-resolved"]},
    "routes": {
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": 249},
        "maxItems": 64,
        "uniqueItems": True,
    },
    "priority": {"enum": PRIORITIES},
    "retries": {"type": "integer", "minimum": 0, "maximum": 49},
    "expires": {"type": "string"},
    "scopes": {"type": "array", "items": {"type": "string", "pattern": "^[ -~]*$"}},
    "payload": {"type": "object"},
    "tags": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 4096}},
    "extra": {"type": "object"},
}


def _registry() -> Registry[Any]:
    contents = [json.loads(path.read_text()) for path in SCHEMAS.glob("*/*.json")]
    for each in contents:
        del each["$schema"]
    contents.append({"$id": "/schemas/queue/v1/task.json", "properties": TASK_FIELDS})
    return Registry().with_resources(
        [(each["$id"].rstrip("#"), Resource(each, DRAFT7)) for each in contents]
    )


REGISTRY = _registry()


def resolved(graph: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The definitions of all tasks as Taskgraph would send them to the Queue (its create.py)."""
    now = current_json_time(datetime_format=True)
    task_ids = {label: slugid() for label in graph}
    definitions = {}
    for label, task in graph.items():
        named = {name: task_ids[dependency] for name, dependency in task["dependencies"].items()}
        definition = resolve_task_references(
            label,
            task["task"],
            task_id=task_ids[label],
            decision_task_id=DECISION,
            dependencies=named,
        )
        definition["dependencies"] = [
            *definition.get("dependencies", []),
            *(sorted(named.values()) or [DECISION]),
        ]
        definition["taskGroupId"] = DECISION
        definition["schedulerId"] = "training-level-1"
        definitions[label] = resolve_timestamps(now, definition)
    return definitions


def implementation(definition: dict[str, Any]) -> str:
    """What a definition was made for; the kind docker-image sets no tag."""
    return str(definition["tags"].get("worker-implementation", "docker-worker"))


def faults(label: str, definition: dict[str, Any]) -> list[str]:
    """What Taskcluster would refuse in a task definition, one line each."""
    checks = [(DEFINITION, definition, "")]
    payload_schema = PAYLOADS[implementation(definition)]
    if payload_schema is not None:
        checks.append((payload_schema, definition["payload"], ".payload"))
    return [
        f"{label}{where}{error.json_path[1:]}: {error.message[:200]}"
        for schema, value, where in checks
        for error in Draft7Validator({"$ref": schema}, registry=REGISTRY).iter_errors(value)
    ]


def graph_of(parameters: Path, profile: str | None) -> dict[str, dict[str, Any]]:
    env = {"TASKGRAPH_WORKERS_PROFILE": profile} if profile else {}
    return full_graph(EXAMPLE, parameters, env)


@pytest.mark.parametrize(
    ("parameters", "profile"), CASES, ids=[f"{path.stem}-{profile}" for path, profile in CASES]
)
def test_every_task_is_one_that_taskcluster_takes(parameters: Path, profile: str | None):
    """Under every profile, each task of the example is a valid definition with a valid payload."""
    definitions = resolved(graph_of(parameters, profile))
    assert {implementation(each) for each in definitions.values()} == set(PAYLOADS)
    assert [fault for item in definitions.items() for fault in faults(*item)] == []


WRONG = {
    "env that is no string": lambda task: task["payload"]["env"].update(GPUS=0),
    "a key no worker knows": lambda task: task["payload"].update(gpus="0"),
    "no time limit": lambda task: task["payload"].pop("maxRunTime"),
    "a worker type in capitals": lambda task: task.update(workerType="Standard_ND6s"),
    "a provisioner with a brace": lambda task: task.update(provisionerId="{trust-domain}-1"),
    "a reference left as it was": lambda task: task["scopes"].append({"task-reference": "<a>"}),
    "a dependency twice": lambda task: task["dependencies"].append(task["dependencies"][0]),
    "the other implementation": lambda task: task["tags"].update(
        {"worker-implementation": "generic-worker"}
    ),
}


@pytest.fixture(scope="module")
def trainings() -> dict[str, dict[str, Any]]:
    return resolved(graph_of(PARAMETERS / "pull-request.yml", None))


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_task_is_told(what: str, trainings: dict[str, dict[str, Any]]):
    """Each way in which placing a task could spoil it is one that these schemas refuse."""
    task = copy.deepcopy(trainings["train-student-en-fr"])
    assert faults("task", task) == []
    WRONG[what](task)
    assert faults("task", task) != []
