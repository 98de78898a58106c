"""The transforms, called by hand on the tasks of one kind."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from taskgraph.transforms import task as task_transforms
from taskgraph.util.workertypes import get_worker_type, worker_type_implementation

from taskgraph_workers.detect import Detect, prelude
from taskgraph_workers.graph.errors import Refused
from taskgraph_workers.graph.transforms import after_run, before_run, place
from taskgraph_workers.implementations import MARK, preludes_in
from taskgraph_workers.transforms import transforms as public
from tests.graph.inside import Task, graph_config, put_through, transform_config
from tests.graph.project import ALIASES, DOCKER

GENERIC = {**DOCKER, "implementation": "generic-worker"}
NAMES = {
    **ALIASES,
    "gw": GENERIC,
    "gw-windows": {**GENERIC, "os": "windows"},
    "b-quiet": DOCKER,
}
CONFIG: dict[str, Any] = {
    "workers": {
        "b-gpu": {"env": {"GPUS": "0", "WORKSPACE": "12000"}},
        "b-other": {"env": {"GPUS": {"detect": "gpu-indices"}, "DIR": {"detect": "inherited"}}},
        "gw.*": {"env": {"GPUS": {"detect": "gpu-count"}}},
    },
    "profiles": {
        "here": {},
        "away": {"workers": {"b-gpu": {"provisioner": "away", "env": {"WORKSPACE": "8"}}}},
        "laid": {"workers": {"b-gpu": {"worker": {"caches": [{"name": "c"}], "volumes": None}}}},
        "converts": {
            "workers": {
                "b-gpu": {"provisioner": "away", "implementation": "generic-worker", "os": "linux"}
            }
        },
        "misspelled": {"workers": {"b-gpu": {"implementation": "docker-wroker"}}},
        "trimmed": {"workers": {"b-gpu": {"env": {"GPUS": None}}}},
    },
    "select": {"default": "here"},
    "require": [{"workers": "b-other", "env": ["DIR"]}],
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return graph_config(tmp_path_factory.mktemp("project"), CONFIG, NAMES)


def asking(name: Any = "b-gpu", **worker: Any) -> Task:
    return {"label": "train-a", "worker-type": name, "worker": {"max-run-time": 60, **worker}}


def placed(graph: Any, *tasks: Task, workers: Any = None, step: Any = place) -> list[Task]:
    return put_through(step, transform_config(graph, workers=workers), *tasks)


def refused(graph: Any, *tasks: Task, workers: Any = None, step: Any = place) -> str:
    with pytest.raises(Refused) as caught:
        placed(graph, *tasks, workers=workers, step=step)
    return str(caught.value)


def whole(config: Any, tasks: Any) -> Any:
    return place(config, after_run(config, list(before_run(config, tasks))))


# --- env ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {"GPUS": "0", "WORKSPACE": "12000"}),
        ({"env": None}, {"GPUS": "0", "WORKSPACE": "12000"}),
        ({"env": {"GPUS": "1", "MINE": "m"}}, {"GPUS": "1", "WORKSPACE": "12000", "MINE": "m"}),
    ],
)
def test_env(graph: Any, own: Task, expected: dict[str, str]):
    """A task gets what is said of its machine; its own env is stronger."""
    (task,) = placed(graph, asking(**own))
    assert task["worker"]["env"] == expected


def test_a_task_without_worker(graph: Any):
    """A task needs no `worker` to be given env."""
    (task,) = placed(graph, {"label": "a", "worker-type": "b-gpu"})
    assert task["worker"] == {"env": {"GPUS": "0", "WORKSPACE": "12000"}}


def test_overrides_are_stronger_than_a_task(graph: Any):
    """What a run says of a name holds even where the task says otherwise."""
    run = {"profile": "here", "workers": {"b-gpu": {"env": {"GPUS": "2 3", "WORKSPACE": None}}}}
    (task,) = placed(graph, asking(env={"GPUS": "1", "WORKSPACE": "9", "MINE": "m"}), workers=run)
    assert task["worker"]["env"] == {"GPUS": "2 3", "MINE": "m"}


def test_null_takes_a_name_away(graph: Any):
    """A profile's null removes what is said of the machine, and not what the task says."""
    tasks = placed(graph, asking(), asking(env={"GPUS": "1"}), workers="trimmed")
    assert [task["worker"]["env"].get("GPUS") for task in tasks] == [None, "1"]


