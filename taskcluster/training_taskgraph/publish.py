"""The payload of ``scriptworker-publish``: which artifacts of which tasks go out."""

from __future__ import annotations

from typing import Any

from voluptuous import Any as AnyOf
from voluptuous import Required

#: ``worker`` of a task that publishes.
SCHEMA = {
    Required("max-run-time"): int,
    Required("upstream-artifacts"): [
        {
            Required("task-id"): AnyOf(str, {"task-reference": str}),
            Required("paths"): [str],
        }
    ],
}


def register() -> None:
    """Make the implementation known to Taskgraph."""
    from taskgraph.transforms.task import payload_builder

    payload_builder("scriptworker-publish", schema=SCHEMA)(build_payload)


def build_payload(config: Any, task: dict[str, Any], task_def: dict[str, Any]) -> None:
    """Write the payload into a task definition."""
    worker = task["worker"]
    task_def["payload"] = {
        "maxRunTime": worker["max-run-time"],
        "upstreamArtifacts": [
            {"taskId": each["task-id"], "paths": each["paths"]}
            for each in worker["upstream-artifacts"]
        ],
    }
    task_def["scopes"].append(f"project:{config.graph_config['trust-domain']}:publish")
