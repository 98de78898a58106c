"""The example: this project's own tasks, and the training pipeline that profiles move."""

from __future__ import annotations

from typing import Any

import pytest

from tests.graph.support import EXAMPLE, full_graph

PULL_REQUEST = EXAMPLE / "test" / "params" / "pull-request.yml"
LARGE_GPU = {"train-backward", "back-translate", "train-teacher", "distill", "train-student"}
SMALL_GPU = {"score", "evaluate"}
# The kinds that move away from where `gcp-spot` has them.
MOVED = {
    "gcp-standard": {"merge", "align", "train-teacher", "train-student"},
    "onprem": {*LARGE_GPU, *SMALL_GPU, "quantize"},
    "lab": LARGE_GPU | SMALL_GPU,
}


def graph(profile: str) -> dict[str, dict[str, Any]]:
    return full_graph(EXAMPLE, PULL_REQUEST, {"TASKGRAPH_WORKERS_PROFILE": profile})


def pools(profile: str) -> dict[str, tuple[str, str]]:
    """The kind and the pool of each task, by label."""
    return {
        label: (
            task["attributes"]["kind"],
            f"{task['task']['provisionerId']}/{task['task']['workerType']}",
        )
        for label, task in graph(profile).items()
    }


def test_both_roots_give_the_same_graph():
    """taskcluster/ci, which only links to what lies in taskcluster, is the same project."""
    linked = full_graph(EXAMPLE / "ci", PULL_REQUEST)
    for task in linked.values():
        source = task["task"]["metadata"]["source"]
        task["task"]["metadata"]["source"] = source.replace("taskcluster/ci/", "taskcluster/")
    assert linked == full_graph(EXAMPLE, PULL_REQUEST)


def test_nobody_has_to_choose():
    """Without a choice, and without parameters, the example renders under its default profile."""
    task = full_graph(EXAMPLE)["train-backward-fr-en"]["task"]
    assert task["workerType"] == "b-linux-v100-gpu-4"
    assert task["payload"]["env"]["GPUS"] == "0 1 2 3"


@pytest.mark.parametrize("profile", MOVED)
def test_a_profile_moves_what_it_says_and_nothing_else(profile: str):
    """Under each profile just the kinds named here move, all of their tasks, and
    nothing that is protected.
    """
    before, after = pools("gcp-spot"), pools(profile)
    assert before.keys() == after.keys()
    moved = {label for label in before if before[label] != after[label]}
    assert moved == {label for label, (kind, _) in before.items() if kind in MOVED[profile]}


def test_a_task_that_leaves_its_container_takes_nothing_of_it_along():
    """On generic-worker a task has no image and no path of the container."""
    payload = graph("onprem")["score-1"]["task"]["payload"]
    assert "image" not in payload
    assert "/builds/worker" not in str(payload)


def test_a_value_for_the_machine_to_find_out_is_in_the_command_and_not_in_the_env():
    """The teachers find out their WORKSPACE on the machine that trains them."""
    payload = graph("onprem")["train-teacher-1"]["task"]["payload"]
    assert "WORKSPACE" not in payload["env"]
    assert any("nvidia-smi" in part for part in payload["command"])
