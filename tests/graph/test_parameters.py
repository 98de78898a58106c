"""The choice of a run: where it comes from, and how it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from taskgraph import parameters as taskgraph_parameters
from taskgraph.parameters import Parameters

from taskgraph_workers.errors import WorkersError
from taskgraph_workers.graph.errors import Refused
from taskgraph_workers.graph.parameters import extend_parameters
from taskgraph_workers.graph.run import KindRun
from taskgraph_workers.parameters import decision_parameters
from tests.graph.inside import graph_config
from tests.graph.project import PARAMETERS, Graph, Project, pool

VARIABLE = "TASKGRAPH_WORKERS_PROFILE"
PROFILES = ("variable", "said", "named", "usual", "branch")
CONFIG: dict[str, Any] = {
    "profiles": {name: {"workers": {"b-gpu": f"{name}/pool"}} for name in PROFILES},
    "select": {
        "default": {"by-level": {"3": "branch", "default": "usual"}},
        "parameter": "training_config.taskcluster.worker-classes",
    },
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return graph_config(tmp_path_factory.mktemp("project"), CONFIG)


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("TASK_ID", raising=False)


def named(value: Any) -> dict[str, Any]:
    """Parameters with a choice where `select.parameter` says."""
    return {"training_config": {"taskcluster": {"worker-classes": value}}}


def choice(graph: Any, kind: str = "train", **parameters: Any) -> str | None:
    run = KindRun.of(graph, {**PARAMETERS, **parameters}, kind)
    assert run is not None
    return run.choice.profile


def problems(graph: Any, **parameters: Any) -> str:
    with pytest.raises(WorkersError) as caught:
        choice(graph, **parameters)
    return str(caught.value)


# --- the sources, strongest first -----------------------------------------------------------


@pytest.mark.parametrize("left_out", range(4))
def test_the_first_source_that_speaks_wins(graph, monkeypatch, left_out: int):
    """The variable, the parameter `workers`, the one that the config names, the default."""
    parameters: dict[str, Any] = {}
    if left_out < 1:
        monkeypatch.setenv(VARIABLE, "variable")
    if left_out < 2:
        parameters["workers"] = "said"
    if left_out < 3:
        parameters.update(named("named"))
    assert choice(graph, **parameters) == ("variable", "said", "named", "usual")[left_out]


def test_a_keyed_default(graph):
    """`select.default` may differ by context."""
    assert choice(graph, level="3") == "branch"
    assert choice(graph, level=3) == "branch"
    assert choice(graph, level="1") == "usual"


def test_a_keyed_default_without_a_branch_here(tmp_path):
    """It refuses a run that asks it, and not one whose choice a stronger source has made."""
    select = {"default": {"by-level": {"3": "branch"}}}
    graph = graph_config(tmp_path, {**CONFIG, "select": select})
    assert "select.default.by-level: no branch for level '1'" in problems(graph, level="1")
    assert choice(graph, level="1", workers="said") == "said"
    assert choice(graph, level="1", workers={"train": "said"}) == "said"
    overrides = {"workers": {"b-gpu": "away/gpu"}}
    assert "no branch for level '1'" in problems(graph, level="1", workers=overrides)


@pytest.mark.parametrize(
    ("by", "key"),
    [("level", "1"), ("project", "shop"), ("tasks-for", "github-push"), ("kind", "train")],
)
def test_the_context(tmp_path: Path, by: str, key: str):
    """What values may differ by is what Taskgraph says of the run, and of the kind."""
    keyed = {f"by-{by}": {key: "said", "default": "usual"}}
    env = {f"by-{by}": {key: {"A": "1"}, "default": {}}}
    profiles = {name: {"workers": {"b-gpu": "{trust-domain}-x/{level}"}} for name in PROFILES}
    said = {"profiles": profiles, "select": {"default": keyed}, "workers": {"b-gpu": {"env": env}}}
    run = KindRun.of(graph_config(tmp_path, said), PARAMETERS, "train")
    assert run is not None
    assert run.choice.profile == "said"
    assert run.place("b-gpu").pool == "shop-x/1"
    assert run.place("b-gpu").env["A"].value == "1"
    other = {"level": "2", "project": "other", "tasks_for": "cron"}
    run = KindRun.of(graph_config(tmp_path, said), {**PARAMETERS, **other}, "train")
    assert run is not None
    assert (run.choice.profile == "said") is (by == "kind")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("variable", "variable"),
        ("  said \n", "said"),
        ("{train: said, default: named}", "said"),
        ("{default: named}", "named"),
        ('{"profile": {"train": "named"}}', "named"),
        ("{other: said}", "usual"),
        ("", "usual"),
        ("   ", "usual"),
    ],
)
def test_the_variable(tmp_path, monkeypatch, text: str, expected: str):
    """The variable holds a profile, or YAML in braces; nothing but space is nothing."""
    graph = graph_config(tmp_path, CONFIG)
    Project(tmp_path).kind("other", {})
    monkeypatch.setenv(VARIABLE, text)
    assert choice(graph) == expected


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (named("said"), "said"),
        ({"training_config.taskcluster.worker-classes": "said"}, "said"),
        ({"training_config": {"taskcluster.worker-classes": "said"}}, "said"),
        ({"training_config": {"taskcluster": {}}}, "usual"),
        ({"training_config": {"taskcluster": None}}, "usual"),
        ({"training_config": "said"}, "usual"),
        (named(None), "usual"),
        (named({"train": "said"}), "said"),
        (named({"default": "said"}), "said"),
    ],
)
def test_a_dotted_path(graph, parameters: dict[str, Any], expected: str):
    """`select.parameter` is a path into the parameters, whose keys may hold dots themselves."""
    assert choice(graph, **parameters) == expected


def test_overrides_of_a_stronger_source(graph, monkeypatch):
    """A source that picks no profile for a kind still adds its overrides to what a weaker picks."""
    monkeypatch.setenv(VARIABLE, "{workers: {b-cpu: b-other}}")
    run = KindRun.of(graph, {**PARAMETERS, "workers": "said"}, "train")
    assert run is not None
    assert run.choice.profile == "said"
    assert run.place("b-cpu").chain == ("b-cpu", "b-other")
    assert run.place("b-gpu").pool == "said/pool"


# --- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("sadi", "there is no profile 'sadi'\n    hint: did you mean 'said'?"),
        ({"train": "sadi"}, "train: there is no profile 'sadi'\n    hint: did you mean 'said'?"),
        ({"trian": "said"}, "trian: there is no kind 'trian'\n    hint: did you mean 'train'?"),
        ({"train:said": None}, "train:said: there is no kind 'train:said'\n    hint: put a space "),
        ({"profile:said": None}, "profile:said: there is no kind 'profile:said'\n    hint: put a "),
        ({"profile": "said", "workers:x": None}, "workers:x: unknown key\n    hint: put a space"),
        ({"profile": "said", "wrokers": {}}, "wrokers: unknown key\n    hint: did you mean"),
        ({"workers": {"b-cpu": "b-cup"}}, "workers.b-cpu: there is no worker name 'b-cup'"),
        ({"workers": {"b-cpu": {"env": {"A": 1}}}}, "workers.b-cpu.env.A: must be a string"),
        (7, "must be a profile, or a mapping"),
    ],
)
def test_a_wrong_choice(graph, monkeypatch, raw: Any, said: str):
    """A wrong choice is told as one, with its source, from wherever it came."""
    assert f"parameter workers: {said}" in problems(graph, workers=raw)
    dotted = "parameter training_config.taskcluster.worker-classes"
    assert f"{dotted}: {said}" in problems(graph, **named(raw))
    if raw != 7:
        text = yaml.safe_dump(raw, default_flow_style=True).strip() if raw != "sadi" else raw
        monkeypatch.setenv(VARIABLE, text)
        assert f"{VARIABLE}: {said}" in problems(graph)


def test_a_variable_that_is_no_yaml(graph, monkeypatch):
    """What is no YAML is told as that, with the place in it."""
    monkeypatch.setenv(VARIABLE, "{train: [}")
    assert f"{VARIABLE} is no YAML at column 10: {{train: [}}" in problems(graph)
    with pytest.raises(Refused, match="is no YAML at column 10"):
        decision_parameters(None, {})


def test_the_variable_inside_a_task(graph, monkeypatch):
    """Inside a task the variable is refused, unless the parameter has recorded just that."""
    monkeypatch.setenv("TASK_ID", "decisionQSGmFn1vYuB1QA")
    assert choice(graph, workers="said") == "said"
    monkeypatch.setenv(VARIABLE, "variable")
    said = problems(graph)
    assert f"{VARIABLE} is set inside a task, and parameters.yml does not record it" in said
    assert "taskgraph_workers.parameters:decision_parameters" in said
    assert "is set inside a task" in problems(graph, workers="said")
    assert choice(graph, workers="variable") == "variable"


def test_the_hook(graph, monkeypatch):
    """The decision hook turns the variable into the parameter, and leaves a parameter alone."""
    parameters: dict[str, Any] = {"workers": "said"}
    decision_parameters(graph, parameters)
    assert parameters == {"workers": "said"}
    monkeypatch.setenv(VARIABLE, "{train: variable}")
    decision_parameters(graph, parameters)
    assert parameters == {"workers": {"train": "variable"}}


def test_a_level_that_is_not_the_profile_s(tmp_path, monkeypatch):
    """Inside a task a profile is refused at a level that is not one of its own."""
    config = {"profiles": {"lab": {"levels": [1]}, "sub": {"extends": "lab"}}}
    graph = graph_config(tmp_path, config)
    assert choice(graph, workers="sub", level="3") == "sub"
    monkeypatch.setenv("TASK_ID", "decisionQSGmFn1vYuB1QA")
    assert choice(graph, workers="sub", level="1") == "sub"
    said = problems(graph, workers="sub", level="3")
    assert "profile 'sub' is for level 1, and this is level 3 (chosen by parameter workers)" in said
    assert "config.yml:" in said


# --- the parameter --------------------------------------------------------------------------


@pytest.fixture
def _extended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taskgraph's parameters, with ours, for one test."""
    monkeypatch.setattr(taskgraph_parameters, "base_schema", taskgraph_parameters.base_schema)
    if hasattr(taskgraph_parameters, "_parameter_extensions"):
        monkeypatch.setattr(taskgraph_parameters, "_parameter_extensions", [])
    extend_parameters()


