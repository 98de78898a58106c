"""`plan` on whole projects, against graphs that `taskgraph` makes by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.graph.project import Project
from tests.graph.support import EXAMPLE, LOCAL, ROOT, full_graph

PARAMS = EXAMPLE / "test" / "params"
PULL_REQUEST = PARAMS / "pull-request.yml"

PLACE = {
    "type": "object",
    "properties": {"pool": {"type": "string"}, "implementation": {"type": ["string", "null"]}},
    "required": ["pool", "implementation"],
    "additionalProperties": False,
}
CHOSEN = {"anyOf": [{"type": ["string", "null"]}, {"type": "object"}]}
PAIR = {"type": "array", "minItems": 2, "maxItems": 2}
NAMES = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
#: What other programs may count on.
SCHEMA = {
    "type": "object",
    "properties": {
        "version": {"const": 1},
        "from": CHOSEN,
        "to": CHOSEN,
        "moves": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "label": {"type": "string"},
                    "kind": {"type": "string"},
                    "from": PLACE,
                    "to": PLACE,
                    "env": {"type": "object", "additionalProperties": PAIR},
                    "other": {"type": "object", "additionalProperties": PAIR},
                },
                "required": ["label", "kind", "from", "to", "env", "other"],
                "additionalProperties": False,
            },
        },
        "added": NAMES,
        "removed": NAMES,
        "unchanged": {"type": "integer", "minimum": 0},
        "new_pools": NAMES,
        "scopes": NAMES,
        "new_scopes": NAMES,
    },
    "additionalProperties": False,
}
SCHEMA["required"] = list(SCHEMA["properties"])  # type: ignore[call-overload]


def start(*arguments: object, cwd: Path = ROOT, **env: str) -> subprocess.Popen[str]:
    """Start `taskgraph-workers plan` in a group of its own, with nothing from a task around it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(LOCAL)}
    # The example gives itself a root URL; the small projects here have none.
    urls = {} if cwd == ROOT else {"TASKCLUSTER_ROOT_URL": "https://tc.example.com"}
    return subprocess.Popen(
        [sys.executable, "-m", "taskgraph_workers", "plan", *map(str, arguments)],
        cwd=cwd,
        env={**clean, **urls, "PYTHONPATH": str(ROOT), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def plan(*arguments: object, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """Return what `taskgraph-workers plan` did."""
    process = start(*arguments, cwd=cwd, **env)
    stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


@cache
def planned(*arguments: object, **env: str) -> dict[str, Any]:
    """Return the JSON of a plan that found differences."""
    done = plan("--json", *arguments, **env)
    assert done.returncode == 1, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def pool(task: dict[str, Any]) -> str:
    return f"{task['task']['provisionerId']}/{task['task']['workerType']}"


def env_of(task: dict[str, Any]) -> dict[str, Any]:
    return dict((task["task"]["payload"] or {}).get("env", {}))


@pytest.mark.parametrize("profile", ["gcp-standard", "onprem", "lab"])
def test_a_plan_is_what_two_graphs_say(profile: str):
    """The same tasks, pools, implementations and env as two runs of `taskgraph full` differ in."""
    found = planned("--from", "gcp-spot", "--profile", profile, "-p", PULL_REQUEST)
    before, after = (
        full_graph(EXAMPLE, PULL_REQUEST, {"TASKGRAPH_WORKERS_PROFILE": name})
        for name in ("gcp-spot", profile)
    )
    differ = sorted(label for label in before if before[label] != after[label])
    assert [move["label"] for move in found["moves"]] == differ
    assert found["unchanged"] == len(before) - len(differ)
    assert (found["from"], found["to"]) == ("gcp-spot", profile)
    for move in found["moves"]:
        was, now = before[move["label"]], after[move["label"]]
        for side, task in (("from", was), ("to", now)):
            tags = task["task"]["tags"]
            assert move[side] == {
                "pool": pool(task),
                "implementation": tags["worker-implementation"],
            }
        # What the machine finds out is in no payload.
        told = {
            name: [old, None if isinstance(new, dict) else new]
            for name, (old, new) in move["env"].items()
        }
        assert told == {
            name: [env_of(was).get(name), env_of(now).get(name)]
            for name in env_of(was).keys() | env_of(now).keys()
            if env_of(was).get(name) != env_of(now).get(name)
        }
    pools = [{pool(task) for task in graph.values()} for graph in (before, after)]
    assert found["new_pools"] == sorted(pools[1] - pools[0])
    assert {f"queue:create-task:low:{name}" for name in pools[1] - pools[0]} <= set(found["scopes"])


def test_what_the_machine_finds_out_is_told_as_configured():
    """A detected value is `{detect: ...}` in the plan, and no change of the command."""
    found = planned("--from", "gcp-spot", "--profile", "onprem", "-p", PULL_REQUEST)
    teacher = next(move for move in found["moves"] if move["label"] == "train-teacher-1")
    detect = {"detect": "gpu-memory", "share": 0.75}
    assert teacher["env"] == {"WORKSPACE": ["12000", detect]}
    assert "payload.command" not in teacher["other"]


def test_the_json_is_as_promised():
    """The plan validates against the shape that other programs read, level's scheduler included."""
    found = planned("--from", "gcp-spot", "--profile", "onprem", "-p", PULL_REQUEST)
    jsonschema.validate(found, SCHEMA)
    assert "queue:scheduler-id:training-level-1" in found["scopes"]
    assert set(found["new_scopes"]) < set(found["scopes"])


def test_without_from_it_is_what_nobody_chose():
    """`--from` defaults to select.default, whatever the environment and the parameters choose."""
    onprem = PARAMS / "training-onprem.yml"
    found = planned("-p", onprem, TASKGRAPH_WORKERS_PROFILE="lab")
    assert (found["from"], found["to"]) == ("gcp-standard", "onprem")


def test_parameters_may_stand_for_a_side():
    """Each side may have parameters of its own, and is then as they say."""
    found = planned(
        "--from-parameters", PARAMS / "training-onprem.yml",
        "--to-parameters", PARAMS / "training-mixed.yml",
        "--kind", "train-teacher",
        "--kind", "train-student",
        "--kind", "evaluate",
    )  # fmt: skip
    assert found["from"] == "onprem"
    assert found["to"] == {
        "evaluate": "gcp-spot",
        "train-student": "gcp-spot",
        "train-teacher": "onprem",
    }
    assert {move["kind"] for move in found["moves"]} == {"evaluate", "train-student"}


def test_a_choice_by_kind_and_two_levels():
    """A profile may be YAML; `--level` is that of both graphs, and a profile not for it is told."""
    choice = "{default: gcp-spot, train-teacher: onprem}"
    done = plan("--from", "gcp-spot", "--profile", choice, "-p", PULL_REQUEST, "--level", "3")
    assert done.returncode == 1
    assert "gcp-spot → gcp-spot (train-teacher: onprem): 2 tasks move" in done.stdout
    assert "training-3/b-linux-v100-gpu-4-1tb → training-onprem/snakepit-xlarge" in done.stdout
    assert done.stderr.count("warning: ") == 1
    assert "profile 'onprem' is for level 1, and this is level 3" in done.stderr


def test_nothing_differs():
    """From a profile to itself, and without parameters: exit 0, one line, no talk with -q."""
    done = plan("--from", "gcp-spot", "--profile", "gcp-spot", "-q", "--target")
    assert done.returncode == 0
    assert done.stdout.startswith("gcp-spot → gcp-spot: nothing changes, ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--profile", "onprme"], ["--profile: there is no profile 'onprme'", "mean 'onprem'?"]),
        (["--profile", "{train-techer: lab}"], ["'train-techer'", "mean 'train-teacher'?"]),
        (["--profile", "{train-teacher:lab}"], ["put a space after the colon: train-teacher: lab"]),
        (["--profile", "{train-teacher: ["], ["--profile is no YAML"]),
        (["--profile", " "], ["--profile is empty", "name a profile"]),
        (["--from", "", "--profile", "lab"], ["--from is empty"]),
        (["--from", "x", "--profile", "lab"], ["--from: there is no profile 'x'"]),
        (["--profile", "lab", "--kind", "train-techer"], ["no kind", "mean 'train-teacher'?"]),
        (["--profile", "lab", "-p", "none.yml"], ["none.yml: there is no such file"]),
        (["--profile", "lab", "--root", "docs"], ["docs", "config.yml"]),
        ([], ["nothing says what to go to", "hint: "]),
    ],
    ids=str,
)
def test_what_cannot_be_planned(arguments: list[str], told: list[str]):
    """A mistake ends with 2, says what is wrong and what may be meant, and prints no data."""
    done = plan(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    for text in told:
        assert text in done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project whose tasks fail to load on one of two profiles."""
    project = Project(tmp_path)
    project.config(
        {"profiles": {"cloud": {}, "onprem": {"workers": {"b-gpu": "shop-onprem/big"}}}},
        register="shop_taskgraph:register",
    )
    project.kind("train", {"a": {}}, transforms=["shop_taskgraph:transform"])
    project.write(
        "taskcluster/shop_taskgraph.py",
        """
        import taskgraph_workers

        def register(graph_config):
            taskgraph_workers.register(graph_config)

        def transform(config, tasks):
            print("hello from the shop")
            if config.params["workers"] == "onprem":
                raise KeyError("shoe-size")
            return tasks
        """,
    )
    project.commit()
    return project


ARGUMENTS = ("-p", "params.yml", "--from", "cloud", "--profile", "onprem")


def test_a_project_that_fails_is_told_in_a_line(project: Project):
    """What a transform raises ends with 2: which graph, and what it was."""
    done = plan(*ARGUMENTS, cwd=project.folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == (
        "error: the graph after (profile onprem, parameters params.yml) can't be made: "
        "KeyError: 'shoe-size'"
    )
    assert "Traceback" not in done.stderr


def test_verbose_shows_the_traceback(project: Project):
    """With `-v` the traceback is there, down to the project's line, and Taskgraph's own log."""
    done = plan(*ARGUMENTS, "-v", cwd=project.folder)
    assert done.returncode == 2
    assert 'raise KeyError("shoe-size")' in done.stderr
    assert done.stderr.count("can't be made: ") == 1
    assert "info: Loading kinds" in done.stderr


def test_a_refusal_is_told_once(project: Project):
    """A task that a profile can't place: each problem with its place, once, and exit 2."""
    project.config(
        {"profiles": {"onprem": {"workers": {"b-gpu": {"implementation": "generic-worker"}}}}}
    )
    project.kind("train", {"a": {}})
    done = plan("-p", "params.yml", "--profile", "onprem", cwd=project.folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("generic-worker knows no worker field 'docker-image'") == 1
    assert "Traceback" not in done.stderr


def test_a_wrong_configuration_is_told_with_its_place(project: Project):
    """Faults of workers-config come as `file:line:column`, and end with 2."""
    project.config("workers-config:\n    profils: {}\n")
    done = plan("--profile", "onprem", cwd=project.folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "taskcluster/config.yml:" in done.stderr
    assert "did you mean 'profiles'?" in done.stderr


def test_a_project_of_the_old_layout(project: Project):
    """Without --root, taskcluster/ci is found where taskcluster holds no config.yml."""
    project.config({"profiles": {"onprem": {"workers": {"b-gpu": "shop-onprem/big"}}}})
    project.kind("train", {"a": {}})
    (project.folder / "moved").mkdir()
    project.root.rename(project.folder / "moved" / "ci")
    (project.folder / "moved").rename(project.root)
    done = plan("-p", "params.yml", "--profile", "onprem", cwd=project.folder)
    assert done.returncode == 1, done.stderr
    assert "shop-1/b-gpu → shop-onprem/big" in done.stdout


def test_ctrl_c_ends_it_in_silence(project: Project):
    """An interrupt reaches the children that Taskgraph forks, too, and none shows a traceback."""
    loading = project.folder / "loading"
    project.write(
        "taskcluster/shop_taskgraph.py",
        f"""
        import time
        from pathlib import Path
        from taskgraph_workers import register

        def transform(config, tasks):
            Path({str(loading)!r}).touch()
            time.sleep(600)
            return tasks
        """,
    )
    process = start(*ARGUMENTS, cwd=project.folder)
    while not loading.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (130, "")
    assert "Traceback" not in stderr