def test_tasks_that_share_a_worker(graph: Any):
    """Tasks whose kind.yml gives them one `worker` by an anchor are placed apart."""
    shared = {"max-run-time": 60}
    tasks = [{"label": n, "worker-type": n, "worker": shared} for n in ("b-gpu", "b-quiet")]
    first, second = place(transform_config(graph), tasks)
    assert "env" in first["worker"]
    assert second["worker"] is shared
    assert shared == {"max-run-time": 60}


@pytest.mark.parametrize(
    "name", ["b-quiet", "unknown", None, "a/b", {"by-platform": {"x": "b-gpu", "default": "b-cpu"}}]
)
def test_what_nothing_is_said_about(graph: Any, name: Any):
    """A task that nothing is said about, or whose name is yet to come, is handed on as it is."""
    for step in (before_run, after_run, place):
        task = {"label": "a", "worker-type": name}
        (out,) = step(transform_config(graph, workers="away"), [task])
        assert out is task
        assert out == {"label": "a", "worker-type": name}


def test_a_task_without_a_name(graph: Any):
    """A task without a worker type is Taskgraph's to report."""
    assert placed(graph, {"label": "a"}) == [{"label": "a"}]


# --- moves ----------------------------------------------------------------------------------


def test_a_move(graph: Any):
    """A moved task asks for a name of its own, which Taskgraph knows the new pool by."""
    (task,) = placed(graph, asking(), workers="away")
    assert task["worker-type"].startswith("b-gpu_at_")
    assert get_worker_type(graph, task["worker-type"], "1") == ("away", "b-gpu")
    assert worker_type_implementation(graph, task["worker-type"]) == ("docker-worker", "linux")
    assert task["worker"]["env"] == {"GPUS": "0", "WORKSPACE": "8"}


@pytest.mark.parametrize("workers", [None, "away", "laid", "trimmed", "converts"])
def test_twice_is_once(graph: Any, workers: Any):
    """A task that was placed comes out the same when it is placed again, as do both forms."""
    config = transform_config(graph, workers=workers)
    for own in ({}, {"env": {"GPUS": "7"}}):
        once = put_through(place, config, asking(**own))
        assert put_through(place, config, *once) == once
        assert put_through(place, transform_config(graph, workers=workers), *once) == once
        way = put_through(after_run, config, *put_through(before_run, config, *once))
        assert put_through(place, config, *way) == once


def test_before_run_only_what_runs_otherwise(graph: Any):
    """`run` looks the implementation up, so only a task with another one gets its name early."""
    for workers, early in (("away", False), ("converts", True)):
        config = transform_config(graph, workers=workers)
        (task,) = put_through(before_run, config, asking())
        assert (task["worker-type"] != "b-gpu") is early
        (task,) = put_through(after_run, config, task)
        assert task["worker-type"] == "b-gpu"
        assert "env" not in task["worker"]


def test_a_name_that_is_set_between(graph: Any):
    """What counts at the head of `task` is the name that the task asks for there."""
    config = transform_config(graph, workers="away")
    (task,) = put_through(after_run, config, *put_through(before_run, config, asking("b-quiet")))
    task["worker-type"] = "b-gpu"
    (task,) = put_through(place, config, task)
    assert get_worker_type(graph, task["worker-type"], "1") == ("away", "b-gpu")
    assert task["worker"]["env"]["WORKSPACE"] == "8"


def test_what_is_laid_over_worker(graph: Any):
    """A profile's `worker` is laid over the task's, null removes, and tasks share none of it."""
    first, second = placed(graph, asking(volumes=["v"], caches=[]), asking(), workers="laid")
    assert first["worker"]["caches"] == second["worker"]["caches"] == [{"name": "c"}]
    assert "volumes" not in first["worker"]
    first["worker"]["caches"][0]["name"] = "edited"
    assert second["worker"]["caches"] == [{"name": "c"}]
    (third,) = placed(graph, asking(), workers="laid")
    assert third["worker"]["caches"] == [{"name": "c"}]


