"""Placement as hand-written transforms work it out."""

from __future__ import annotations

import pytest
from adopting import hand, translations
from test_parity_translations import RECORDED, tasks_of

from taskgraph_workers.adopt.by_hand import Outcome, outcome
from taskgraph_workers.adopt.hand import read
from taskgraph_workers.config.locate import Source

TABLES = """
local-worker-aliases:
    a: {by-worker-class: {x: gpu-1, default: cpu}}
    b: {by-level: {'3': {by-worker-class: {x.*: gpu-4}}, default: cpu}}
    c: gpu-8
    d: rack-7
    e: nothing
    done: succeed
    keyed: {by-project: {p: cpu}}
worker-configuration:
    gpu-1: {env: {GPUS: 0, WORKSPACE: "9", MORE: {by-worker-class: {x: y, default: z}}}}
    gpu-.*: {env: {GPUS: "0 1", WORKSPACE: "8"}}
    gpu-8: {env: {GPUS: "0"}}
    cpu: {env: {THREADS: "8"}}
"""
DOCKER = "docker-worker"


@pytest.mark.parametrize(
    ("name", "run", "becomes"),
    [
        ("a", {}, Outcome("sky-1/cpu", DOCKER)),
        (
            "a",
            {"worker-class": "x"},
            Outcome("sky-1/gpu-1", DOCKER, {"GPUS": "0", "WORKSPACE": "9", "MORE": "y"}),
        ),
        (
            "b",
            {"worker-class": "xy", "level": "3"},
            Outcome("sky-3/gpu-4", DOCKER, {"GPUS": "0 1", "WORKSPACE": "8"}),
        ),
        ("b", {"level": "3"}, Outcome(refused="nothing is said of w")),
        ("c", {}, Outcome(refused="gpu-8 lacks GPUS or WORKSPACE")),
        ("d", {}, Outcome("sky-1/rack-7", DOCKER)),
        ("e", {}, Outcome(refused="nothing is said of nothing")),
        ("f", {}, Outcome(refused="nothing is said of f")),
        ("keyed", {}, Outcome(refused="nothing is said of an unknown project")),
        ("keyed", {"project": "p"}, Outcome("sky-1/cpu", DOCKER)),
        ("done", {}, Outcome("built-in/succeed", "succeed")),
    ],
)
def test_what_becomes_of_a_name(name: str, run: dict[str, str], becomes: Outcome):
    """One look-up by class, and env only where all is in it that the code wants."""
    assert outcome(hand(TABLES), name, {"worker-class": "w", "level": "1", **run}) == becomes


def test_code_that_gives_all_env():
    """Where nothing is wanted, whatever is written is given."""
    said = hand(TABLES, needs=())
    run = {"worker-class": "w", "level": "1"}
    assert outcome(said, "c", run).env == {"GPUS": "0"}
    assert outcome(said, "a", run).env == {"THREADS": "8"}


@pytest.mark.parametrize("name", RECORDED)
def test_it_is_what_a_real_project_did(tmp_path, name: str):
    """Every recorded task that took part in the choice, by this meaning of its tables."""
    file = translations(tmp_path)
    said = read(Source(str(file), file.read_bytes()))
    parameters, tasks = tasks_of(name)
    classes = parameters["worker-classes"]
    asked = [task for task in tasks if task.requested is not None]
    assert len(asked) > 70
    for task in asked:
        branches = task.requested
        if isinstance(branches, dict):
            branches = branches["by-tasks-for"]
            branches = branches.get(parameters["tasks_for"], branches["default"])
        run = {
            "worker-class": classes.get(task.kind, classes["default"]),
            "level": parameters["level"],
        }
        pool = f"{task.provisioner}/{task.worker_type}"
        assert outcome(said, branches, run) == Outcome(pool, DOCKER, task.env)
