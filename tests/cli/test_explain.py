"""`explain`: why a worker name, or a task, gets what it gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.commands import answer, command, written
from tests.graph.project import PARAMETERS, Project, docker, dump

PLACE = {
    "file": {"type": ["string", "null"]},
    "line": {"type": ["integer", "null"], "minimum": 1},
    "column": {"type": ["integer", "null"], "minimum": 1},
    "path": {"type": "string"},
}
VALUE = {"value": {}, "source": {"type": "string"}, **PLACE}


def record(**properties: Any) -> dict[str, Any]:
    """The schema of an object with all of these fields, and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


NULLABLE = {"type": ["string", "null"]}
#: What other programs may count on.
SCHEMA = record(
    name={"type": "string"},
    task=NULLABLE,
    pool={"type": "string"},
    chain=array(record(name={"type": "string"}, source={"type": "string"}, **PLACE)),
    choice=record(
        profile=NULLABLE,
        source=NULLABLE,
        sources=array(record(source={"type": "string"}, said=NULLABLE, **PLACE)),
    ),
    values=array(record(key={"type": "string"}, overrode=array(record(**VALUE)), **VALUE)),
)

CONFIG = """
workers-config:
    workers:
        b-gpu: {env: {GPUS: "0", WORKSPACE: "12000"}, resources: {gpu-memory: 16GiB}}
    profiles:
        cloud:
            workers: {b-train: b-gpu}
        lab:
            extends: cloud
            levels: [1]
            workers:
                b-g.*:
                    provisioner: shop-lab
                    worker-type: big
                    env: {WORKSPACE: "8000"}
                    worker: {max-run-time: 99}
    select:
        parameter: training.profile
        default: {by-level: {"3": lab, default: cloud}}
    protect: {workers: [b-other]}
"""
FILE = "taskcluster/config.yml"


@pytest.fixture
def here(project: Project) -> Project:
    """Return a project with a kind whose task has env of its own."""
    project.config(CONFIG)
    own = docker(env={"WORKSPACE": "7000", "SEED": "1"})
    project.kind("train", {"one": {"worker-type": "b-train", "worker": own}})
    return project


def explain(here: Project, *arguments: object, code: int = 0, **env: str) -> dict[str, Any]:
    said = answer("explain", *arguments, code=code, cwd=here.folder, **env)
    jsonschema.validate(said, SCHEMA)
    return said


def place(here: Project, text: str, nth: int = 1, file: str = FILE) -> list[Any]:
    """The file, line and column of a text."""
    return [file, *map(int, written(here.folder / file, text, nth).split(":"))]


def at(said: dict[str, Any]) -> list[Any]:
    return [said["file"], said["line"], said["column"]]


def test_a_value_and_what_it_overrode(here: Project):
    """The winner comes first, then what it overrode, each with who said it and where."""
    (value,) = explain(here, "b-train", "WORKSPACE", "--profile", "lab")["values"]
    assert (value["key"], value["value"], value["source"]) == (
        "env.WORKSPACE",
        "8000",
        "profile lab",
    )
    assert at(value) == place(here, 'WORKSPACE: "8000"')
    assert value["path"] == "workers-config.profiles.lab.workers.b-g.*.env.WORKSPACE"
    (under,) = value["overrode"]
    assert (under["value"], under["source"]) == ("12000", "workers")
    assert at(under) == place(here, 'WORKSPACE: "12000"')


def test_the_chain(here: Project):
    """Each step says who sent the name on, and where that stands."""
    first, second = explain(here, "b-train", "--profile", "lab")["chain"]
    assert (first["name"], first["source"], first["file"]) == ("b-train", "asked for", None)
    assert (second["name"], second["source"]) == ("b-gpu", "profile cloud")
    assert at(second) == place(here, "b-train: b-gpu")


def test_a_chain_by_a_pattern(here: Project):
    """A step that a pattern made names the pattern."""
    here.config(CONFIG.replace("{b-train: b-gpu}", "{b-tr.*: b-gpu}"))
    assert explain(here, "b-train")["chain"][1]["source"] == "profile cloud, 'b-tr.*'"


