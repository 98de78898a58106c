"""Placement against what a real training pipeline made of 344 tasks by hand-written code.

tests/data/translations/README.md says where the facts come from.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from taskgraph_workers.config import read_selection
from taskgraph_workers.config.load import load
from taskgraph_workers.keyed import pick
from taskgraph_workers.model import Config, Context, Keyed, Placement
from taskgraph_workers.resolve import choose, resolve, task_env

DATA = Path(__file__).parent / "data" / "translations"
CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "translations"

RECORDED = {"placements-ci": 191, "placements-training": 153}

#: What the kinds ask for that take no part in the choice: aliases, or what Taskgraph builds in.
ASKED_BY_THEMSELVES = {
    "all-pipeline": "succeed",
    "all-pr-pipeline": "succeed",
    "docker-image": "images",
    "fetch": "images",
    "upload-artifacts": "upload-artifacts",
    "upload-db": "upload-artifacts",
    "upload-experiment-config": "upload-data",
    "upload-final-eval": "upload-artifacts",
    "upload-final-eval-lang": "upload-artifacts",
    "upload-task-graph": "upload-artifacts",
}


class Task(NamedTuple):
    """One row of a file of placements."""

    label: str
    kind: str
    requested: Any
    alias: str | None
    provisioner: str
    worker_type: str
    gpus: str | None
    workspace: str | None

    @property
    def env(self) -> dict[str, str]:
        env = {"GPUS": self.gpus, "WORKSPACE": self.workspace}
        return {name: value for name, value in env.items() if value is not None}

    @property
    def outcome(self) -> tuple[str, str, dict[str, str]]:
        alias = self.alias or ASKED_BY_THEMSELVES[self.kind]
        return alias, f"{self.provisioner}/{self.worker_type}", self.env


def tasks_of(name: str) -> tuple[dict[str, Any], list[Task]]:
    """The parameters of a file of placements, and its tasks."""
    data = json.loads((DATA / f"{name}.json").read_text())
    return data["parameters"], [Task(*row) for row in data["tasks"]]


def place(config: Config, asked: Any, kind: str, parameters: dict[str, Any]) -> Placement:
    """Place a name through the core, as a run with these parameters would.

    Some kinds ask for one name or the other, by `tasks-for`; others, for one of their own.
    """
    context = Context(
        level=parameters["level"],
        project=parameters["project"],
        tasks_for=parameters["tasks_for"],
        kind=kind,
        trust_domain="translations",
    )
    if asked is None:
        asked = ASKED_BY_THEMSELVES[kind]
    elif isinstance(asked, dict):
        asked, _ = pick(Keyed("tasks-for", asked["by-tasks-for"]), context, ())
    source = f"parameter {config.select.parameter}"
    said = read_selection(parameters["worker-classes"], source, (source,), config)
    default, _ = pick(config.select.default, context, ())
    return resolve(config, asked, choose([said, default], kind), context)


def outcome(placement: Placement) -> tuple[str, str, dict[str, Any]]:
    env, _ = task_env(placement, {})
    return placement.alias, placement.pool, env


@pytest.fixture(scope="module")
def config() -> Config:
    """The hand-written `workers-config`, with that project's aliases."""
    return load(yaml.safe_load((DATA / "workers.yml").read_text()))


@pytest.fixture(scope="module")
def corpus() -> Path:
    """The recordings as they were taken."""
    if not CORPUS.is_dir():
        pytest.skip("needs the recordings in ../shared/corpus/translations")
    return CORPUS


@pytest.mark.parametrize(("name", "count"), RECORDED.items())
def test_every_task_is_placed_as_recorded(config: Config, name: str, count: int):
    """Alias, pool and env of every task are those that the project's own code arrived at."""
    parameters, tasks = tasks_of(name)
    placed = {
        task.label: outcome(place(config, task.requested, task.kind, parameters)) for task in tasks
    }
    assert len(placed) == count
    assert placed == {task.label: task.outcome for task in tasks}


@pytest.mark.parametrize("name", RECORDED)
def test_kinds_that_take_no_part_are_left_alone(config: Config, name: str):
    """Nothing is said about a task whose kind asks for an alias that no profile speaks of."""
    parameters, tasks = tasks_of(name)
    apart = [task for task in tasks if task.requested is None]
    assert {task.kind for task in apart} == set(ASKED_BY_THEMSELVES)
    assert all(place(config, task.requested, task.kind, parameters).silent for task in apart)


@pytest.mark.parametrize("name", RECORDED)
def test_the_placements_here_are_the_recorded_ones(corpus: Path, name: str):
    """tests/data holds the recordings, shortened, with nothing changed or left out."""
    recorded = json.loads((corpus / f"{name}.json").read_text())
    parameters, tasks = tasks_of(name)
    rows = [
        {
            "label": task.label,
            "kind": task.kind,
            "requested": task.requested,
            "alias": task.alias,
            "provisionerId": task.provisioner,
            "workerType": task.worker_type,
            "env": task.env,
        }
        for task in tasks
    ]
    assert {"parameters": parameters, "tasks": rows} == recorded


def test_the_aliases_here_are_those_of_the_project(corpus: Path):
    """tests/data holds the whole alias table of the project's config.yml."""
    theirs = yaml.safe_load((corpus / "config.yml").read_text())
    ours = yaml.safe_load((DATA / "workers.yml").read_text())
    assert ours["workers"] == theirs["workers"]
    assert ours["trust-domain"] == theirs["trust-domain"]


@pytest.mark.parametrize("profile", ["gcp-spot", "gcp-standard"])
def test_each_name_of_the_hand_written_tables_means_the_same(
    config: Config, corpus: Path, profile: str
):
    """Each of the project's own worker names, recorded or not, gets the alias and env it had."""
    theirs = yaml.safe_load((corpus / "config.yml").read_text())
    parameters = {
        "level": "3",
        "project": "translations",
        "tasks_for": "github-push",
        "worker-classes": {"default": profile},
    }
    placed, expected = {}, {}
    for name, by in theirs["local-worker-aliases"].items():
        classes = by["by-worker-class"]
        alias = classes.get(profile, classes["default"])
        worker = theirs["worker-configuration"].get(alias, {"env": {}})
        placed[name] = outcome(place(config, name, "train", parameters))[::2]
        expected[name] = (alias, worker["env"])
    assert placed == expected
