"""The example against the schemas of Taskcluster: what a Queue and real workers take."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from slugid import nice as slugid
from taskgraph.util.parameterization import resolve_task_references, resolve_timestamps
from taskgraph.util.time import current_json_time

from tests.graph.support import EXAMPLE, full_graph
from tests.schemas import PAYLOADS, faults, implementation

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
