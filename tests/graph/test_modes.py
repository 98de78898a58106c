"""The ways in which Taskgraph makes a graph: commands, processes, threads, several at once.

`register()` runs once per process, whatever is loaded after it; verifications may be switched off;
kinds may be loaded elsewhere. Placement has to hold in all of it.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.graph.project import (
    ALIASES,
    DOCKER,
    PARAMETERS,
    REPOSITORY,
    Graph,
    Project,
    env_of,
    pool,
)
from tests.graph.shop import WORKERS_CONFIG, write_shop
from tests.graph.taskcluster import Deployment, deployment

TASKGRAPH = tuple(int(part) for part in version("taskcluster-taskgraph").split(".")[:3])
CONFIG: dict[str, Any] = {
    "workers": {"b-gpu": {"env": {"GPUS": "0"}}},
    "profiles": {
        "here": {},
        "away": {"workers": {"b-gpu": "away/gpu"}},
        "far": {"workers": {"b-gpu": "far/gpu"}},
    },
    "select": {"default": "here"},
}
ACTIONS = """
def register(graph_config):
    import taskgraph_workers
    from taskgraph.actions.registry import register_callback_action

    taskgraph_workers.register(graph_config)
    register_callback_action(
        name="train", title="Train", symbol="tr", description="Train", order=1, context=[],
        schema={"type": "object"},
    )(train)


def train(parameters, graph_config, input, task_group_id, task_id):
    from taskgraph.decision import taskgraph_decision
    from taskgraph.parameters import Parameters

    parameters = Parameters(**{**parameters, "workers": input["profile"]})
    taskgraph_decision({"root": graph_config.root_dir}, parameters=parameters)
