"""What `register()` does to Taskgraph, and how a run ends that it refuses."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from taskgraph import morph, parameters
from taskgraph.transforms import run, task
from taskgraph.util.verify import verifications

import taskgraph_workers
from taskgraph_workers.graph import checks, transforms
from taskgraph_workers.graph.errors import Refused
from tests.graph.inside import graph_config
from tests.graph.project import Project, docker

CONFIG = {"workers": {"b-gpu": {"env": {"GPUS": "0"}}}}


@pytest.fixture
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test register in this process, and no other test see it."""
    for module in (run, task):
        own = list(module.transforms._transforms)
        monkeypatch.setattr(module.transforms, "_transforms", own)
    monkeypatch.setattr(morph, "registered_morphs", list(morph.registered_morphs))
    for name, held in copy.copy(verifications._verifications).items():
        monkeypatch.setitem(verifications._verifications, name, list(held))
    monkeypatch.setattr(parameters, "base_schema", parameters.base_schema)
    if hasattr(parameters, "_parameter_extensions"):
        monkeypatch.setattr(parameters, "_parameter_extensions", [])


def counts() -> tuple[int, ...]:
    checked = sum(map(len, verifications._verifications.values()))
    sequences = (run.transforms._transforms, task.transforms._transforms, morph.registered_morphs)
    return (*map(len, sequences), checked)


@pytest.mark.usefixtures("_as_it_was")
def test_where_it_stands(tmp_path: Path):
    """Ours are first and last in `run`, first in `task`, and after Taskgraph's index morph."""
    taskgraph_workers.register(graph_config(tmp_path, CONFIG))
    assert run.transforms._transforms[0] is transforms.before_run
    assert run.transforms._transforms[-1] is transforms.after_run
    assert task.transforms._transforms[0] is transforms.place
    morphs = morph.registered_morphs
    assert morphs.index(checks.move_index_tasks) > morphs.index(morph.add_index_tasks)


@pytest.mark.usefixtures("_as_it_was")
def test_again_is_harmless(tmp_path: Path):
    """Calling it again, with the same configuration or another one, adds nothing."""
    one = graph_config(tmp_path / "one", CONFIG)
    taskgraph_workers.register(one)
    once = counts()
    taskgraph_workers.register(one)
    taskgraph_workers.register(graph_config(tmp_path / "two", None))
    assert counts() == once


@pytest.mark.usefixtures("_as_it_was")
def test_the_configuration_is_not_touched(tmp_path: Path):
    """What it is given is as before: Taskgraph may build the graph from another object."""
    graph = graph_config(tmp_path, CONFIG)
    before = copy.deepcopy(graph._config)
    taskgraph_workers.register(graph)
    assert graph._config == before


@pytest.mark.usefixtures("_as_it_was")
@pytest.mark.parametrize("module", [run, task])
def test_a_taskgraph_that_is_built_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any
):
    """A Taskgraph without the list that we insert into is refused, and not half changed."""
    monkeypatch.setattr(module.transforms, "_transforms", ())
    before = counts()
    with pytest.raises(Refused, match="in a way that taskgraph-workers does not know"):
        taskgraph_workers.register(graph_config(tmp_path, CONFIG))
    assert counts() == before


@pytest.mark.usefixtures("_as_it_was")
@pytest.mark.parametrize("said", ["[]", "false", "0", '""'])
def test_what_is_nothing_but_no_mapping(tmp_path: Path, said: str):
    """Only a `workers-config` that is empty says nothing; a list or a `false` is a mistake."""
    with pytest.raises(Refused, match="workers-config: must be a mapping, not"):
        taskgraph_workers.register(graph_config(tmp_path, f"workers-config: {said}\n"))


@pytest.mark.usefixtures("_as_it_was")
@pytest.mark.parametrize(
    ("said", "told"),
    [("worker-config: {}\n", 1), ("", 0), ("worker-configuration: {}\n", 0)],
)
def test_our_key_is_misspelled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, said: str, told: int
):
    """Something like our key alone changes nothing, and a warning says so; no key is silent."""
    taskgraph_workers.register(graph_config(tmp_path, said))
    assert [each.levelname for each in caplog.records] == ["WARNING"] * told
    assert ("'worker-config' is no key that is read" in caplog.text) == bool(told)
    assert ("write it as: workers-config" in caplog.text) == bool(told)


# --- nothing said, nothing changed ----------------------------------------------------------

