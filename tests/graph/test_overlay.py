"""What a profile lays over the `worker` of tasks that Taskgraph's `run` builds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.graph.project import ALIASES, DOCKER, Project, docker

GENERIC = {**DOCKER, "implementation": "generic-worker"}
MOUNT = {"cache-name": "models", "directory": "models"}
CACHE = {"type": "persistent", "name": "models", "mount-point": "/models"}
CHECKOUT = {"using": "run-task", "command": "true", "checkout": True, "cwd": "{checkout}"}
VOLUMES = ["/builds/worker/checkouts", "/models"]
CONFIG: dict[str, Any] = {
    "profiles": {
        "plain": {},
        "laid": {
            "workers": {
                "gw": {"worker": {"mounts": [MOUNT], "max-run-time": 7200}},
                "b-gpu": {"worker": {"caches": [CACHE]}},
            }
        },
    },
    "select": {"default": "plain"},
}
Payload = dict[str, Any]


@pytest.fixture(scope="module")
def payloads(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Payload]]:
    project = Project(tmp_path_factory.mktemp("overlay"))
    project.config(CONFIG, {**ALIASES, "gw": GENERIC})
    own = {"max-run-time": 60, "mounts": [{"cache-name": "own", "directory": "own"}]}
    project.kind(
        "train",
        {
            "metal": {"worker-type": "gw", "worker": own, "run": CHECKOUT},
            "docker": {"worker": docker(volumes=VOLUMES), "run": CHECKOUT},
        },
    )
    return {
        profile: {
            label: task["task"]["payload"]
            for label, task in project.full(profile=profile).graph.items()
        }
        for profile in ("plain", "laid")
    }


def test_mounts_are_laid_below_those_of_run_task(payloads: dict[str, dict[str, Payload]]):
    """A kind's mounts are replaced, and what run-task needs to start is still mounted."""
    plain, laid = (mounts(payloads[p]["train-metal"]) for p in ("plain", "laid"))
    assert plain - laid == {"shop-level-1-own"}
    assert laid - plain == {"shop-level-1-models"}
    assert {"./run-task", "shop-level-1-checkouts"} <= laid
    assert payloads["laid"]["train-metal"]["maxRunTime"] == 7200


def mounts(payload: Payload) -> set[str]:
    return {mount.get("cacheName") or mount["file"] for mount in payload["mounts"]}


def test_caches_are_laid_below_those_of_run_task(payloads: dict[str, dict[str, Payload]]):
    """The caches that run-task adds for a checkout are there, and the profile's besides."""
    plain, laid = (caches(payloads[p]["train-docker"]) for p in ("plain", "laid"))
    assert plain == {"/builds/worker/checkouts"}
    assert laid == {"/builds/worker/checkouts", "/models"}


def caches(payload: Payload) -> set[str]:
    found = payload["cache"]
    return set(found.get("task-reference", found).values())
