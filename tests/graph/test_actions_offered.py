"""Where the action is offered, to whom, and how it is tried without creating anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from slugid import nice as slugid

from tests.graph.decision import REDIRECTS
from tests.graph.project import PARAMETERS, Project, Run
from tests.queue.server import Taskcluster, taskcluster

NAMES = ["run-on-other-workers", "run-group-on-other-workers"]
DECISION = "decisionQSGmFn1vYuB1QA"
WORKERS_CONFIG: dict[str, Any] = {
    "workers": {"b-gpu": {"env": {"GPUS": "0"}}},
    "profiles": {
        "here": {},
        "away": {"extends": "here", "levels": [1], "workers": {"b-gpu": "away/gpu"}},
    },
    "select": {"default": "here"},
}
MODULE = """
def register(graph_config):
    import taskgraph_workers

    taskgraph_workers.register(graph_config)

    from taskgraph.actions.registry import register_callback_action
    from taskgraph_workers.actions import profiles_schema

    @register_callback_action(
        name="train", title="Train", symbol="T", description="Train", schema=profiles_schema
    )
    def train(parameters, graph_config, input, task_group_id, task_id):
        pass
"""


@pytest.fixture
def shop(project: Project) -> Project:
    project.write(".taskcluster.yml", {"version": 1, "tasks": []})
    project.kind("train", {"a": {}, "b": {"worker-type": "b-cpu"}})
    project.kind("test", {"c": {}})
    project.kind("tool", {"d": {"attributes": {"cached_task": {"type": "tool"}}}})
    project.config(WORKERS_CONFIG)
    return project


def offered(project: Project, **parameters: Any) -> list[dict[str, Any]]:
    """The actions of ours, or of the project's own, in actions.json."""
    project.write("some.yml", {**PARAMETERS, **parameters})
    run = project.run("actions", "-p", "some.yml")
    assert run.code == 0, run.stderr
    actions = json.loads(run.stdout)["actions"]
    return [each for each in actions if each["name"] in (NAMES[0], "train")]


def test_without_profiles(shop: Project):
    """Where there is nothing to choose, there is no action, and none of it can be called."""
    shop.config({"workers": WORKERS_CONFIG["workers"]})
    assert offered(shop) == []
    run = shop.run("test-action-callback", "-p", "params.yml", NAMES[0])
    assert run.code == 1
    assert f"Unknown callback: {NAMES[0]}" in run.stderr


def test_switched_off(shop: Project):
    """A project may do without."""
    shop.config({**WORKERS_CONFIG, "decision": {"action": False}})
    assert offered(shop) == []


def test_permission_levels_and_order(shop: Project):
    """Who may use it is the project's to say."""
    action = {"permission": "workers", "levels": [3], "order": 1}
    shop.config({**WORKERS_CONFIG, "decision": {"action": action}})
    assert offered(shop, level="1") == []
    task, group = offered(shop, level="3")
    assert task["extra"] == group["extra"] == {"actionPerm": "workers"}
    assert task["hookId"].startswith("in-tree-action-3-workers/")
    run = shop.run("actions", "-p", "some.yml")
    assert [each["name"] for each in json.loads(run.stdout)["actions"][:2]] == [NAMES[0]] * 2


def test_where_no_profile_may_be_used(shop: Project):
    """At a level that no profile is meant for there is no action."""
    levels = {"away": {"levels": [1], "workers": {"b-gpu": "away/gpu"}}}
    shop.config({"profiles": levels})
    assert offered(shop, level="3") == []
    assert len(offered(shop, level="1")) == 2


def test_the_actions_of_a_project_are_given_the_profiles(shop: Project):
    """The helper's schema is that of the configuration, in an action of the project's own."""
    shop.write("taskcluster/shop.py", MODULE)
    shop.config(WORKERS_CONFIG, register="shop:register")
    (train,) = (each for each in offered(shop) if each["name"] == "train")
    assert train["schema"] == {
        "type": "string",
        "title": "Profile",
        "description": "Where tasks run. here; away (otherwise as here, only at level 1)",
        "enum": ["here", "away"],
    }


@pytest.fixture
def served(shop: Project) -> Iterator[Taskcluster]:
    """A Taskcluster where a decision task of this project has created its tasks."""
    graph = shop.full().graph
    ids = {label: slugid() for label in graph}
    with taskcluster(redirects=REDIRECTS) as cluster:
        artifacts = {"full-task-graph": graph, "label-to-taskid": ids}
        for name, content in artifacts.items():
            key = (DECISION, f"public/{name}.json")
            cluster.artifacts[key] = json.dumps(content).encode()
        for label, task_id in ids.items():
            cluster.queue.tasks[task_id] = graph[label]["task"]
        yield cluster


