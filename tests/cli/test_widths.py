"""`number: auto`, on whole projects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.graph.project import Project
from tests.graph.support import LOCAL, ROOT

#: As `launch` calls it.
PROGRAM = """\
import json, sys
from taskgraph_workers.cli import options, reading, widths
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import WorkersError
parser = options.Parser()
options.add_project(parser)
options.add_config(parser)
parser.add_argument("--profile")
parser.add_argument("--group", action="append", default=[])
args = parser.parse_args()
cluster = reading.project(args).config.clusters["lab"]
try:
    numbers = widths.numbers(args, cluster, Output())
except WorkersError as error:
    sys.exit(str(error))
print(json.dumps([numbers, "taskgraph" in sys.modules]))
"""

CONFIG = """
    workers-config:
        profiles:
            onprem: {workers: {b-gpu: shop-onprem/big}}
        clusters:
            lab:
                scheduler: slurm
                groups:
                    fixed: {number: 3, command: start}
                    trainers: {number: auto, pool: shop-onprem/big, command: start}
                    cloud: {number: auto, pool: shop-1/b-gpu, command: start}
                    others: {number: auto, pool: shop-1/b-cpu, command: start}
"""


def run(*arguments: object, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(LOCAL)}
    fixed = {"PYTHONPATH": str(ROOT), "TASKCLUSTER_ROOT_URL": "https://tc.example.com"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        cwd=cwd,
        env={**clean, **fixed, **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def shop(project: Project) -> Project:
    """Three teachers, then an ensemble; its two students, of which one waits for the other.

    Half of the tasks in between run elsewhere. Nothing targets the kind `more`.
    """
    project.config(CONFIG)
    project.kind("teacher", {"a": {}, "b": {}, "c": {}})
    project.kind(
        "ensemble",
        {"all": {"worker-type": "b-cpu", "dependencies": {k: f"teacher-{k}" for k in "abc"}}},
        **{"kind-dependencies": ["teacher"]},
    )
    after = {"dependencies": {"e": "ensemble-all"}}
    project.kind("student", {"a": after, "b": after}, **{"kind-dependencies": ["ensemble"]})
    project.kind("more", {str(n): {"run-on-tasks-for": ["github-pull-request"]} for n in range(9)})
    project.commit()
    return project


def test_it_is_the_width_of_the_target_graph(shop: Project):
    """Each group has as many workers as tasks of its pool, placed as asked, can be at once."""
    done = run("-p", "params.yml", "--profile", "onprem", cwd=shop.folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [{"trainers": 3, "cloud": 0, "others": 1}, True]
    assert "no task of the target graph runs on shop-1/b-gpu, so number: auto of cloud is 0" in (
        done.stderr
    )


def test_another_choice_is_another_number(shop: Project):
    """Without the profile the tasks run elsewhere; a warning names the pool that is meant."""
    done = run("-p", "params.yml", "--group", "trainers", "--group", "cloud", cwd=shop.folder)
    assert json.loads(done.stdout) == [{"trainers": 0, "cloud": 3}, True]
    assert "warning: no task of the target graph runs on shop-onprem/big" in done.stderr


def test_taskgraph_is_not_loaded_for_numbers_that_are_written(shop: Project):
    """Where no group that is launched says auto, there is nothing to make a graph for."""
    done = run("--group", "fixed", cwd=shop.folder)
    assert json.loads(done.stdout) == [{}, False]


def test_a_group_has_to_say_its_pool(shop: Project):
    """Without a pool there is nothing to count: each such group is named before a graph is made."""
    text = CONFIG.replace("pool: shop-onprem/big, ", "").replace("pool: shop-1/b-gpu, ", "")
    shop.config(text)
    done = run(cwd=shop.folder)
    assert done.returncode == 1
    assert (
        done.stderr.count("number: auto counts the tasks of a pool, and this group has none") == 2
    )
    for group in ("trainers", "cloud"):
        assert f"workers-config.clusters.lab.groups.{group}.number" in done.stderr


def test_a_project_has_to_be_there(shop: Project, tmp_path_factory: pytest.TempPathFactory):
    """A configuration alone has no graph, and is told so."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = run("--config", shop.root / "config.yml", cwd=elsewhere)
    assert done.returncode == 1
    assert "there is no project here" in done.stderr
    assert "hint: say --root DIR, or write the number" in done.stderr


def test_a_graph_that_cannot_be_made_says_why(shop: Project):
    """What Taskgraph says comes as one error, with no traceback."""
    shop.kind("broken", {"it": {"worker-type": "b-nowhere"}})
    done = run("-p", "params.yml", cwd=shop.folder)
    assert done.returncode == 1
    assert "the target graph can't be made: " in done.stderr
    assert "Traceback" not in done.stderr