@pytest.mark.parametrize(
    ("key", "keys", "values"),
    [
        ("pool", ["provisioner", "worker-type"], ["shop-lab", "big"]),
        ("provisioner", ["provisioner"], ["shop-lab"]),
        ("worker-type", ["worker-type"], ["big"]),
        ("implementation", ["implementation"], ["docker-worker"]),
        ("os", ["os"], ["linux"]),
        ("GPUS", ["env.GPUS"], ["0"]),
        ("env.GPUS", ["env.GPUS"], ["0"]),
        ("resources.gpu-memory", ["resources.gpu-memory"], ["16GiB"]),
        ("worker.max-run-time", ["worker.max-run-time"], [99]),
    ],
)
def test_keys(here: Project, key: str, keys: list[str], values: list[Any]):
    """KEY picks a value, wherever it stands among the options."""
    said = explain(here, "b-train", "--profile", "lab", key)
    assert said["pool"] == "shop-lab/big"
    assert [each["key"] for each in said["values"]] == keys
    assert [each["value"] for each in said["values"]] == values


def test_all_keys(here: Project):
    """Without KEY every value is told."""
    assert [each["key"] for each in explain(here, "b-train", "--profile", "lab")["values"]] == [
        "provisioner",
        "worker-type",
        "implementation",
        "os",
        "env.GPUS",
        "env.WORKSPACE",
        "resources.gpu-memory",
        "worker.max-run-time",
    ]


SOURCES = [
    "TASKGRAPH_WORKERS_PROFILE",
    "parameter workers",
    "parameter training.profile",
    "select.default",
]


@pytest.mark.parametrize(
    ("arguments", "env", "parameters", "decides", "profile"),
    [
        ([], {}, {}, "select.default", "cloud"),
        (["--level", "3"], {}, {}, "select.default", "lab"),
        (
            [],
            {},
            {"training": {"profile": "lab"}},
            "parameter training.profile",
            "lab",
        ),
        ([], {}, {"workers": "lab", "training": {"profile": "cloud"}}, "parameter workers", "lab"),
        ([], {"TASKGRAPH_WORKERS_PROFILE": "lab"}, {"workers": "cloud"}, SOURCES[0], "lab"),
        (["--profile", "lab"], {"TASKGRAPH_WORKERS_PROFILE": "cloud"}, {}, "--profile", "lab"),
    ],
)
def test_the_choice(
    here: Project,
    arguments: list[str],
    env: dict[str, str],
    parameters: dict[str, Any],
    decides: str,
    profile: str,
):
    """Every source is told in its order, what it says or that it is silent; one decides."""
    here.write("more.yml", dump({**PARAMETERS, **parameters}))
    choice = explain(here, "b-train", "-p", "more.yml", *arguments, **env)["choice"]
    assert (choice["profile"], choice["source"]) == (profile, decides)
    names = [each["source"] for each in choice["sources"]]
    assert names == ([decides, *SOURCES] if decides == "--profile" else SOURCES)
    said = {each["source"]: each["said"] for each in choice["sources"]}
    assert said["parameter workers"] == parameters.get("workers")
    assert said["TASKGRAPH_WORKERS_PROFILE"] == env.get("TASKGRAPH_WORKERS_PROFILE")
    branch = '"3": lab' if "3" in arguments else "default: cloud"
    assert at(choice["sources"][-1]) == place(here, branch)


def test_the_choice_by_kind(here: Project):
    """A choice by kind is told whole, and goes by the kind that is asked about."""
    choice = "{default: cloud, train: lab}"
    said = explain(here, "b-train", "--kind", "train", TASKGRAPH_WORKERS_PROFILE=choice)
    assert said["choice"]["profile"] == "lab"
    assert said["choice"]["sources"][0]["said"] == "default: cloud, train: lab"


def test_a_runs_overrides(here: Project):
    """A run's override wins over the profile, and its source is named."""
    choice = "{profile: lab, workers: {b-gpu: {env: {WORKSPACE: '1'}}}}"
    (value,) = explain(here, "b-train", "WORKSPACE", TASKGRAPH_WORKERS_PROFILE=choice)["values"]
    assert [value["value"], *(each["value"] for each in value["overrode"])] == [
        "1",
        "8000",
        "12000",
    ]
    assert value["source"] == "TASKGRAPH_WORKERS_PROFILE"


def test_a_task(here: Project):
    """A task's own env stands between the worker's and the run's, at its place in the kind."""
    here.commit()
    said = explain(here, "--task", "train-one", "-p", "params.yml", "WORKSPACE")
    assert (said["task"], said["name"]) == ("train-one", "b-train")
    (value,) = said["values"]
    assert (value["value"], value["source"]) == ("7000", "task")
    kind = "taskcluster/kinds/train/kind.yml"
    assert at(value) == place(here, "WORKSPACE: '7000'", file=kind)
    assert [each["value"] for each in value["overrode"]] == ["12000"]


