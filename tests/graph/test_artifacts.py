"""When a plan is written, and against what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from taskgraph_workers.graph import artifacts, generate
from taskgraph_workers.graph.generate import Graph, Wanted
from taskgraph_workers.graph.parameters import without_choice
from taskgraph_workers.graph.run import config_of
from tests.graph.inside import graph_config
from tests.graph.project import PARAMETERS

DOTTED = "training_config.taskcluster.worker-classes"
PROFILES = ("usual", "branch", "said")
CONFIG: dict[str, Any] = {
    "profiles": {name: {"workers": {"b-gpu": f"{name}/pool"}} for name in PROFILES},
    "select": {
        "default": {"by-level": {"3": "branch", "default": "usual"}},
        "parameter": DOTTED,
    },
}


def named(value: Any) -> dict[str, Any]:
    """Parameters with a choice where `select.parameter` says."""
    return {"training_config": {"taskcluster": {"worker-classes": value, "more": 1}}}


@pytest.fixture
def decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A decision task that has written its graph: `(graph_config, graphs made since)`."""
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / "full-task-graph.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TASK_ID", "decisionQSGmFn1vYuB1QA")
    monkeypatch.delenv("TASKGRAPH_WORKERS_PROFILE", raising=False)
    made: list[Wanted] = []

    def generate_from(wanted: Wanted, parameters: Any) -> Graph:
        made.append(wanted)
        return Graph({}, (), parameters, {"train": "usual"}, "shop-level-1")

    monkeypatch.setattr(generate, "generate_from", generate_from)
    return graph_config(tmp_path, CONFIG), made


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ({}, False),
        ({"workers": "usual"}, False),
        ({"workers": {"train": "usual"}}, False),
        ({"workers": "said"}, True),
        ({"workers": {"train": "said"}}, True),
        (named("usual"), False),
        (named("said"), True),
        ({"level": "3"}, False),
        ({"level": "3", "workers": "usual"}, True),
        ({"workers": {"workers": {"b-gpu": {"env": {"A": "1"}}}}}, True),
    ],
)
def test_only_another_choice_is_worth_a_plan(decision, said: dict[str, Any], written: bool):
    """A graph is only made again where somebody chose other than the default would have."""
    graph, made = decision
    kept = object()
    assert artifacts.write_plan(kept, {}, {**PARAMETERS, **said}, graph) == (kept, {})
    assert bool(made) == written
    assert Path("artifacts/workers-plan.json").exists() == written
    assert all(wanted.unsaid and wanted.root == "taskcluster" for wanted in made)


def test_a_variable_of_the_hook_is_no_default(decision, monkeypatch):
    """The variable that became the parameter does not choose for the other side, too."""
    graph, made = decision
    monkeypatch.setenv("TASKGRAPH_WORKERS_PROFILE", "said")
    artifacts.write_plan(None, {}, {**PARAMETERS, "workers": "said"}, graph)
    assert len(made) == 1
    assert json.loads(Path("artifacts/workers-plan.json").read_text())["version"] == 1


def test_what_json_can_t_say_is_no_difference(decision, monkeypatch):
    """A tuple is a list in the artifact that the graph under the default is compared with."""
    graph, _ = decision
    task = {"kind": "train", "attributes": {"pair": (1, 2)}, "task": {"workerType": "b-gpu"}}
    Path("artifacts/full-task-graph.json").write_text(json.dumps({"a": task}))
    default = Graph({"a": task}, (), {}, {"train": "usual"}, "shop-level-1")
    monkeypatch.setattr(generate, "generate_from", lambda *_: default)
    artifacts.write_plan(None, {}, {**PARAMETERS, "workers": "said"}, graph)
    plan = json.loads(Path("artifacts/workers-plan.json").read_text())
    assert (plan["unchanged"], plan["moves"]) == (1, [])
    assert (plan["from"], plan["to"]) == ("usual", "said")


@pytest.mark.parametrize("what", ["no task", "no graph"])
def test_only_a_decision_task_writes(decision, monkeypatch, what: str):
    """A local look, and a task that has written no graph, write no plan."""
    graph, made = decision
    if what == "no task":
        monkeypatch.delenv("TASK_ID")
    else:
        Path("artifacts/full-task-graph.json").unlink()
    artifacts.write_plan(None, {}, {**PARAMETERS, "workers": "said"}, graph)
    assert made == []


def test_what_goes_wrong_is_a_warning(decision, caplog):
    """A plan that can't be made ends nothing."""
    graph, _ = decision
    Path("artifacts/full-task-graph.json").write_text("{")
    artifacts.write_plan(None, {}, {**PARAMETERS, "workers": "said"}, graph)
    assert "workers-config: the plan can't be written: " in caplog.text


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ({"workers": "said"}, {}),
        (named("said"), {"training_config": {"taskcluster": {"more": 1}}}),
        ({DOTTED: "said"}, {}),
        ({"training_config": {"taskcluster.worker-classes": 1}}, {"training_config": {}}),
        ({"training_config": None}, {"training_config": None}),
        ({"training_config": {}}, {"training_config": {}}),
    ],
)
def test_what_chooses_is_taken_away(decision, said: dict[str, Any], left: dict[str, Any]):
    """Both parameters that may choose are gone, and nothing else; what was given is not changed."""
    config = config_of(decision[0])
    given = json.dumps(said)
    assert without_choice({**said, "level": "1"}, config) == {**left, "level": "1"}
    assert json.dumps(said) == given
    assert without_choice({"workers": "p", **left}, None) == left
