"""What each task asks for, seen without making the graph."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.graph.project import DOCKER, Project, docker, pool
from tests.graph.support import EXAMPLE, ROOT, full_graph

PROGRAM = """
import json, sys
from taskgraph_workers.graph.generate import Wanted
from taskgraph_workers.graph.recorder import record

root, parameters, choice, label = json.loads(sys.argv[1])
seen = record(Wanted(root, parameters, choice=choice), label)
asked = {
    each.label: {
        "kind": each.kind, "name": each.name, "env": dict(each.env),
        "before": None if each.before_run is None else sorted(each.before_run),
    }
    for each in seen.asked.values()
}
json.dump({
    "asked": asked,
    "pools": seen.pools,
    "failed": seen.failed,
    "refused": [str(each) for each in seen.refused],
    "aliases": sorted(seen.config.aliases),
}, sys.stdout)
"""


def recorded(
    root: Path, parameters: Path | None = None, choice: Any = None, label: str | None = None
) -> dict[str, Any]:
    """What the recorder sees of a project, in a process of its own."""
    file = None if parameters is None else str(parameters)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([str(root), file, choice, label])],
        cwd=ROOT if root == EXAMPLE else root.parent,
        env={"PYTHONPATH": str(ROOT), "TASKCLUSTER_ROOT_URL": "https://tc.example.com"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def of_project(project: Project, **more: Any) -> dict[str, Any]:
    project.commit()
    return recorded(project.root, project.folder / "params.yml", **more)


@pytest.mark.parametrize("file", ["push.yml", "training-mixed.yml"])
def test_the_tasks_are_those_of_a_run(file: str):
    """Each task of the example is seen, and ends in the pool where a run puts it."""
    parameters = EXAMPLE / "test" / "params" / file
    graph = full_graph(EXAMPLE, parameters)
    seen = recorded(EXAMPLE, parameters)
    assert seen["failed"] == {}
    assert {label: where for label, (_, where) in seen["pools"].items()} == {
        label: pool(task) for label, task in graph.items()
    }
    assert seen["asked"].keys() == graph.keys()


def test_own_env_is_without_what_a_worker_gives(project: Project):
    """A task's own env is that of its kind, also where a kind names our transforms itself."""
    project.config({"workers": {"b-gpu": {"env": {"GPUS": "0"}}}, "profiles": {"lab": {}}})
    own = {"worker": docker(env={"SEED": "1"})}
    project.kind("plain", {"one": own})
    project.kind("named", {"one": own}, transforms=["taskgraph_workers.transforms"])
    seen = of_project(project)["asked"]
    for label in ("plain-one", "named-one"):
        assert seen[label]["name"] == "b-gpu"
        assert seen[label]["env"]["SEED"] == "1"
        assert "GPUS" not in seen[label]["env"]
        assert seen[label]["before"] == ["docker-image", "env", "max-run-time"]


@pytest.mark.parametrize("move", [{}, {"worker-type": "big"}])
def test_own_env_of_a_task_that_comes_by_twice(project: Project, move: dict[str, str]):
    """What was put on a task between `run` and `task` is not taken for its own at `task`."""
    project.config({"profiles": {"lab": {"workers": {"b-gpu": {"env": {"GPUS": "0"}, **move}}}}})
    names = [
        "taskgraph.transforms.run",
        "taskgraph_workers.transforms",
        "taskgraph.transforms.task",
    ]
    loader = "taskgraph.loader.transform:loader"
    run = {"using": "run-task", "command": "true", "checkout": False, "cwd": "/tmp"}
    project.kind("train", {"one": {"run": run}}, loader=loader, transforms=names)
    seen = of_project(project, choice="lab")
    assert seen["failed"] == {}
    assert "GPUS" not in seen["asked"]["train-one"]["env"]


def test_a_task_that_leads_nowhere_stops_no_other(project: Project):
    """It is given a stand-in, so its kind, and those that need it, are seen to the end."""
    project.config({"profiles": {"lab": {}}})
    project.kind("train", {"one": {"worker-type": "b-nobody"}, "two": {}})
    project.kind("eval", {"one": {}}, **{"kind-dependencies": ["train"]})
    seen = of_project(project)
    assert seen["failed"] == {}
    assert set(seen["pools"]) == {"train-one", "train-two", "eval-one"}
    assert seen["pools"]["train-one"] == ["train", "nowhere/nowhere"]
    assert seen["asked"]["train-one"]["name"] == "b-nobody"
    assert seen["aliases"] == ["b-cpu", "b-gpu", "b-other"]


def test_a_name_of_another_profile_stands_in_for_itself(project: Project):
    """Where another profile places a name, a task is seen there."""
    lab = {"b-some": {**DOCKER, "provisioner": "shop-lab"}}
    project.config(
        {"profiles": {"bare": {}, "lab": {"workers": lab}}, "select": {"default": "bare"}}
    )
    project.kind("train", {"one": {"worker-type": "b-some"}})
    assert of_project(project)["pools"] == {"train-one": ["train", "shop-lab/b-some"]}


def test_fields_that_the_target_does_not_know_stop_nothing(project: Project):
    """A swap that a run refuses is seen to its end; what was there before is kept."""
    project.config(
        {"profiles": {"lab": {"workers": {"b-gpu": {"implementation": "generic-worker"}}}}}
    )
    project.kind("train", {"one": {}})
    seen = of_project(project, choice="lab")
    assert seen["failed"] == {}
    assert seen["asked"]["train-one"]["before"] == ["docker-image", "max-run-time"]


def test_kinds_that_can_not_be_loaded(project: Project):
    """One that fails, and one that depends on a kind that there is not, are told by name."""
    project.config({"profiles": {"lab": {}}})
    project.kind("bad", {"one": {"run": {"using": "no-such-thing"}}})
    project.kind("lost", {"one": {}}, **{"kind-dependencies": ["no-kind"]})
    project.kind("good", {"one": {}}, **{"kind-dependencies": ["bad"]})
    seen = of_project(project)
    assert seen["failed"].keys() == {"bad", "lost"}
    assert "no-such-thing" in seen["failed"]["bad"]
    assert seen["failed"]["lost"] == "it depends on kind 'no-kind', which there is not"
    assert set(seen["pools"]) == {"good-one", "lost-one"}


def test_a_wrong_choice_is_kept(project: Project):
    """A choice that a run refuses is told once for each kind, and the kinds are seen."""
    project.config({"profiles": {"lab": {}}})
    project.kind("train", {"one": {}})
    seen = of_project(project, choice="labb")
    assert len(seen["refused"]) == 1
    assert "there is no profile 'labb'" in seen["refused"][0]
    assert set(seen["pools"]) == {"train-one"}


def test_no_more_than_one_task_takes(project: Project):
    """With a label, kinds after the one with that task are left alone."""
    project.config({"profiles": {"lab": {}}})
    project.kind("a", {"one": {}})
    project.kind("b", {"one": {}}, **{"kind-dependencies": ["a"]})
    assert set(of_project(project, label="a-one")["pools"]) == {"a-one"}