"""


def write_project(project: Project, config: Any = CONFIG, **taskgraph: Any) -> Project:
    """Write a project with a task that moves, and one that does not."""
    project.config(config, **{"register": "actions:register", **taskgraph})
    project.write("taskcluster/actions.py", ACTIONS)
    project.write(".taskcluster.yml", "version: 1\ntasks: []\n")
    project.kind("train", {"a": {}, "b": {"worker-type": "b-cpu"}})
    project.commit()
    return project


def decision(project: Project, served: Deployment, *arguments: str, **env: str) -> Any:
    """Run a whole decision task, which creates its tasks."""
    revision = project.git("rev-parse", "HEAD")
    said = {
        "project": "shop",
        "pushlog-id": "0",
        "pushdate": "0",
        "owner": "someone@example.com",
        "level": "1",
        "repository-type": "git",
        "base-repository": REPOSITORY,
        "base-ref": "main",
        "base-rev": revision,
        "head-repository": REPOSITORY,
        "head-ref": "main",
        "head-rev": revision,
        "tasks-for": "github-push",
    }
    options = [f"--{name}={value}" for name, value in said.items()]
    return project.run("decision", *options, *arguments, env={**served.env, **env})


# --- processes and threads ------------------------------------------------------------------


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return write_shop(Project(tmp_path_factory.mktemp("shop")), WORKERS_CONFIG)


@pytest.fixture(scope="module")
def serial(shop: Project) -> Graph:
    return shop.full(profile="away", env={"TASKGRAPH_SERIAL": "1"}).graph


def needs_threads() -> None:
    if TASKGRAPH < (20,):
        pytest.skip("threads came with Taskgraph 20.0.0")
    if TASKGRAPH < (24, 5) and sys.version_info < (3, 13):
        pytest.skip("before Taskgraph 24.5.0 threads need Python 3.13 (os.process_cpu_count)")


def test_processes_make_the_same_graph(shop: Project, serial: Graph):
    """Kinds loaded in processes of their own give the graph of kinds loaded one by one."""
    assert pool(serial["docker-gpu"]) == "away-1/gpu"
    assert shop.full(profile="away").graph == serial


def test_threads_make_the_same_graph(shop: Project, serial: Graph):
    """Kinds loaded in threads give the graph of kinds loaded one by one."""
    needs_threads()
    assert shop.full(profile="away", env={"TASKGRAPH_USE_THREADS": "1"}).graph == serial


def test_without_validation_the_graph_is_the_same(shop: Project, serial: Graph):
    """`--fast` switches validation off, and nothing relied on it."""
    assert shop.full("--fast", profile="away").graph == serial


MODES = ({}, {"TASKGRAPH_SERIAL": "1"}, {"TASKGRAPH_USE_THREADS": "1"})


@pytest.mark.parametrize("mode", MODES, ids=["usual", "serial", "threads"])
def test_a_kind_is_refused_once_and_in_one_go(project: Project, mode: dict[str, str]):
    """All that is wrong with one kind is said together, whichever transform found it."""
    if "TASKGRAPH_USE_THREADS" in mode:
        needs_threads()
    moved = {"implementation": "generic-worker", "provisioner": "p", "worker-type": "w"}
    project.config(
        {
            "profiles": {"bad": {"workers": {"b-gpu": moved}}},
            "require": [{"workers": "b-other", "env": ["GPUS"]}],
        },
        aliases={**ALIASES, "b-loop": DOCKER},
    )
    project.kind("train", {"a": {}, "b": {"worker-type": "b-cpu"}, "c": {"worker-type": "b-other"}})
    choice = "{profile: bad, workers: {b-cpu: b-loop, b-loop: b-cpu}}"
    said = project.full(env={"TASKGRAPH_WORKERS_PROFILE": choice, **mode}).refused()
    assert "workers-config: 3 problems\n" in said
    for each in (
        "task train-a: generic-worker knows no worker field 'docker-image'",
        "task train-b: worker names lead to each other in a loop: b-cpu -> b-loop -> b-cpu",
        "task train-c: GPUS is required on 'b-other' and is not set under profile 'bad'",
    ):
        assert said.count(each) == 1


def test_without_register(project: Project):
    """A kind that names the transform is placed where nothing is registered; no other kind is."""
    project.config({**CONFIG, "select": {"default": "away"}}, register=None)
    project.kind("named", {"a": {}}, transforms=["taskgraph_workers.transforms:transforms"])
    project.kind("other", {"a": {}})
    graph = project.full().graph
    assert pool(graph["named-a"]) == "away/gpu"
    assert env_of(graph["named-a"], "GPUS") == {"GPUS": "0"}
    assert pool(graph["other-a"]) == "shop-1/b-gpu"
    assert env_of(graph["other-a"], "GPUS") == {"GPUS": None}


# --- several graphs in one run --------------------------------------------------------------


@pytest.mark.parametrize("processes", [1, 2])
def test_several_parameters(project: Project, processes: int, tmp_path: Path):
    """Each of several `-p` is placed, also where one process makes all graphs."""
    write_project(project)
    profiles = {"one": "away", "two": None, "three": "far", "four": "away"}
    arguments = []
    for name, profile in profiles.items():
        project.write(f"{name}.yml", {**PARAMETERS, "workers": profile})
        arguments += ["-p", f"{name}.yml"]
    # Taskgraph then writes its logs under the home folder.
    env = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"), str(tmp_path / "home"))
    run = project.run("full", "-J", *arguments, f"-j{processes}", "-o", "{params}.json", env=env)
    assert run.code == 0, run.stderr
    pools = {
        name: pool(json.loads((project.folder / f"{name}.json").read_text())["train-a"])
        for name in profiles
    }
    assert pools == {
        "one": "away/gpu",
        "two": "shop-1/b-gpu",
        "three": "far/gpu",
        "four": "away/gpu",
    }


@pytest.mark.parametrize("processes", [1, 2])
def test_several_parameters_and_a_bad_config(project: Project, processes: int, tmp_path: Path):
    """With several `-p` the problems are printed, for each of them, without a traceback."""
    write_project(project, {**CONFIG, "select": {"default": "awya"}})
    for name in ("one", "two"):
        project.write(f"{name}.yml", PARAMETERS)
    env = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"), str(tmp_path / "home"))
    run = project.run("full", "-p", "one.yml", "-p", "two.yml", f"-j{processes}", env=env)
    assert run.code == 1
    assert run.stdout.count("there is no profile 'awya'\n    hint: did you mean 'away'?") == 2
    assert "Traceback" not in run.stdout + run.stderr


def test_diff(project: Project):
    """`--diff` places what it compares with too, after it has loaded Taskgraph anew."""
    for place in ("old", "new"):
        profiles = {"away": {"workers": {"b-gpu": f"away/{place}"}}}
        write_project(project, {**CONFIG, "profiles": profiles, "select": {"default": "away"}})
    run = project.full("--diff", "HEAD~1")
    assert run.code == 0, run.stderr
    changes = [line for line in run.stdout.splitlines() if line[:1] in "+-" and line[1:2] == " "]
    assert [line.split() for line in changes] == [
        ["-", '"workerType":', '"old"'],
        ["+", '"workerType":', '"new"'],
    ]


def test_diff_with_a_base_that_is_refused(project: Project):
    """What is wrong with the base of a `--diff` is said, and the run fails."""
    bad = {**CONFIG, "require": [{"workers": "b-gpu", "env": ["NOT"]}]}
    write_project(project, bad)
    write_project(project)
    run = project.full("--diff", "HEAD~1")
    assert run.code == 1
    assert "task train-a: NOT is required on 'b-gpu'" in run.stderr


# --- decision tasks and actions -------------------------------------------------------------


def test_a_decision_task_without_a_choice(project: Project):
    """A decision task, whose parameters have no `workers` at all, places by `select.default`."""
    write_project(project, {**CONFIG, "select": {"default": "away"}})
    with deployment(PARAMETERS) as served:
        run = decision(project, served)
    assert run.code == 0, run.stderr
    assert served.pools == {"train-a": "away/gpu", "train-b": "shop-1/b-cpu"}
    assert "workers" not in (project.folder / "artifacts" / "parameters.yml").read_text()


def test_a_decision_task_without_verifications(project: Project):
    """`decision --no-verify` places all the same, and the hook records the variable's choice."""
    hook = {"decision-parameters": "taskgraph_workers.parameters:decision_parameters"}
    write_project(project, **hook)
    with deployment(PARAMETERS) as served:
        variable = {"TASKGRAPH_WORKERS_PROFILE": "{default: far}"}
        run = decision(project, served, "--no-verify", **variable)
    assert run.code == 0, run.stderr
    assert served.pools == {"train-a": "far/gpu", "train-b": "shop-1/b-cpu"}
    recorded = (project.folder / "artifacts" / "parameters.yml").read_text()
    assert "\nworkers:\n  default: far\n" in recorded