SILENT = {
    "absent": "",
    "null": "workers-config:\n",
    "empty": "workers-config: {}\n",
    "of others": """
        workers-config:
            workers: {b-other: {env: {GPUS: "0"}}, gw: {resources: {gpus: 1}}}
            profiles: {away: {workers: {b-other: away/gpu}}, own: {workers: {b-gpu: b-gpu}}}
            select: {default: own}
            protect: {workers: [b-gpu]}
    """,
}


def write_small(project: Project, workers_config: str, **config: Any) -> Project:
    aliases = {
        **dict.fromkeys(("b-cpu", "b-gpu", "b-other"), docker_alias()),
        "gw": {**docker_alias(), "implementation": "generic-worker"},
    }
    project.config(workers_config, aliases, **config)
    project.kind("one", {"a": {"attributes": {"x": 1}}, "b": {"worker": docker(env={"A": "1"})}})
    project.kind(
        "two",
        {"a": {"worker-type": "gw", "worker": {"max-run-time": 60, "os-groups": ["g"]}}},
        **{"kind-dependencies": ["one"]},
    )
    return project


def docker_alias() -> dict[str, str]:
    return {
        "provisioner": "{trust-domain}-{level}",
        "implementation": "docker-worker",
        "os": "linux",
        "worker-type": "{alias}",
    }


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a run prints without the plugin."""
    project = Project(tmp_path_factory.mktemp("without"))
    run = write_small(project, "", register=None).full()
    assert run.graph
    return run.stdout


@pytest.mark.parametrize("what", SILENT)
def test_nothing_said_changes_nothing(project: Project, without: str, what: str):
    """Where nothing is said of its tasks, a graph is the same, byte for byte."""
    run = write_small(project, SILENT[what]).full()
    assert run.graph
    assert run.stdout == without


# --- faults ---------------------------------------------------------------------------------

FAULTY = """
workers-config:
    workers:
        b-gpu: {env: {GPUS: 0}}
    profiles:
        away: {workers: {b-gpu: b-cup}}
    select: {defualt: away}
    protect: {kinds: [trian]}
"""
FAULTS = [
    "3:23: workers-config.workers.b-gpu.env.GPUS: must be a string",
    "5:26: workers-config.profiles.away.workers.b-gpu: there is no worker name 'b-cup'",
    "6:14: workers-config.select.defualt: unknown key",
    "7:23: workers-config.protect.kinds[0]: there is no kind 'trian'",
]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("faulty"))
    path = project.config("")
    path.write_text(path.read_text() + FAULTY.lstrip("\n"))
    project.kind("train", {"a": {}})
    project.write(".taskcluster.yml", "version: 1\ntasks: []\n")
    return project


COMMANDS = {
    "full": ("full", "-J", "-p", "params.yml"),
    "actions": ("actions", "-p", "params.yml"),
    "test-action-callback": ("test-action-callback", "-p", "params.yml", "retrigger"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_fault_at_once(faulty: Project, command: str):
    """All faults are shown once, each with its place, and the command fails without a traceback."""
    said = faulty.run(*COMMANDS[command]).refused()
    text = (faulty.root / "config.yml").read_text()
    first = text[: text.index("workers-config:")].count("\n")
    assert "hint: did you mean 'b-cpu'?" in said
    for fault in FAULTS:
        line, _, rest = fault.partition(":")
        assert said.count(f"config.yml:{int(line) + first}:{rest}") == 1, said


def test_a_file_that_is_included(project: Project):
    """A fault in an included file is told there."""
    project.config({"include": ["lab.yml"]})
    project.write("taskcluster/lab.yml", "profiles:\n    lab:\n        extends: gcp\n")
    project.kind("train", {"a": {}})
    said = project.full().refused()
    assert "lab.yml:3:9: profiles.lab.extends: there is no profile 'gcp'" in said


def test_a_register_of_the_project(project: Project):
    """A project's own register calls ours, and both do what they are for."""
    project.config(CONFIG, register="own:register")
    module = """
        def register(graph_config):
            import taskgraph_workers
            from taskgraph.transforms import task

            taskgraph_workers.register(graph_config)
            task.transforms._transforms.insert(0, mine)

        def mine(config, tasks):
            for task in tasks:
                task["description"] = "Mine"
                yield task
    """
    project.write("taskcluster/own.py", module)
    project.kind("train", {"a": {}})
    (made,) = project.full().graph.values()
    assert made["description"] == "Mine"
    assert made["task"]["payload"]["env"]["GPUS"] == "0"
