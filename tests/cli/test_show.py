"""`show`: where each worker name leads under each profile."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from tests.cli.commands import answer, command

PLACEMENT = {
    "type": "object",
    "properties": {
        "pool": {"type": "string"},
        "implementation": {"type": "string"},
        "os": {"type": "string"},
        "env": {"type": "object", "additionalProperties": {"type": ["string", "object"]}},
        "resources": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
    },
    "required": ["pool", "implementation", "os", "env", "resources"],
    "additionalProperties": False,
}
#: What other programs may count on: by profile, by name; null for a name that leads nowhere.
SCHEMA = {
    "type": "object",
    "properties": {
        "profiles": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": {"anyOf": [PLACEMENT, {"type": "null"}]},
            },
        }
    },
    "required": ["profiles"],
    "additionalProperties": False,
}

CONFIG = """\
trust-domain: shop
workers:
    aliases:
        b-gpu: &gcp
            provisioner: '{trust-domain}-{level}'
            implementation: docker-worker
            os: linux
            worker-type: '{alias}'
        b-cpu: *gcp
workers-config:
    workers:
        b-gpu:
            env: {GPUS: "0", WORKSPACE: "12000"}
            resources: {gpus: 1, gpu-memory: 16GiB, memory: 1500MiB, gpu-model: v100}
    profiles:
        cloud: {workers: {b-train: b-gpu}}
        lab:
            extends: cloud
            levels: [1]
            workers:
                b-gpu:
                    provisioner: shop-lab
                    worker-type: {by-kind: {eval: small, default: big}}
                    env: {GPUS: null, WORKSPACE: {detect: gpu-memory, share: 0.75}}
        bare: {}
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Return the folder of a project."""
    for kind in ("eval", "train"):
        (tmp_path / "taskcluster/kinds" / kind).mkdir(parents=True)
        (tmp_path / "taskcluster/kinds" / kind / "kind.yml").write_text("tasks: {}")
    (tmp_path / "taskcluster/config.yml").write_text(CONFIG)
    return tmp_path


def test_json(here: Path):
    """Each name of each profile, as it is placed; null where it leads nowhere."""
    said = answer("show", cwd=here)
    jsonschema.validate(said, SCHEMA)
    assert list(said["profiles"]) == ["cloud", "lab", "bare"]
    assert {tuple(names) for names in said["profiles"].values()} == {("b-gpu", "b-cpu", "b-train")}
    assert said["profiles"]["cloud"]["b-train"] == {
        "pool": "shop-1/b-gpu",
        "implementation": "docker-worker",
        "os": "linux",
        "env": {"GPUS": "0", "WORKSPACE": "12000"},
        "resources": {"gpu-memory": "16GiB", "gpu-model": "v100", "gpus": 1, "memory": "1500MiB"},
    }
    assert said["profiles"]["lab"]["b-train"]["pool"] == "shop-lab/big"
    assert said["profiles"]["lab"]["b-train"]["env"] == {
        "WORKSPACE": {"detect": "gpu-memory", "share": 0.75}
    }
    assert said["profiles"]["bare"]["b-train"] is None


def test_options(here: Path):
    """--level, --kind and --profile say what for; a name picks one row."""
    said = answer("show", "b-train", "--level", 3, "--profile", "cloud", cwd=here)
    assert list(said["profiles"]) == ["cloud"]
    assert said["profiles"]["cloud"]["b-train"]["pool"] == "shop-3/b-gpu"
    said = answer("show", "b-gpu", "--kind", "eval", "--profile", "lab", cwd=here)
    assert said["profiles"]["lab"]["b-gpu"]["pool"] == "shop-lab/small"


def test_text(here: Path):
    """A table that fits: profiles that come to the same together, and why a name leads nowhere."""
    done = command("show", "b-train", "--level", 3, cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout
        == """\
b-train
  cloud             shop-3/b-gpu   GPUS: 0                     gpu-memory: 16GiB
                    docker-worker  WORKSPACE: 12000            gpu-model: v100
                                                               gpus: 1
                                                               memory: 1500MiB
  lab               shop-lab/big   WORKSPACE: detected         gpu-memory: 16GiB
    not at level 3  docker-worker    (gpu-memory, share 0.75)  gpu-model: v100
                                                               gpus: 1
                                                               memory: 1500MiB
  bare  nowhere: it is no alias in workers.aliases
"""
    )


def test_profiles_that_agree_are_one_row(here: Path):
    """A name that no profile moves has one row."""
    done = command("show", "b-cpu", cwd=here)
    assert done.stdout == (
        "b-cpu  an alias\n  every profile  shop-1/b-cpu\n                 docker-worker\n"
    )


def test_no_profile_is_shown_where_there_is_none(here: Path):
    """Only where there are no profiles is there a column for none."""
    text = CONFIG[: CONFIG.index("    profiles:")]
    (here / "taskcluster/config.yml").write_text(text)
    said = answer("show", cwd=here)
    assert list(said["profiles"]) == [""]
    assert said["profiles"][""]["b-gpu"]["env"]["GPUS"] == "0"


def test_a_project_without_our_key(here: Path):
    """Taskgraph's own aliases are shown all the same."""
    (here / "taskcluster/config.yml").write_text(CONFIG[: CONFIG.index("workers-config:")])
    assert answer("show", "b-cpu", cwd=here)["profiles"][""]["b-cpu"]["pool"] == "shop-1/b-cpu"


def test_a_file_by_itself(here: Path):
    """--config needs no project around it, and no trust domain."""
    (here / "alone.yml").write_text(CONFIG.replace("trust-domain: shop\n", ""))
    said = answer("show", "b-cpu", "--config", "alone.yml", cwd=here)
    assert said["profiles"]["cloud"]["b-cpu"]["pool"] == "{trust-domain}-1/b-cpu"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["b-trian"], "there is no worker name 'b-trian'\n    hint: did you mean 'b-train'?"),
        (["--profile", "labb"], "there is no profile 'labb'\n    hint: did you mean 'lab'?"),
        (["--kind", "trian"], "there is no kind 'trian'\n    hint: did you mean 'train'?"),
        (["--root", "nowhere"], "nowhere/config.yml: there is no such file"),
    ],
)
def test_what_there_is_not(here: Path, arguments: list[str], told: str):
    """A name, a profile, a kind or a project that there is not: exit code 2, and the nearest."""
    done = command("show", *arguments, cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_a_wrong_configuration(here: Path):
    """All faults are told with their places, and nothing is shown."""
    text = CONFIG.replace("extends: cloud", "extends: cluod").replace("levels", "level")
    (here / "taskcluster/config.yml").write_text(text)
    done = command("show", cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    assert "taskcluster/config.yml:18:13: " in done.stderr
    assert "taskcluster/config.yml:19:13: " in done.stderr


def test_no_taskgraph_is_loaded(here: Path):
    """The table needs no Taskgraph, so it is there at once."""
    (here / "taskgraph.py").write_text("raise AssertionError('Taskgraph was loaded')")
    assert command("show", cwd=here).returncode == 0