@pytest.mark.parametrize("verify", [(), ("--no-verify",)], ids=["verified", "unverified"])
def test_a_decision_task_that_is_refused(project: Project, verify: tuple[str, ...]):
    """A decision task for another level than the profile's ends in time: nothing is created."""
    lab = {**CONFIG["profiles"]["away"], "levels": [3]}
    write_project(project, {**CONFIG, "profiles": {"lab": lab}, "select": {"default": "lab"}})
    with deployment(PARAMETERS) as served:
        said = decision(project, served, *verify).refused()
    assert "profile 'lab' is for level 3, and this is level 1 (chosen by select.default)" in said
    assert served.created == {}


def test_a_hook_of_the_project_calls_ours(project: Project):
    """A project's own decision hook can call the one that we offer."""
    write_project(project, **{"decision-parameters": "hook:parameters"})
    hook = """
        from taskgraph_workers.parameters import decision_parameters

        def parameters(graph_config, parameters):
            decision_parameters(graph_config, parameters)
            parameters["level"] = "3"
    """
    project.write("taskcluster/hook.py", hook)
    project.commit()
    with deployment(PARAMETERS) as served:
        run = decision(project, served, TASKGRAPH_WORKERS_PROFILE="away")
    assert run.code == 0, run.stderr
    assert served.pools == {"train-a": "away/gpu", "train-b": "shop-3/b-cpu"}


def test_an_action(project: Project):
    """An action that makes a decision of its own, in the process it was started in, places."""
    write_project(project)
    with deployment(PARAMETERS) as served:
        said = {"ACTION_CALLBACK": "train", "ACTION_INPUT": '{"profile": "far"}'}
        group = {"ACTION_TASK_GROUP_ID": "decisionQSGmFn1vYuB1QA"}
        run = project.run("action-callback", env={**served.env, **said, **group})
    assert run.code == 0, run.stderr
    assert served.pools == {"train-a": "far/gpu", "train-b": "shop-1/b-cpu"}


def test_a_test_of_an_action(project: Project):
    """`test-action-callback`, which creates nothing, shows the tasks as they would be placed."""
    write_project(project)
    project.write("input.yml", {"profile": "away"})
    run = project.run(
        *("test-action-callback", "-p", "params.yml", "--input", "input.yml", "train"),
        env={"TASK_ID": "decisionQSGmFn1vYuB1QA"},
    )
    assert run.code == 0, run.stderr
    graph = json.loads((project.folder / "artifacts" / "task-graph.json").read_text())
    placed = {task["label"]: task for task in graph.values()}
    assert pool(placed["train-a"]) == "away/gpu"
    assert env_of(placed["train-a"], "GPUS") == {"GPUS": "0"}
