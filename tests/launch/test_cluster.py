"""A cluster of ``workers-config`` as what is to be launched."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from taskgraph_workers.config import load_file
from taskgraph_workers.detect import Detect
from taskgraph_workers.errors import WorkersError
from taskgraph_workers.launch import cluster
from taskgraph_workers.launch.model import Ask, Demand
from taskgraph_workers.machines import Header
from taskgraph_workers.model import Config

ROOT = Path(__file__).resolve().parent.parent.parent

LAB = """\
workers:
    aliases:
        b-gpu: {provisioner: lab, worker-type: gpu, implementation: generic-worker, os: linux}
        b-cpu: {provisioner: lab, worker-type: cpu, implementation: generic-worker, os: linux}
workers-config:
    workers:
        b-gpu: {env: {GPUS: "0 1", WORKSPACE: "8000"}}
    clusters:
        lab:
            scheduler: slurm
            node: {cores: 36, gpus: 4, memory: 256GiB}
            queue: pdebug
            walltime: 20m
            setup: [module load cuda]
            groups:
                trainers: {pool: lab/gpu, number: 5, cores: 8, gpus: 2, command: [start, a b]}
                helpers: {command: "start-helper --port $PORT"}
"""


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """A configuration out of a text."""

    def read(text: str) -> Config:
        (tmp_path / "lab.yml").write_text(textwrap.dedent(text), "utf-8")
        return load_file(tmp_path / "lab.yml")

    return read


def ask(config: Config, name: str = "lab", **options: Any) -> Ask:
    return cluster.ask(config, cluster.find(config, name), **options)


def test_a_cluster_asks(read: Any):
    """Its header, its node, and a task of one node for each worker, which it holds."""
    asked = ask(read(LAB))
    assert asked.header == Header(queue="pdebug", walltime_s=1200)
    assert asked.scheduler == "slurm"
    assert asked.setup == ("module load cuda",)
    trainers, helpers = asked.groups
    assert (trainers.name, trainers.number, trainers.line) == ("trainers", 5, 16)
    assert trainers.command == "start 'a b'"
    assert trainers.env == {"GPUS": "0 1", "WORKSPACE": "8000"}
    assert trainers.demands == (Demand("trainers", 1, 8, 2, launcher=False),)
    assert (helpers.number, helpers.holds, helpers.env) == (1, True, {})
    assert (helpers.demands[0].cores, helpers.demands[0].gpus) == (1, 0)
    assert (asked.notes, asked.others) == ((), ())


def test_the_example_of_the_design(read: Any):
    """The pool's one placement detects WORKSPACE, and so does each worker; GPUS it declares."""
    text = (ROOT / "tests" / "data" / "design.yml").read_text("utf-8")
    config = read(re.sub("^.*include:.*", "", text, flags=re.MULTILINE))
    asked = ask(config, "snakepit", trust_domain="translations")
    (trainers,) = asked.groups
    assert trainers.env == {"GPUS": "0 1 2 3", "WORKSPACE": Detect("gpu-memory", 0.75)}
    assert (trainers.number, trainers.demands[0].cores, trainers.demands[0].gpus) == (50, 8, 4)


def test_some_groups(read: Any):
    """Those that are named; the others are told."""
    asked = ask(read(LAB), only=("helpers",))
    assert ([group.name for group in asked.groups], asked.others) == (["helpers"], ("trainers",))


@pytest.mark.parametrize(
    ("change", "options", "told"),
    [
        ("", {"name": "lba"}, "there is no cluster 'lba'\n    hint: did you mean 'lab'?"),
        ("", {"only": ("trainer",)}, "no group 'trainer'\n    hint: did you mean 'trainers'?"),
        ("number: 5", {}, "groups.trainers.number: auto needs a graph"),
        ("pool: lab/gpu, number: 5", {}, "counts the tasks of a pool, and this group has none"),
    ],
)
def test_what_can_not_be_asked(read: Any, change: str, options: dict[str, Any], told: str):
    """One clear error, with its place where it has one."""
    text = LAB.replace(change, "number: auto") if change else LAB
    with pytest.raises(WorkersError) as caught:
        ask(read(text), **options)
    assert told in str(caught.value)
    assert ("lab.yml:16:" in str(caught.value)) == bool(change)


def test_a_number_out_of_a_graph(read: Any):
    """``auto`` is what whoever knows the graph says."""
    asked = ask(read(LAB.replace("number: 5", "number: auto")), widths={"trainers": 7})
    assert (asked.groups[0].number, asked.groups[0].why) == (7, "as many tasks can run at once")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("gpus: 2", "gpus: 1"), "groups.trainers.gpus: warning: GPUS is '0 1', but each worker"),
        (("[start, a b]", "cd /x && start"), "trainers.command: warning: a shell stays in front"),
        (("start, a b", "/x/generic-worker, run"), "warning: generic-worker ends at once when it"),
        (("[start, a b]", "exec start-worker x"), "warning: start-worker ends at once when it is"),
    ],
)
def test_what_is_odd(read: Any, change: tuple[str, str], told: str):
    """A warning, with its line."""
    (note,) = ask(read(LAB.replace(*change))).notes
    assert told in str(note)
    assert (note.severity, note.line) == ("warning", 16)
