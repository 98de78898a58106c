"""What a project's `register()` changes in its configuration holds for every graph of a process."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from taskgraph_workers.graph import actions, registered
from taskgraph_workers.graph.registered import as_registered, remember
from tests.graph.project import Project, pool
from tests.graph.test_generate import run

EDITING = """\
import taskgraph_workers


def register(graph_config):
    taskgraph_workers.register(graph_config)
    aliases = {"b-cpu": {**graph_config["workers"]["aliases"]["b-gpu"], "provisioner": "edited"}}
    graph_config["workers"]["aliases"] = {**aliases, "b-big": aliases["b-cpu"]}
"""
CONFIG: dict[str, Any] = {
    "profiles": {"cloud": {"workers": {}}, "lab": {"workers": {"b-cpu": "lab/big"}}},
    "select": {"default": "cloud"},
}


@pytest.fixture
def editing(project: Project) -> Project:
    """Return a project that replaces its aliases in its `register()`."""
    project.config(CONFIG, register="shop_taskgraph:register")
    project.write("taskcluster/shop_taskgraph.py", EDITING)
    project.kind("train", {"a": {"worker-type": "b-cpu"}, "b": {"worker-type": "b-big"}})
    project.commit()
    return project


def test_each_graph_of_a_process_has_what_register_changed(editing: Project):
    """The second and third graph are those that `taskgraph full` makes of the same choice."""
    graphs = run(
        """
        made = [
            generate(Wanted("taskcluster", "params.yml", choice=name)).tasks
            for name in ("cloud", "lab", "cloud")
        ]
        print(json.dumps(made))
        """,
        cwd=editing.folder,
    )
    assert graphs == [editing.full(profile=name).graph for name in ("cloud", "lab", "cloud")]
    places = [[pool(graph[label]) for label in ("train-a", "train-b")] for graph in graphs]
    assert places == [
        ["edited/b-cpu", "edited/b-big"],
        ["lab/big", "edited/b-big"],
        ["edited/b-cpu", "edited/b-big"],
    ]


class GraphConfig:
    """As much of one as is looked at."""

    def __init__(self, root_dir: str, **config: Any) -> None:
        self.root_dir = root_dir
        self._config = config


@pytest.fixture(autouse=True)
def _nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin with a process of its own, as it were."""
    monkeypatch.setattr(registered, "_registered", {})


def test_generated_aliases_stay_behind():
    """What moved tasks of one graph ask for is no alias of the next one's."""
    aliases = {"b-cpu": {"os": "linux"}, "b-cpu_at_0123456789ab": {"os": "linux"}}
    first = GraphConfig("/shop", workers={"aliases": aliases})
    remember(first)
    second = GraphConfig("/shop", workers={"aliases": {}}, gone=1)
    as_registered(second)
    assert second._config == {"workers": {"aliases": {"b-cpu": {"os": "linux"}}}}
    assert list(first._config["workers"]["aliases"]) == list(aliases)


def test_the_next_graph_can_t_change_the_first():
    """The two share nothing that may be edited in place."""
    first = GraphConfig("/shop", workers={"aliases": {"b-cpu": {"os": "linux"}}})
    remember(first)
    before = copy.deepcopy(first._config)
    second = GraphConfig("/shop")
    as_registered(second)
    second._config["workers"]["aliases"]["b-cpu"]["os"] = "macosx"
    assert first._config == before


def test_another_project_is_left_alone():
    """A configuration of another root, or of a root nobody registered, stays as it is."""
    remember(GraphConfig("/shop", mine=1))
    other = GraphConfig("/lab", mine=2)
    as_registered(other)
    assert other._config == {"mine": 2}


def test_an_action_has_what_register_changed(editing: Project, monkeypatch: pytest.MonkeyPatch):
    """The configuration that Taskgraph hands a callback was never registered; ours is."""
    from taskgraph.config import load_graph_config

    seen: list[Any] = []
    monkeypatch.setattr(actions, "_create", lambda order, config, *ids: seen.append(config))
    monkeypatch.chdir(editing.folder)
    first, second = (load_graph_config("taskcluster") for _ in range(2))
    first["workers"]["aliases"]["b-new"] = dict(first["workers"]["aliases"]["b-cpu"])
    remember(first)
    parameters = {"level": "1", "project": "shop", "tasks_for": "action"}
    actions.run_on_other_workers(parameters, second, {"profile": "lab"}, "group", None)
    assert "b-new" in seen[0]["workers"]["aliases"]