@pytest.mark.usefixtures("_extended")
@pytest.mark.parametrize("strict", [True, False])
def test_the_parameter_is_optional(strict: bool):
    """The parameter may be absent, a profile, or a mapping; a strict check knows it."""
    for said in ({}, {"workers": None}, {"workers": "said"}, {"workers": {"default": "said"}}):
        Parameters(strict=strict, **{**PARAMETERS, **said}).check()


@pytest.mark.usefixtures("_extended")
def test_the_parameter_has_a_type():
    """What is neither a profile nor a mapping is refused by Taskgraph's own check."""
    with pytest.raises(Exception, match="workers"):
        Parameters(strict=True, **{**PARAMETERS, "workers": 7}).check()


@pytest.mark.usefixtures("_extended")
def test_the_parameter_is_added_once():
    """Adding it twice, or where the project has one of its name, changes nothing."""
    before = taskgraph_parameters.base_schema, len(extensions())
    extend_parameters()
    assert (taskgraph_parameters.base_schema, len(extensions())) == before


def extensions() -> list[Any]:
    return getattr(taskgraph_parameters, "_parameter_extensions", [])


def test_without_it_a_strict_check_refuses(monkeypatch: pytest.MonkeyPatch):
    """The parameter is one that Taskgraph would not know."""
    assert "workers" not in str(taskgraph_parameters.base_schema)
    with pytest.raises(Exception, match="workers"):
        Parameters(strict=True, **{**PARAMETERS, "workers": "said"}).check()


