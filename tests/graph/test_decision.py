"""The decision task of this project, from .taskcluster.yml to each task that a Queue is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.graph.decision import REDIRECTS, Clone, Worker, pools, queue, render, training
from tests.queue.server import taskcluster
from tests.schemas import faults

PLAN = ("workers-plan.html", "workers-plan.json")


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    with taskcluster(queue=queue(), redirects=REDIRECTS) as served:
        yield Worker(Clone.make(tmp_path / "src"), served)


def env(worker: Worker, name: str) -> dict[str, str]:
    found: dict[str, str] = worker.taskcluster.tasks[name]["payload"]["env"]
    return found


def written(worker: Worker) -> set[str]:
    return {path.name for path in worker.artifacts.iterdir()}


def artifact(worker: Worker, name: str) -> Any:
    return yaml.safe_load((worker.artifacts / name).read_text())


def test_what_taskcluster_asks_for_is_a_task(worker: Worker):
    """Rendered for a push, a pull request, cron and both actions, it is a task a Queue takes."""
    clone = worker.clone
    action = {
        **{"name": "a", "title": "A", "description": "d", "cb_name": "a", "symbol": "a"},
        **{"taskGroupId": "decisionQSGmFn1vYuB1QA", "action_perm": "generic"},
    }
    asked = {"action": action, "input": {"profile": "onprem"}, "taskId": None}
    hook = clone.hook()
    hook["repository"]["base_url"] = hook["repository"]["url"]
    hook["push"]["base_branch"] = "main"
    rendered = {
        "github-push": render("github-push", event=clone.push()),
        "github-pull-request": render("github-pull-request", event=clone.pull_request()),
        "cron": render("cron", **clone.cron()),
        "action": render("action", **hook, **asked),
        "pr-action": render("pr-action", **hook, **asked),
    }
    for tasks_for, tasks in rendered.items():
        (task,) = tasks
        assert faults(tasks_for, {k: v for k, v in task.items() if k != "taskId"}) == []
        assert task["extra"]["tasks_for"] == tasks_for
        assert ("action" in tasks_for) == ("taskId" not in task)
    assert {name: tasks[0]["scopes"] for name, tasks in rendered.items()} == {
        "github-push": ["assume:repo:github.com/example/taskgraph-workers:branch:main"],
        "github-pull-request": ["assume:repo:github.com/example/taskgraph-workers:pull-request"],
        "cron": ["assume:repo:github.com/example/taskgraph-workers:cron:nightly"],
        "action": ["assume:repo:github.com/example/taskgraph-workers:action:generic"],
        "pr-action": ["assume:repo:github.com/example/taskgraph-workers:pr-action:generic"],
    }


def test_what_asks_for_no_task(worker: Worker):
    """Other branches, other events of a pull request and other events altogether start nothing."""
    clone = worker.clone
    assert render("github-push", event=clone.push("refs/heads/mine")) == []
    assert render("github-pull-request", event=clone.pull_request("closed")) == []
    assert render("github-release", event={"action": "published"}) == []


def test_a_push_creates_what_is_for_pushes(worker: Worker):
    """At level 3, under the default profile, without a plan: nobody chose anything else."""
    (task,) = render("github-push", event=worker.clone.push())
    run = worker.run(task)
    assert run.code == 0, run.stderr
    assert {kind.split("-")[0] for kind in pools(worker)} == {"check", "test", "docker"}
    assert {pool for pool in pools(worker).values() if "b-linux" in pool} == {
        "training-3/b-linux-large"
    }
    assert env(worker, "check-lint")["THREADS"] == "32"
    assert written(worker).isdisjoint(PLAN)
    assert (worker.clone.folder.parent / "bin" / "pip3.told").read_text().split()[-1] == "."


def test_a_branch_may_be_called_anything(worker: Worker):
    """A pull request, at level 1; what git allows in a name is no shell's to read."""
    branch = "it's-$(touch${IFS}pwned);`id`&&x"
    (task,) = render("github-pull-request", event=worker.clone.pull_request(branch=branch))
    run = worker.run(task)
    assert run.code == 0, run.stderr
    assert pools(worker)["check-lint"] == "training-1/b-linux-large"
    assert artifact(worker, "parameters.yml")["head_ref"] == branch
    assert not (worker.clone.folder / "pwned").exists()


def test_a_training_under_the_default(worker: Worker):
    """Each task of the pipeline is created, where the default profile has it."""
    run = worker.run(training(worker.clone))
    assert run.code == 0, run.stderr
    found = pools(worker)
    assert found["train-teacher-1"] == "training-3/b-linux-v100-gpu-4-1tb"
    assert found["score-1"] == "training-3/b-linux-v100-gpu"
    assert found["publish-en-fr"] == "scriptworker-k8s/training-3-publish"
    assert env(worker, "train-teacher-1")["WORKSPACE"] == "12000"
    assert written(worker).isdisjoint(PLAN)
    assert "workers" not in artifact(worker, "parameters.yml")