def test_fields_that_the_target_does_not_know(graph: Any):
    """A field of another implementation is refused, with task, field, profile and the way out."""
    for step in (place, whole):
        said = refused(graph, asking(**{"docker-image": "i"}), workers="converts", step=step)
        assert "workers-config: 1 problem\n" in said
    assert "task train-a: generic-worker knows no worker field 'docker-image'" in said
    assert "profile 'converts' places 'b-gpu' on away/b-gpu" in said
    assert "worker: {docker-image: null, ...}" in said
    assert "config.yml:" in said


def test_an_implementation_that_nobody_builds_for(graph: Any):
    """An implementation without a payload builder is refused, and the nearest one is named."""
    for step in (place, whole):
        said = refused(graph, asking(), workers="misspelled", step=step)
        assert "there is no worker implementation 'docker-wroker' on which to place 'b-gpu'" in said
        assert "hint: did you mean 'docker-worker'?" in said
        assert ".profiles.misspelled.workers.b-gpu.implementation: task train-a" in said


def test_a_command_that_was_built_for_another(graph: Any):
    """A task whose command was built for one implementation is not moved to another one."""
    said = refused(graph, asking(implementation="docker-worker"), workers="converts")
    assert "its command was built for docker-worker, and 'b-gpu' is placed on away/b-gpu" in said


def test_an_implementation_that_a_project_sets_itself(graph: Any):
    """Where only the pool changes, a task of another implementation goes there too, without env."""
    (out,) = placed(graph, asking(implementation="scriptworker-x"), workers="away")
    assert get_worker_type(graph, out["worker-type"], "1") == ("away", "b-gpu")
    assert out["worker"] == {"max-run-time": 60, "implementation": "scriptworker-x"}


# --- detection ------------------------------------------------------------------------------

FOUND = {"GPUS": Detect("gpu-indices"), "DIR": Detect("inherited")}


def test_detection(graph: Any):
    """What the machine finds out is in a prelude before the command, and not in the payload."""
    config = transform_config(graph)
    task = asking("b-other", command=["run-task", "--", "make"], env={"MINE": "m"})
    once = put_through(place, config, task)
    command = once[0]["worker"]["command"]
    assert once[0]["worker"]["env"] == {"MINE": "m"}
    assert command[:4] == ["run-task", "--", "/bin/sh", "-c"]
    assert command[4] == prelude(FOUND) + 'exec "$@"'
    assert command[5:] == [MARK, "make"]
    assert put_through(place, config, *once) == once


def test_detection_is_not_for_what_is_given(graph: Any):
    """A task that says a value itself has none detected, and what is left is."""
    task = asking("b-other", command=["make"], env={"GPUS": "1"})
    (out,) = placed(graph, task)
    assert out["worker"]["env"] == {"GPUS": "1"}
    assert out["worker"]["command"][2] == prelude({"DIR": Detect("inherited")}) + 'exec "$@"'
    (bare,) = placed(graph, asking("b-other", command=["make"], env={"GPUS": "1", "DIR": "/"}))
    assert bare["worker"]["command"] == ["make"]


def test_detection_on_generic_worker(graph: Any):
    """On generic-worker each process that is the task's own gets the prelude."""
    (out,) = placed(graph, asking("gw", command=[["chmod", "+x", "run-task"], ["make"]]))
    assert out["worker"]["command"][0] == ["chmod", "+x", "run-task"]
    assert len(list(preludes_in(out["worker"]["command"][1]))) == 1


@pytest.mark.parametrize(
    ("name", "command", "why"),
    [
        ("gw-windows", ["make"], "detection needs a POSIX shell, and this worker runs windows"),
        ("b-other", None, "the task has no command of its own"),
        ("b-other", "make", "this command is no list of words: 'make'"),
    ],
)
def test_detection_that_can_not_be(graph: Any, name: str, command: Any, why: str):
    """Where no prelude can be put, the task is refused, with the reason and the way out."""
    said = refused(graph, asking(name, command=command))
    assert "task train-a: " in said
    assert "GPUS can't be detected on the machine" in said
    assert why in said
    assert "hint: give the value itself in this kind's env, or in the profile" in said