def test_a_task_under_another_profile(here: Project):
    """What a profile lays over the task's `worker` is told with what the task says."""
    here.commit()
    arguments = ["--task", "train-one", "-p", "params.yml", "--profile", "lab"]
    (value,) = explain(here, *arguments, "worker.max-run-time")["values"]
    assert (value["value"], value["source"]) == (99, "profile lab")
    (under,) = value["overrode"]
    assert (under["value"], under["source"]) == (3600, "task")
    assert at(under) == place(here, "max-run-time: 3600", file="taskcluster/kinds/train/kind.yml")


def test_a_tasks_worker_under_two_profiles(here: Project):
    """The task's own value is below all that is laid over it."""
    parent = "{b-train: {to: b-gpu, worker: {max-run-time: 50}}}"
    here.config(CONFIG.replace("{b-train: b-gpu}", parent))
    here.commit()
    arguments = ["--task", "train-one", "-p", "params.yml", "--profile", "lab"]
    (value,) = explain(here, *arguments, "worker.max-run-time")["values"]
    assert [value["value"], *(each["value"] for each in value["overrode"])] == [99, 50, 3600]


def test_text(here: Project):
    """The same for people, in 80 columns."""
    done = command("explain", "b-train", "WORKSPACE", "--profile", "lab", cwd=here.folder)
    assert (done.returncode, done.stderr) == (0, "")

    def line(text: str) -> str:
        return f"config.yml:{place(here, text)[1]}"

    assert done.stdout == (
        "b-train (level 1)\n"
        "runs on shop-lab/big\n"
        "\n"
        "Chain\n"
        "  b-train  asked for\n"
        f"  → b-gpu  profile cloud  {line('b-train: b-gpu')}\n"
        f"  b-gpu is an alias ({line('b-gpu:')})\n"
        "\n"
        "Choice: profile lab\n"
        "  --profile                   lab  decides\n"
        "  TASKGRAPH_WORKERS_PROFILE   silent\n"
        "  parameter workers           silent\n"
        "  parameter training.profile  silent\n"
        f"  select.default              cloud         {line('default: {by-level')}\n"
        "\n"
        "Values, each over what it overrides; files are in taskcluster/\n"
        f"""  WORKSPACE  8000        profile lab  {line('WORKSPACE: "8000"')}\n"""
        f"""             over 12000  workers      {line('WORKSPACE: "12000"')}\n"""
    )


def test_guards_are_told(here: Project):
    """What is protected, and a profile at a level that is not its own, are told."""
    done = command("explain", "b-other", cwd=here.folder)
    assert "protect.workers keeps 'b-other' where it is, under every profile" in done.stdout
    done = command("explain", "b-gpu", "--level", "3", cwd=here.folder)
    assert "profile 'lab' is for level 1, and this is level 3" in done.stdout


def test_a_name_that_leads_nowhere(here: Project):
    """The choice is told all the same, and the error says why: exit code 1."""
    to = "b-train:\n                    to: b-gpu"
    here.config(CONFIG.replace("{b-train: b-gpu}", "{}").replace("b-g.*:", to))
    done = command("explain", "b-train", cwd=here.folder)
    assert done.returncode == 1
    assert "Choice: profile cloud" in done.stdout
    assert "'b-train' leads nowhere under profile 'cloud'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["b-trian"], "there is no worker name 'b-trian'\n    hint: did you mean 'b-train'?"),
        (["b-train", "WORKSPCE"], "nothing sets 'WORKSPCE' for 'b-train'\n    hint: did you mean"),
        (["b-train", "--profile", "labb"], "hint: did you mean 'lab'?"),
        (["b-train", "--kind", "trian"], "hint: did you mean 'train'?"),
        (["b-train", "-p", "no.yml"], "no.yml: there is no such file of parameters"),
        (["--task", "train-two", "-p", "params.yml"], "hint: did you mean 'train-one'?"),
        ([], "nothing says what to explain"),
        (["--task", "train-one", "b-train", "GPUS"], "there is a NAME and --task"),
    ],
)
def test_what_there_is_not(here: Project, arguments: list[str], told: str):
    """What is asked for and is not there, with the nearest that is: exit code 2."""
    here.commit()
    done = command("explain", *arguments, cwd=here.folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_no_taskgraph_is_loaded_for_a_name(here: Project):
    """A name is explained without Taskgraph, so at once."""
    (here.folder / "taskgraph.py").write_text("raise AssertionError('Taskgraph was loaded')")
    assert command("explain", "b-train", cwd=here.folder).returncode == 0


def test_a_file_by_itself(here: Project, tmp_path: Path):
    """--config needs no project around it."""
    text = (here.folder / FILE).read_text()
    (tmp_path / "alone.yml").write_text(text)
    assert explain(here, "b-train", "--config", "alone.yml")["pool"] == "shop-1/b-gpu"
