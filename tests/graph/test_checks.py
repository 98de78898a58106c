"""What is looked at once the whole graph is there."""

from __future__ import annotations

import copy
import logging
from pathlib import Path
from typing import Any

import pytest
from taskgraph.graph import Graph
from taskgraph.task import Task
from taskgraph.taskgraph import TaskGraph
from taskgraph.transforms import task as task_transforms

from taskgraph_workers.graph import checks, transforms
from taskgraph_workers.graph.errors import Refused
from tests.graph.inside import graph_config
from tests.graph.project import ALIASES, DOCKER, PARAMETERS, Project

BARE = "taskgraph.loader.transform:loader"
NAMES = {**ALIASES, "misc": DOCKER, "t-.*": DOCKER}
CONFIG: dict[str, Any] = {
    "profiles": {
        "here": {},
        "away": {"levels": [1], "workers": {"b-gpu": "away/gpu", "misc": "away/misc"}},
        "other": {"workers": {"misc": {"implementation": "generic-worker"}}},
        "odd": {"workers": {"b-gpu": {"worker-type": {"by-level": {"3": "x", "default": "y"}}}}},
    },
    "workers": {"misc": {"env": {"TOLD": "1", "GPUS": {"detect": "gpu-indices"}}}},
    "select": {"default": "here"},
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("project")
    graph = graph_config(folder, CONFIG, NAMES)
    project = Project(folder)
    kinds = {
        "usual": {},
        "raw": {"loader": BARE, "transforms": ["tests.graph.inside:put_through"]},
        "bare": {"loader": BARE},
        "task": {"loader": BARE, "transforms": ["taskgraph.transforms.task"]},
        "named": {"loader": BARE, "transforms": ["taskgraph_workers.transforms:transforms"]},
        "short": {"loader": BARE, "transforms": ["taskgraph_workers.transforms"]},
    }
    for kind, said in kinds.items():
        project.kind(kind, {}, **said)
    return graph


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TASK_ID", raising=False)
    monkeypatch.delenv("TASKGRAPH_WORKERS_PROFILE", raising=False)
    sequence = [transforms.place, *task_transforms.transforms._transforms]
    monkeypatch.setattr(task_transforms.transforms, "_transforms", sequence)


def task(kind: str, pool: str, label: str = "", **payload: Any) -> Task:
    provisioner, _, worker_type = pool.partition("/")
    definition = {"provisionerId": provisioner, "workerType": worker_type, "payload": payload}
    return Task(kind, label or f"{kind}-{pool}", {}, definition)


def task_graph(*tasks: Task) -> TaskGraph:
    by_label = {each.label: each for each in tasks}
    return TaskGraph(by_label, Graph(frozenset(by_label), frozenset()))


def said(graph: Any, *tasks: Task, **parameters: Any) -> list[str]:
    params = {**PARAMETERS, **parameters}
    return [str(each) for each in checks.warnings(task_graph(*tasks), graph, params)]


def test_a_kind_that_goes_around(graph: Any):
    """A kind is named with how many of its tasks stay, on what, and where they would have gone."""
    raw = [task("raw", "shop-1/b-gpu", label) for label in ("a", "b")]
    (warning,) = said(graph, *raw, task("raw", "shop-1/b-cpu"), workers="away")
    assert "kind 'raw' does not go through the `run` and `task` transforms" in warning
    assert "2 of its tasks stay on shop-1/b-gpu, which the choice moves to away/gpu" in warning
    assert "hint: name taskgraph_workers.transforms:transforms among its transforms" in warning


@pytest.mark.parametrize(
    ("kind", "pool", "workers"),
    [
        ("raw", "shop-1/b-gpu", None),
        ("raw", "shop-1/b-gpu", "here"),
        ("raw", "shop-1/b-cpu", "away"),
        ("raw", "other/pool", "away"),
        ("usual", "shop-1/b-gpu", "away"),
        ("task", "shop-1/b-gpu", "away"),
        ("named", "shop-1/b-gpu", "away"),
        ("short", "shop-1/b-gpu", "away"),
    ],
)
def test_no_other_kind(graph: Any, kind: str, pool: str, workers: Any):
    """Nothing is said where nothing would move, nor of kinds that are placed, however they are."""
    assert said(graph, task(kind, pool), workers=workers) == []


def test_a_kind_without_transforms(graph: Any):
    """A kind whose own loader brings the transforms is taken for one that goes around."""
    assert len(said(graph, task("bare", "shop-1/b-gpu"), workers="away")) == 1


def test_a_level_that_is_not_the_profile_s(graph: Any, caplog: pytest.LogCaptureFixture):
    """In a local look a profile at another level is a warning, said once for all kinds."""
    tasks = task_graph(task("usual", "a/b"), task("task", "a/b"))
    params = {**PARAMETERS, "level": "3", "workers": "away"}
    with caplog.at_level(logging.WARNING):
        checks.warn(None, tasks, {}, graph, params)
    (record,) = caplog.records
    assert "profile 'away' is for level 1, and this is level 3" in record.getMessage()
    assert "config.yml:" in record.getMessage()


def test_a_choice_that_is_wrong_for_a_kind_that_goes_around(graph: Any):
    """What would refuse a kind, were it placed, is a warning where it is not."""
    (warning,) = said(graph, task("raw", "a/b"), workers="nobody")
    assert "there is no profile 'nobody'" in warning


def test_no_configuration(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Without a configuration nothing is looked at."""
    graph = graph_config(tmp_path, None)
    checks.warn(None, task_graph(task("usual", "a/b")), {}, graph, PARAMETERS)
    assert caplog.records == []


# --- index tasks ----------------------------------------------------------------------------

INDEX: dict[str, Any] = {"command": ["insert-indexes.js"], "env": {"TARGET_TASKID": "x"}}


def morphed(graph: Any, *tasks: Task, **parameters: Any) -> list[dict[str, Any]]:
    made, labels = checks.move_index_tasks(
        task_graph(*tasks), {"a": "b"}, {**PARAMETERS, **parameters}, graph
    )
    assert labels == {"a": "b"}
    return [each.task for each in made.tasks.values()]


def index_task(label: str = "index-task-a", kind: str = "misc") -> Task:
    return task(kind, "shop-1/misc", label, **copy.deepcopy(INDEX))


def test_index_tasks(graph: Any):
    """An index task goes where `misc` goes and is told what is said of it, all but detection."""
    (moved,) = morphed(graph, index_task(), workers="away")
    assert (moved["provisionerId"], moved["workerType"]) == ("away", "misc")
    assert moved["payload"] == {**INDEX, "env": {"TARGET_TASKID": "x", "TOLD": "1"}}
    (there,) = morphed(graph, index_task(), workers="here")
    assert (there["provisionerId"], there["workerType"]) == ("shop-1", "misc")


def test_only_index_tasks(graph: Any):
    """A task of the project's with such a label, or another kind's, is not touched."""
    before = [task("misc", "shop-1/misc", "other"), index_task(kind="mine")]
    assert morphed(graph, *before, workers="away") == [each.task for each in before]
    assert [each.task["provisionerId"] for each in before] == ["shop-1", "shop-1"]


def test_index_tasks_can_not_be_converted(graph: Any):
    """`misc` on another implementation ends the run, with the way out, if there are such tasks."""
    with pytest.raises(Refused, match="index tasks are made for docker-worker") as caught:
        morphed(graph, index_task(), workers="other")
    assert "hint: leave 'misc' where it is: misc: misc" in str(caught.value)
    assert "config.yml:" in str(caught.value)
    assert isinstance(caught.value, SystemExit)
    morphed(graph, task("misc", "shop-1/misc", "other"), workers="other")


def test_without_configuration_index_tasks_stay(tmp_path: Path):
    """Without a configuration an index task is as Taskgraph made it."""
    before = index_task()
    (after,) = morphed(graph_config(tmp_path, None, NAMES), before)
    assert after == index_task().task
