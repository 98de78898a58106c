"""Which tasks wait for which, as plain values."""

from __future__ import annotations

from typing import Any

from taskgraph_workers.graph.waits import waits
from tests.graph.project import PARAMETERS, Project


def task(pool: str, **more: Any) -> dict[str, Any]:
    provisioner, worker_type = pool.split("/")
    definition = {"provisionerId": provisioner, "workerType": worker_type}
    return {"task": definition, "dependencies": {}, **more}


def test_pools_and_edges_are_told():
    """Each task's pool comes by its label, and an edge for each of its dependencies."""
    found = waits({"a": task("p/w"), "b": task("p/v", dependencies={"first": "a", "docker": "a"})})
    assert found.pools == {"a": "p/w", "b": "p/v"}
    assert set(found.edges) == {("b", "a")}


def test_soft_dependencies_count_where_their_task_is():
    """A task waits for its soft dependencies, too, unless they are not in the graph."""
    found = waits({"a": task("p/w"), "b": task("p/w", soft_dependencies=["a", "gone"])})
    assert found.edges == (("b", "a"),)


def test_a_real_graph_is_read(project: Project):
    """What Taskgraph makes of kinds that depend on each other comes out as they say it."""
    project.config()
    project.kind("data", {"one": {}, "two": {"worker-type": "b-cpu"}})
    needs = {"dependencies": {"data": "data-one"}, "soft-dependencies": ["data-two", "data-gone"]}
    project.kind("train", {"it": needs}, **{"kind-dependencies": ["data"]})
    found = waits(project.full(**PARAMETERS).graph)
    assert found.pools == {
        "data-one": "shop-1/b-gpu",
        "data-two": "shop-1/b-cpu",
        "train-it": "shop-1/b-gpu",
    }
    assert sorted(found.edges) == [("train-it", "data-one"), ("train-it", "data-two")]