# --- whole runs -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("whole"))
    project.config({**CONFIG, "select": {**CONFIG["select"], "default": {"score": "usual"}}})
    for kind in ("train", "score"):
        project.kind(kind, {"a": {}})
    return project


def test_a_choice_by_kind(project: Project):
    """One run can place each kind by a profile of its own; a kind that nobody speaks of stays."""
    graph: Graph = project.full(workers={"train": "said"}).graph
    assert {label: pool(task) for label, task in graph.items()} == {
        "train-a": "said/pool",
        "score-a": "usual/pool",
    }
    graph = project.full(profile="{profile: named, workers: {b-gpu: over/pool}}").graph
    assert {pool(task) for task in graph.values()} == {"over/pool"}


def test_a_wrong_choice_ends_the_run(project: Project):
    """A wrong choice ends a run once, although every kind has it."""
    message = project.full(profile="sadi").refused()
    assert message.count("there is no profile 'sadi'") == 1


def test_the_variable_ends_a_task(project: Project):
    """Inside a task the variable ends the run, also where no verification is made."""
    message = project.full(profile="said", env={"TASK_ID": "decisionQSGmFn1vYuB1QA"}).refused()
    assert "is set inside a task" in message


def test_a_name_that_the_project_uses(tmp_path: Path):
    """A project with a parameter of this name keeps it."""
    project = Project(tmp_path)
    project.config(CONFIG, register="own:register")
    module = """
        from typing import Optional, Union

        def register(graph_config):
            import taskgraph_workers
            from taskgraph import parameters

            if isinstance(parameters.base_schema, type):
                from taskgraph.util.schema import Schema

                schema = Schema.from_dict({"workers": Union[str, dict]}, name="Own")
            else:
                schema = {"workers": str}
            parameters.extend_parameters_schema(schema)
            taskgraph_workers.register(graph_config)
    """
    project.write("taskcluster/own.py", module)
    project.kind("train", {"a": {}})
    assert pool(project.full(workers="said").graph["train-a"]) == "said/pool"
