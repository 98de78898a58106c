"""What Taskcluster takes as a task: its JSON Schemas, and what they leave to a file we have not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7

SCHEMAS = Path(__file__).resolve().parent / "data" / "taskcluster-schemas"

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


def errors(schema: str, value: Any) -> Iterator[Any]:
    """What is wrong with a value, by the schema of that name."""
    yield from Draft7Validator({"$ref": schema}, registry=REGISTRY).iter_errors(value)


def implementation(definition: dict[str, Any]) -> str:
    """What a definition was made for; the kind docker-image sets no tag."""
    return str(definition["tags"].get("worker-implementation", "docker-worker"))


def faults(label: str, definition: dict[str, Any]) -> list[str]:
    """What Taskcluster would refuse in a task definition, one line each."""
    checks: list[tuple[str, Any, str]] = [(DEFINITION, definition, "")]
    payload_schema = PAYLOADS[implementation(definition)]
    if payload_schema is not None:
        checks.append((payload_schema, definition["payload"], ".payload"))
    return [
        f"{label}{where}{error.json_path[1:]}: {error.message[:200]}"
        for schema, value, where in checks
        for error in errors(schema, value)
    ]