def test_a_training_elsewhere(worker: Worker):
    """A profile that a hook is triggered with, without a commit, decides where all tasks go, is
    recorded, and is told against the default among the artifacts.
    """
    run = worker.run(training(worker.clone, "onprem", level="1"))
    assert run.code == 0, run.stderr
    found = pools(worker)
    assert found["train-teacher-1"] == "training-onprem/snakepit-xlarge"
    assert found["train-backward-fr-en"] == "training-onprem/snakepit"
    assert found["score-1"] == "training-onprem/desktop"
    assert found["docker-image-train"] == "training-1/images"
    assert env(worker, "train-backward-fr-en")["WORKSPACE"] == "8000"
    teacher = worker.taskcluster.tasks["train-teacher-1"]["payload"]
    assert "WORKSPACE" not in teacher["env"]
    assert teacher["maxRunTime"] == 1728000
    assert artifact(worker, "parameters.yml")["workers"] == "onprem"
    page = (worker.artifacts / "workers-plan.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "training-onprem/snakepit-xlarge" in page
    assert created_where_planned(worker)


def created_where_planned(worker: Worker) -> bool:
    """Whether the plan says of just the tasks that went elsewhere where they went."""
    plan = json.loads((worker.artifacts / "workers-plan.json").read_text())
    assert (plan["version"], plan["from"], plan["to"]) == (1, "gcp-spot", "onprem")
    found = pools(worker)
    told = {m["label"]: m["to"]["pool"] for m in plan["moves"] if m["label"] in found}
    assert told == {name: pool for name, pool in found.items() if "onprem" in pool}
    assert len(plan["moves"]) + plan["unchanged"] == len(artifact(worker, "full-task-graph.json"))
    return (plan["added"], plan["removed"]) == ([], [])


def test_only_the_teachers_elsewhere(worker: Worker):
    """A hook may be triggered with any shape of a choice; verification is not needed for it."""
    task = training(worker.clone, {"default": "gcp-spot", "train-teacher": "gcp-standard"})
    task["payload"]["command"][5] += " --no-verify"
    run = worker.run(task)
    assert run.code == 0, run.stderr
    plan = artifact(worker, "workers-plan.json")
    assert {move["label"] for move in plan["moves"]} == {"train-teacher-1", "train-teacher-2"}
    assert plan["to"]["train-teacher"] == "gcp-standard"
    assert pools(worker)["train-teacher-2"] == "training-3/b-linux-v100-gpu-4-1tb-standard"


def test_a_profile_for_another_level_creates_nothing(worker: Worker):
    """What a profile is not meant for ends the decision before any task is there."""
    run = worker.run(training(worker.clone, "onprem", level="3"))
    assert run.code != 0
    assert "profile 'onprem' is for level 1, and this is level 3" in run.stderr
    assert worker.taskcluster.created == []


def test_a_choice_that_nothing_records_is_refused(worker: Worker):
    """Without the decision hook the variable ends the run: parameters.yml would not say it."""
    config = worker.clone.folder / "taskcluster" / "config.yml"
    lines = config.read_text().splitlines(keepends=True)
    config.write_text("".join(line for line in lines if "decision-parameters" not in line))
    run = worker.run(training(worker.clone, "gcp-standard"))
    assert run.code != 0
    assert "does not record it" in run.stderr
    assert worker.taskcluster.created == []


def test_a_pool_takes_a_scope(worker: Worker):
    """With the scopes that the plan names, and no others, the moved tasks can be created; without
    that of a pool, its tasks are not.
    """
    assert worker.run(training(worker.clone, "onprem", level="1")).code == 0
    new = artifact(worker, "workers-plan.json")["new_scopes"]
    worker.taskcluster.scopes = (*OLD_SCOPES, *new)
    assert worker.run(training(worker.clone, "onprem", level="1")).code == 0
    worker.taskcluster.scopes = (*OLD_SCOPES, *(each for each in new if "desktop" not in each))
    run = worker.run(training(worker.clone, "onprem", level="1"))
    assert run.code != 0
    assert "queue:create-task:low:training-onprem/desktop" in run.stderr


# Those that a deployment gives to trainings in the cloud.
OLD_SCOPES = (
    *("queue:create-task:project:none", "queue:scheduler-id:training-level-1", "queue:route:*"),
    *("queue:create-task:low:training-1/*", "queue:create-task:low:training-hardware/*"),
    *("queue:create-task:low:scriptworker-k8s/*", "docker-worker:*", "project:training:publish"),
    *("generic-worker:*",),
)


def test_the_plan_may_be_switched_off(worker: Worker):
    """`decision: {plan: false}` leaves it out."""
    config = worker.clone.folder / "taskcluster" / "config.yml"
    config.write_text(f"{config.read_text()}\n    decision: {{plan: false}}\n")
    run = worker.run(training(worker.clone, "gcp-standard"))
    assert run.code == 0, run.stderr
    assert written(worker).isdisjoint(PLAN)


def test_a_plan_that_fails_ends_nothing(worker: Worker):
    """Where the plan can't be made or written, the tasks are created all the same."""
    root = worker.clone.folder / "taskcluster"
    kind = root / "kinds" / "export" / "kind.yml"
    named = "transforms:\n    - training_taskgraph.failing:transforms\n"
    kind.write_text(kind.read_text().replace("transforms:\n", named, 1))
    (root / "training_taskgraph" / "failing.py").write_text(FAILING)
    run = worker.run(training(worker.clone, "gcp-standard"))
    assert run.code == 0, run.stderr
    assert "the plan can't be written: only with a choice" in run.stderr
    assert pools(worker)["train-teacher-1"].endswith("-standard")
    assert written(worker).isdisjoint(PLAN)


FAILING = """
def transforms(config, tasks):
    if config.params.get("workers") is None:
        raise Exception("only with a choice")
    yield from tasks
"""
