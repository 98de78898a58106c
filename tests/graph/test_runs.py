"""Whole runs of `taskgraph full`: a task of every shape, under no profile and under one that moves.

Each test reads the same three graphs: without the plugin, with it, and with the profile `away`.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest

from tests.graph.project import Graph, Project, Run, env_of, pool
from tests.graph.shop import WORKERS_CONFIG, write_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the project's runs by name."""

    @cache
    def run(name: str) -> Run:
        project = Project(tmp_path_factory.mktemp(name))
        if name == "plain":
            return write_shop(project, None, register="shop:register_plain").full()
        write_shop(project, WORKERS_CONFIG)
        if name == "morphed":
            return project.run(
                *("morphed", "-J", "-p", "params.yml"), env={"TASKGRAPH_WORKERS_PROFILE": "away"}
            )
        return project.full(profile="away" if name == "away" else None)

    return run


@pytest.fixture(scope="module")
def plain(shop) -> Graph:
    graph: Graph = shop("plain").graph
    return graph


@pytest.fixture(scope="module")
def here(shop) -> Graph:
    graph: Graph = shop("here").graph
    return graph


@pytest.fixture(scope="module")
def away(shop) -> Graph:
    graph: Graph = shop("away").graph
    return graph


GPU = {"GPUS": "0", "WORKSPACE": "12000"}
ENV = {
    "docker-gpu": GPU,
    "named-gpu": GPU,
    "docker-keyed": GPU,
    "docker-new": GPU,
    "docker-own": {"GPUS": "0", "WORKSPACE": "9", "MINE": "1"},
    "docker-odd": {"ODD": "yes"},
    "task-device": GPU,
    "routes-many": GPU,
    "compare-set-later": GPU,
    "generic-linux": {"MACHINE": "metal"},
    "generic-macosx": {"MACHINE": "metal"},
    "generic-windows": {"MACHINE": "mine"},
    "generic-phone": {"DEVICE": "p2"},
}
POOLS = {
    "docker-gpu": "away-1/gpu",
    "docker-keyed": "away-1/gpu",
    "docker-new": "away-1/gpu",
    "docker-own": "away-1/gpu",
    "docker-odd": "away/odd",
    "docker-converted": "away/device",
    "named-gpu": "away-1/gpu",
    "named-converted": "away/device",
    "task-device": "away-1/gpu",
    "task-signed": "scriptworker-k8s/away-t",
    "routes-many": "away-1/gpu",
    "compare-device": "away/device",
    "compare-set-later": "away-1/gpu",
    "own-implementation-same": "scriptworker-k8s/away-t",
    "generic-linux": "away/fast-linux",
    "generic-macosx": "away/fast-macosx",
    "generic-windows": "away/fast-windows",
    "generic-phone": "away-bitbar/t-bitbar-p2",
}


@pytest.mark.parametrize("label", ENV)
def test_env_is_given(label: str, here: Graph, away: Graph):
    """A task has its machine's env, under any profile; what it says itself is stronger."""
    assert env_of(here[label], *ENV[label]) == ENV[label]
    assert env_of(away[label], *ENV[label]) == ENV[label]


@pytest.mark.parametrize("label", ENV)
def test_env_is_all_that_a_task_is_given(label: str, plain: Graph, here: Graph):
    """Where nothing moves, a task is as without the plugin, but for the env that is said of it."""
    expected = copy.deepcopy(plain[label])
    expected["task"]["payload"]["env"].update(ENV[label])
    assert here[label] == expected


def test_nothing_else_changes(plain: Graph, here: Graph, away: Graph):
    """A task of which the configuration says nothing is the same with the plugin as without."""
    assert here.keys() == away.keys() == plain.keys()
    # What this one says itself is stronger, and all that there is.
    given = ENV.keys() - {"generic-windows"} | {"docker-detect", "named-detect"}
    assert {label for label in plain if here[label] != plain[label]} == given
    changed = given | POOLS.keys()
    assert {label for label in plain if away[label] != plain[label]} == changed


@pytest.mark.parametrize("label", POOLS)
def test_tasks_move(label: str, plain: Graph, away: Graph):
    """A profile moves each task to its pool, and says nothing of the alias it did that by."""
    assert pool(away[label]) == POOLS[label] != pool(plain[label])
    assert "_at_" not in str(away[label])