def before_the_command(**worker: Any) -> Task:
    return {**asking("b-other", **worker), "run": {"using": "run-task"}}


def test_named_before_run(graph: Any, monkeypatch: pytest.MonkeyPatch):
    """A kind may name the transform before `run`: what needs the command waits for `task`."""
    sequence = [place, *task_transforms.transforms._transforms]
    monkeypatch.setattr(task_transforms.transforms, "_transforms", sequence)
    config = transform_config(graph)
    (task,) = put_through(public, config, before_the_command(env={"MINE": "m"}))
    assert task["worker"]["env"] == {"MINE": "m"}
    assert "command" not in task["worker"]
    del task["run"]
    task["worker"]["command"] = ["make"]
    (task,) = put_through(place, config, task)
    assert task["worker"]["command"][-1] == "make"
    assert len(task["worker"]["command"]) == 5


def test_named_before_run_without_register(graph: Any):
    """Where nothing of ours is at the head of `task`, what needs the command is refused."""
    assert place not in task_transforms.transforms._transforms
    assert "can't be detected" in refused(graph, before_the_command(), step=public)


# --- guards ---------------------------------------------------------------------------------


def test_what_is_required(tmp_path: Path):
    """A requirement is held against what a task ends up with, its own env included."""
    config = {
        "workers": {"b-gpu": {"env": {"GPUS": "0"}}},
        "require": [{"workers": "b-.*", "env": ["GPUS", "SIZE"]}],
    }
    graph = graph_config(tmp_path, config)
    (task,) = placed(graph, asking(env={"SIZE": "1"}))
    assert task["worker"]["env"] == {"GPUS": "0", "SIZE": "1"}
    said = refused(graph, asking(), {**asking("b-cpu"), "label": "train-b"})
    assert "train-a: SIZE is required on 'b-gpu'" in said
    assert "train-b: GPUS is required on 'b-cpu'" in said
    assert "train-b: SIZE is required" in said
    assert "train-a: GPUS" not in said


def test_protected(tmp_path: Path):
    """Nothing moves what is protected, neither a name nor a kind; its env stays."""
    config = {
        **CONFIG,
        "select": {"default": "away"},
        "protect": {"workers": ["b-c.*"], "kinds": ["train"]},
        "profiles": {"away": {"workers": {"b-.*": "away/gpu"}}},
    }
    del config["require"]
    graph = graph_config(tmp_path, config, NAMES)
    assert [t["worker-type"] for t in placed(graph, asking(), asking("b-cpu"))] == [
        "b-gpu",
        "b-cpu",
    ]
    other = transform_config(graph, kind="other")
    moved = [task["worker-type"] for task in put_through(place, other, asking(), asking("b-cpu"))]
    assert moved[1] == "b-cpu"
    assert moved[0] != "b-gpu"
    (task,) = placed(graph, asking())
    assert task["worker"]["env"]["GPUS"] == "0"


def test_the_public_name(graph: Any):
    """`taskgraph_workers.transforms:transforms` is the transform at the head of `task`."""
    before = asking()
    assert put_through(public, transform_config(graph), before) == placed(graph, before)
    assert before == asking() == copy.deepcopy(before)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ({"by-level": {"1": "b-gpu", "default": "b-quiet"}}, "b-gpu"),
        ({"by-kind": {"tr.*": {"by-level": {"3": "b-quiet", "default": "b-gpu"}}}}, "b-gpu"),
        ({"by-profile": {"away": "b-quiet", "default": "b-gpu"}}, "b-gpu"),
    ],
)
def test_a_keyed_name_is_picked_by_what_placement_knows(graph: Any, name: Any, asked: str):
    """A name keyed by level, kind, profile and the like is placed as if it were written plain."""
    assert placed(graph, asking(name)) == placed(graph, asking(asked))


def test_a_keyed_name_without_a_branch(graph: Any):
    """It is refused, with the label and what there is."""
    told = refused(graph, asking({"by-level": {"3": "b-gpu"}}))
    assert "task train-a: no branch for level '1', and no default" in told
    assert "there is: 3" in told