def act(project: Project, cluster: Taskcluster, said: Any, label: str = "", **more: Any) -> Run:
    """Try the action with `taskgraph test-action-callback`."""
    project.write("input.yml", said)
    project.write("some.yml", {**PARAMETERS, **more})
    options = ["-p", "some.yml", "--input", "input.yml", "--task-group-id", DECISION]
    if label:
        ids = json.loads(cluster.artifacts[DECISION, "public/label-to-taskid.json"])
        options += ["--task-id", ids.get(label, label)]
    name = NAMES[0] if label else NAMES[1]
    return project.run(
        "test-action-callback", *options, name, env={"TASKCLUSTER_ROOT_URL": cluster.url}
    )


def made(run: Run) -> dict[str, str]:
    """The pool of each task that would have been created."""
    assert run.code == 0, run.stderr
    found, text = {}, run.stdout.strip()
    while text:
        (_, task), end = json.JSONDecoder().raw_decode(text)
        found[task["metadata"]["name"]] = f"{task['provisionerId']}/{task['workerType']}"
        text = text[end:].lstrip()
    return found


def test_a_try_on_a_task(shop: Project, served: Taskcluster):
    """The configuration that counts is that of the graph at hand, loaded anew for a callback."""
    assert made(act(shop, served, {"profile": "away"}, "train-a")) == {"train-a": "away/gpu"}
    assert served.created == []
    written = yaml.safe_load((shop.folder / "artifacts" / "parameters.yml").read_text())
    assert written["workers"] == "away"


def test_a_try_on_a_group(shop: Project, served: Taskcluster):
    """Every task that would be another one but cached ones, or those of the kinds named."""
    pools = made(act(shop, served, {"profile": "away"}))
    assert pools == {"train-a": "away/gpu", "test-c": "away/gpu"}
    pools = made(act(shop, served, {"profile": "away", "kinds": ["tool"]}))
    assert pools == {"tool-d": "away/gpu"}
    pools = made(act(shop, served, {"profile": "away", "kinds": ["test"]}))
    assert pools == {"test-c": "away/gpu"}


def test_back_again(shop: Project, served: Taskcluster):
    """From a choice that the run was started with, back to the default."""
    run = act(shop, served, {"profile": "here"}, "train-a", workers="away")
    assert made(run) == {"train-a": "shop-1/b-gpu"}


def test_back_from_where_an_earlier_action_had_it(shop: Project, served: Taskcluster):
    """A task that was created elsewhere may go where the decision task would have had it."""
    for task in served.queue.tasks.values():
        task.update(provisionerId="away", workerType="gpu")
    run = act(shop, served, {"profile": "here"}, "train-a")
    assert made(run) == {"train-a": "shop-1/b-gpu"}


@pytest.mark.parametrize(
    ("said", "label", "told"),
    [
        ({"profile": "awya"}, "", "there is no profile 'awya'\n    hint: did you mean 'away'?"),
        ({"profile": "away", "kinds": ["tran"]}, "", "there is no kind 'tran'"),
        ({"profile": "away", "kind": ["train"]}, "", "did you mean 'kinds'?"),
        ({"profile": "away"}, "train-b", "task 'train-b' is the same with this choice"),
        ({"profile": "here"}, "", "no task of this group would run elsewhere"),
    ],
)
def test_a_wrong_request(shop: Project, served: Taskcluster, said: Any, label: str, told: str):
    """What is wrong is told, without a traceback, and nothing would be created."""
    run = act(shop, served, said, label)
    assert told in run.refused()
    assert run.stdout == ""


def test_a_level_that_the_profile_refuses(shop: Project, served: Taskcluster):
    """A profile is for its levels, whoever asks; here an error also outside of a task."""
    run = act(shop, served, {"profile": "away"}, "train-a", level="3")
    told = run.refused()
    assert "taskcluster/config.yml:" in told
    assert (
        "profile 'away' is for level 1, and this is level 3 (chosen by parameter workers)" in told
    )


def test_a_level_that_the_action_is_not_for(shop: Project, served: Taskcluster):
    """Whoever calls the callback past actions.json is refused, too."""
    shop.config({**WORKERS_CONFIG, "decision": {"action": {"levels": [3]}}})
    assert "this action is not for level 1" in act(shop, served, {"profile": "here"}).refused()