def test_what_taskgraph_builds_in_stays(plain: Graph, away: Graph):
    """`succeed` and `always-optimized` never move and never get env, whatever is said of them."""
    for label in ("task-done", "docker-optimized"):
        assert away[label] == plain[label]
    assert pool(away["task-done"]) == "built-in/succeed"


def test_a_service_gets_no_env(here: Graph, away: Graph):
    """An implementation without env is moved, with its own payload, and never given env."""
    for label in ("task-signed", "own-implementation-same"):
        assert pool(here[label]) == "scriptworker-k8s/shop-t-signing"
        assert away[label]["task"]["payload"] == {"products": ["a"]}


def test_scopes_name_the_new_pool(away: Graph):
    """Scopes that Taskgraph makes of the pool are made of the one that the task moves to."""
    assert away["generic-linux"]["task"]["scopes"] == [
        "generic-worker:os-group:away/fast-linux/docker"
    ]
    assert away["generic-windows"]["task"]["scopes"] == [
        "generic-worker:run-as-administrator:away/fast-windows"
    ]
    assert away["task-signed"]["task"]["scopes"] == ["shop:on:scriptworker-k8s/away-t"]


def test_another_implementation(plain: Graph, away: Graph):
    """A conversion reaches `run`, which builds the command, and the tags that workers go by."""
    for label in ("docker-converted", "compare-device"):
        assert isinstance(plain[label]["task"]["payload"]["command"][0], str)
        task = away[label]["task"]
        assert isinstance(task["payload"]["command"][0], list)
        assert task["tags"]["worker-implementation"] == "generic-worker"
        assert "image" not in task["payload"]
        assert env_of(away[label], "GPUS") == {"GPUS": "0 1"}
    assert env_of(away["docker-converted"], "MINE") == {"MINE": "1"}


def test_detection(plain: Graph, here: Graph):
    """What a machine finds out is before the program that run-task starts, and nowhere else."""
    before, after = (graph["docker-detect"]["task"]["payload"] for graph in (plain, here))
    at = before["command"].index("--") + 1
    assert after["command"][:at] == before["command"][:at]
    shell, flag, prelude, mark, *program = after["command"][at:]
    assert (shell, flag, mark) == ("/bin/sh", "-c", "taskgraph-workers")
    assert program == before["command"][at:]
    assert prelude.count("tw_put GPUS ") == prelude.count("tw_inherited DIR ") == 1
    assert {**after, "command": before["command"]} == before


@pytest.mark.parametrize("name", ["gpu", "converted", "detect"])
def test_both_forms_together(name: str, here: Graph, away: Graph):
    """A kind that names the transform, and is reached by itself too, is placed just once."""
    for graph in (here, away):
        named, usual = graph[f"named-{name}"], graph[f"docker-{name}"]
        assert pool(named) == pool(usual)
        assert named["task"]["payload"] == usual["task"]["payload"]
        assert named["attributes"] == {**usual["attributes"], "kind": "named"}


def test_an_implementation_of_its_own(plain: Graph, here: Graph):
    """A task whose project says that a service runs it gets no env, whatever its alias says."""
    label = "own-implementation-other"
    assert pool(here[label]) == "shop-1/b-mixed"
    assert here[label] == plain[label]


def test_tasks_that_go_around_are_named(shop, away: Graph):
    """Raw tasks stay, and a warning names their kind where the choice would have moved them."""
    assert pool(away["raw-moved"]) == "shop-1/b-gpu"
    said = [line for line in shop("away").stderr.splitlines() if "WARNING" in line]
    assert len(said) == 1
    assert "kind 'raw'" in said[0]
    assert "1 of its tasks stay on shop-1/b-gpu, which the choice moves to away-1/gpu" in said[0]
    assert "WARNING" not in shop("here").stderr


def test_index_tasks_move(shop):
    """The index tasks that a morph adds follow the alias `misc`, which no transform sees.

    They are told what is said of it, but nothing is detected before their command.
    """
    index = [task for task in shop("morphed").graph.values() if task["label"][:10] == "index-task"]
    assert [pool(task) for task in index] == ["away/misc"]
    payload = index[0]["task"]["payload"]
    assert set(payload["env"]) == {"TARGET_TASKID", "INDEX_RANK", "TOLD"}
    assert payload["command"][0] == "insert-indexes.js"
