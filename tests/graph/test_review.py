"""Mistakes put into projects: what `check` says of their tasks, and where it points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import answer, place, written
from tests.graph.project import ALIASES, DOCKER, Project, docker

CONFIG = "taskcluster/config.yml"
#: A kind that makes its tasks by itself, and not through Taskgraph's transforms.
RAW = """
    from taskgraph.transforms.base import TransformSequence

    transforms = TransformSequence()

    @transforms.add
    def make(config, tasks):
        for task in tasks:
            yield {
                "label": f"raw-{task['name']}",
                "description": "A task",
                "attributes": {},
                "task": {"provisionerId": "shop-1", "workerType": task["pool"], "payload": {}},
                "dependencies": {},
            }
"""


def checked(
    project: Project, *arguments: str, code: int | None = None, **env: str
) -> list[dict[str, Any]]:
    """What `check` finds once the graph is there."""
    project.commit()
    expected = 0 if code is None else code
    said = answer("check", "-p", "params.yml", *arguments, code=expected, cwd=project.folder, **env)
    assert said["graph"] is True
    found: list[dict[str, Any]] = said["problems"]
    return found


def of(found: list[dict[str, Any]], severity: str) -> dict[str, Any]:
    """The only problem of a severity."""
    alike = [each for each in found if each["severity"] == severity]
    assert len(alike) == 1, found
    return alike[0]


def line_of(project: Project, file: str, text: str, nth: int = 1, shift: int = 0) -> str:
    """Where a text stands, `shift` columns on."""
    line, column = written(project.folder / file, text, nth).split(":")
    return f"{file}:{line}:{int(column) + shift}"


def kind_file(kind: str) -> str:
    return f"taskcluster/kinds/{kind}/kind.yml"


def test_a_project_without_a_fault(project: Project):
    """Nothing is told of tasks that are placed, whatever the profile."""
    project.config({"profiles": {"lab": {"levels": [1], "workers": {"b-gpu": "shop/lab"}}}})
    project.kind("train", {"one": {}})
    assert checked(project) == []


def test_names_that_lead_nowhere(project: Project):
    """Every name that a kind asks for in vain points into its kind.yml, with the nearest name."""
    project.config({"profiles": {"cloud": {"workers": {"b-train": "b-gpu"}}}})
    project.kind("train", {"one": {"worker-type": "b-trian"}, "two": {"worker-type": "b-trian"}})
    project.kind("eval", {"one": {"worker-type": "b-gup"}}, **{"kind-dependencies": ["train"]})
    entry, first, second = checked(project, code=1)
    assert place(entry) == line_of(project, CONFIG, "b-train")
    assert entry["hint"] == "did you mean 'b-trian'?"
    assert place(first) == line_of(project, kind_file("eval"), "worker-type: b-gup")
    assert first["message"].startswith("eval-one: 'b-gup' is no worker name")
    assert first["hint"] == "did you mean 'b-gpu'?"
    assert place(second) == line_of(project, kind_file("train"), "worker-type: b-trian")
    assert second["message"].startswith("train-one and train-two: 'b-trian'")
    assert second["path"] == "tasks.one.worker-type"


def test_a_name_that_the_chosen_profile_does_not_place(project: Project):
    """It is an error under the profile that is chosen, and told there with the others' names."""
    project.config(
        {
            "profiles": {"cloud": {"workers": {"b-train": "b-gpu"}}, "lab": {}},
            "select": {"default": "lab"},
        }
    )
    project.kind("train", {"one": {"worker-type": "b-train"}})
    told = of(checked(project, code=1), "error")
    assert place(told) == line_of(project, kind_file("train"), "worker-type: b-train")
    assert "'b-train' leads nowhere under profile 'lab'" in told["message"]
    assert told["hint"] == "profiles that speak of it: cloud"


def test_a_name_that_another_profile_does_not_place(project: Project):
    """Under a profile that is not chosen it is a warning, which names the kinds that ask."""
    project.config(
        {
            "profiles": {"cloud": {"workers": {"b-train": "b-gpu", "b-more": "b-gpu"}}, "lab": {}},
            "select": {"default": "cloud"},
        }
    )
    project.kind("train", {"one": {"worker-type": "b-train"}, "two": {"worker-type": "b-more"}})
    project.kind("eval", {"one": {"worker-type": "b-train"}})
    first, second = checked(project)
    assert {first["severity"], second["severity"]} == {"warning"}
    assert place(first) == line_of(project, CONFIG, "lab:")
    assert second["message"] == (
        "under this profile nothing places 'b-train', which eval, train asks for"
    )


def test_names_that_are_for_a_profile_alone_are_no_fault(project: Project):
    """A name that one profile sends others to, and no task asks for, need be placed by it alone."""
    lab = {"b-gpu": "lab-machine", "lab-machine": {**DOCKER, "provisioner": "shop-{level}"}}
    project.config({"profiles": {"cloud": {}, "lab": {"workers": lab}}})
    project.kind("train", {"one": {}})
    assert [each["severity"] for each in checked(project)] == []


def test_required_env_is_missing_under_another_profile(project: Project):
    """A task without required env under any profile is an error, which names task and profile."""
    project.config(
        {
            "workers": {"b-gpu": {"env": {"GPUS": "0"}}},
            "profiles": {
                "cloud": {"workers": {"b-train": "b-gpu"}},
                "lab": {"workers": {"b-train": "b-other"}},
            },
            "select": {"default": "cloud"},
            "require": [{"workers": "b-train", "env": "GPUS"}],
        }
    )
    tasks = {"one": {}, "two": {"worker": docker(env={"GPUS": "1"})}}
    project.kind(
        "train", {name: {**each, "worker-type": "b-train"} for name, each in tasks.items()}
    )
    told = of(checked(project, code=1), "error")
    assert place(told) == line_of(project, CONFIG, "- workers: b-train", shift=2)
    assert told["path"] == "workers-config.require[0]"
    assert told["message"].startswith("train-one: GPUS is required on 'b-train' and is not set")
    assert told["message"].endswith("under profile 'lab'")


def test_what_is_wrong_under_several_profiles_is_told_once(project: Project):
    """The same fault of the same tasks names all its profiles, however these are called."""
    project.config(
        {
            "profiles": {"lab": {}, "cloud's": {"extends": "lab"}},
            "select": {"default": "lab"},
            "require": [{"workers": "b-gpu", "env": "GPUS"}],
        }
    )
    project.kind("train", {"one": {}, "two": {}})
    told = of(checked(project, code=1), "error")
    assert told["message"].startswith("train-one and train-two: GPUS is required")
    assert told["message"].endswith(" under profile 'lab' and \"cloud's\"")


def test_required_env_that_every_task_has_of_its_own(project: Project):
    """What the configuration alone leaves in doubt, the tasks settle."""
    project.config(
        {
            "profiles": {"cloud": {"workers": {"b-train": "b-gpu"}}},
            "select": {"default": "cloud"},
            "require": [{"workers": "b-train", "env": "GPUS"}],
        }
    )
    project.kind("train", {"one": {"worker-type": "b-train", "worker": docker(env={"GPUS": "0"})}})
    assert checked(project) == []


def test_required_env_that_a_null_removes(project: Project):
    """The hint says where the null stands."""
    lab = {"levels": [1], "workers": {"b-gpu": {"env": {"GPUS": None}}}}
    project.config(
        {
            "workers": {"b-gpu": {"env": {"GPUS": "0"}}},
            "profiles": {"lab": lab},
            "require": [{"workers": "b-gpu", "env": "GPUS"}],
        }
    )
    project.kind("train", {"one": {}})
    told = of(checked(project, code=1), "error")
    assert (
        told["hint"]
        == "null removes it: " + line_of(project, CONFIG, "GPUS: null").rpartition(":")[0]
    )


def test_a_tasks_own_env_over_the_workers(project: Project):
    """An info with both values points at the task's own, and says where the other stands."""
    project.config(
        {
            "workers": {"b-gpu": {"env": {"GPUS": "0", "SAME": "s"}}},
            "profiles": {"lab": {"levels": [1], "workers": {"b-gpu": {"env": {"GPUS": "7"}}}}},
        }
    )
    project.kind("train", {"one": {"worker": docker(env={"GPUS": "1", "SAME": "s"})}})
    told = of(checked(project), "info")
    assert place(told) == line_of(project, kind_file("train"), "GPUS: '1'")
    first, second = (
        line_of(project, CONFIG, f"GPUS: '{value}'").rpartition(":")[0] for value in "07"
    )
    assert told["message"] == (
        f'train-one: the task\'s own GPUS "1" overrides the worker\'s: "0" ({first}); '
        f'"7" ({second}) under lab'
    )


def test_a_runs_env_over_the_tasks(project: Project):
    """What a run overrides is told with both values, where the kind says its own."""
    project.config({"profiles": {"lab": {"levels": [1]}}})
    project.kind("train", {"one": {"worker": docker(env={"GPUS": "1"})}})
    choice = "{profile: lab, workers: {b-gpu: {env: {GPUS: '2 3'}}}}"
    told = of(checked(project, TASKGRAPH_WORKERS_PROFILE=choice), "info")
    assert place(told) == line_of(project, kind_file("train"), "GPUS: '1'")
    assert told["message"] == (
        'train-one: TASKGRAPH_WORKERS_PROFILE says GPUS "2 3", over the task\'s own "1"'
    )


def test_a_tasks_own_gpus_against_the_machine(project: Project):
    """More GPUs in a kind than its machines have points at the kind's value."""
    project.config({"workers": {"b-gpu": {"resources": {"gpus": 1}}}})
    project.kind("train", {"one": {"worker": docker(env={"GPUS": "0 1"})}})
    told = of(checked(project), "warning")
    assert place(told) == line_of(project, kind_file("train"), "GPUS: 0 1")
    assert told["message"].startswith("train-one: GPUS '0 1' names 2 GPUs")


def test_gpus_of_the_configuration_are_told_once(project: Project):
    """What the configuration itself says wrongly is not told again for each task."""
    machine = {"env": {"GPUS": "0 1"}, "resources": {"gpus": 1}}
    project.config({"workers": {"b-gpu": machine}})
    project.kind("train", {"one": {}, "two": {}})
    told = of(checked(project), "warning")
    assert place(told) == line_of(project, CONFIG, "GPUS: 0 1")


def test_a_machine_type_of_a_message_is_asked_for(project: Project):
    """What dispatch sends its requests to is used, whatever the graph asks for."""
    project.config(
        {
            "workers": {"b-cpu": {"env": {"A": "b"}}},
            "dispatch": {"skus": {"NC6": "b-cpu"}, "images": [".*"]},
        }
    )
    project.kind("train", {"one": {}})
    assert checked(project) == []


@pytest.mark.parametrize("chosen", [None, "lab"])
def test_a_field_that_another_implementation_does_not_know(project: Project, chosen: str | None):
    """A swap that a run would refuse, now or under another profile, points at the entry."""
    lab = {"levels": [1], "workers": {"b-gpu": {"implementation": "generic-worker"}}}
    project.config({"profiles": {"lab": lab}, "select": {"default": chosen}})
    project.kind("train", {"one": {}})
    told = of(checked(project, code=1), "error")
    assert place(told) == line_of(project, CONFIG, "implementation: generic-worker")
    assert told["message"].startswith("train-one: generic-worker knows no worker field")


def test_entries_that_no_task_uses(project: Project):
    """Entries for nothing point at themselves, also one that is protected; used ones don't."""
    project.config(
        {
            "workers": {"b-cpu": {"env": {"A": "b"}}, "b-gpu": {"env": {"A": "b"}}},
            "profiles": {
                "cloud": {"workers": {"b-train": "b-gpu", "b-never": "b-cpu"}},
                "lab": {"levels": [1], "extends": "cloud", "workers": {"b-other": "b-gpu"}},
            },
            "select": {"default": "cloud"},
            "protect": {"workers": ["b-other"]},
        }
    )
    project.kind("train", {"one": {"worker-type": "b-train"}, "two": {"worker-type": "b-other"}})
    found = checked(project)
    assert {each["severity"] for each in found} == {"warning"}
    assert [place(each) for each in found] == [
        line_of(project, CONFIG, "b-cpu:", 2),
        line_of(project, CONFIG, "b-never"),
        line_of(project, CONFIG, "b-other:", 2),
    ]
    assert found[0]["message"] == (
        "no task of this graph gets anything from 'b-cpu', under any profile"
    )


def test_an_entry_that_no_name_matches_is_told_once(project: Project):
    """What the loader tells already is not told again."""
    project.config({"workers": {"b-otter": {"env": {"A": "b"}}}})
    project.kind("train", {"one": {}})
    told = of(checked(project), "warning")
    assert told["hint"] == "did you mean 'b-other'?"


def test_a_profile_is_tried_at_its_own_levels(project: Project):
    """A profile for level 1 alone needs no branch for the level 3 that is looked at."""
    lab = {"b-gpu": {"worker-type": {"by-level": {"1": "lab"}}}}
    project.config({"profiles": {"lab": {"levels": [1], "workers": lab}}})
    project.kind("train", {"one": {}})
    assert checked(project, "--level", "3") == []


@pytest.mark.parametrize(
    ("pool", "severity"), [("b-gpu", "warning"), ("b-elsewhere", "info")], ids=str
)
def test_tasks_that_bypass_placement(project: Project, pool: str, severity: str):
    """A kind without our transforms is told; as a warning where a profile would move its pool."""
    project.config({"profiles": {"lab": {"levels": [1], "workers": {"b-gpu": "shop/lab"}}}})
    project.kind("train", {"one": {}})
    project.write("taskcluster/raw_kind.py", RAW)
    raw = {"loader": "taskgraph.loader.transform:loader", "transforms": ["raw_kind:transforms"]}
    project.write(kind_file("raw"), {**raw, "tasks": {"a": {"pool": pool}}})
    told = of(checked(project), severity)
    assert place(told) == line_of(project, kind_file("raw"), "- raw_kind", shift=2)
    assert "take raw-a through the `run` and `task` transforms" in told["message"]
    assert f"it stays on shop-1/{pool}" in told["message"]
    assert ("where profile 'lab' moves what is there" in told["message"]) == (pool == "b-gpu")


def test_a_kind_that_can_not_be_loaded(project: Project):
    """It points at its kind.yml; faults of the others are told, but not what nobody asks for."""
    project.config({"profiles": {"cloud": {"workers": {"b-train": "b-gpu"}}}})
    project.kind("align", {"one": {"run": {"using": "no-such-thing"}}})
    project.kind("train", {"one": {"worker-type": "b-trian"}}, **{"kind-dependencies": ["align"]})
    first, second = checked(project, code=1)
    assert (first["file"], first["line"]) == (kind_file("align"), None)
    assert first["message"].startswith("kind 'align' can't be loaded: ")
    assert "no-such-thing" in first["message"]
    assert second["file"] == kind_file("train")


def test_a_profile_at_a_level_that_is_not_its_own(project: Project):
    """The chosen profile's levels are held against the level of the parameters."""
    project.config(
        {
            "profiles": {"lab": {"levels": [3], "workers": {"b-gpu": "shop-3/lab"}}},
            "select": {"default": "lab"},
        }
    )
    project.kind("train", {"one": {}})
    told = of(checked(project), "warning")
    assert place(told) == line_of(project, CONFIG, "levels:")
    assert checked(project, "--level", "3") == []


def test_every_fault_is_found_at_once(project: Project):
    """Faults of several sorts and files are told together, by file and line."""
    project.config(
        {
            "workers": {"b-gpu": {"env": {"GPUS": "0 1"}, "resources": {"gpus": 1}}},
            "profiles": {"lab": {"workers": {"b-gpu": "shop/lab"}}},
        },
        aliases={**ALIASES, "b-free": {**DOCKER, "provisioner": "shop"}},
    )
    project.kind("train", {"one": {"worker-type": "b-gup"}, "two": {"worker-type": "b-free"}})
    found = checked(project, code=1)
    assert [(each["file"], each["severity"]) for each in found] == [
        (CONFIG, "info"),
        (CONFIG, "warning"),
        (CONFIG, "warning"),
        (CONFIG, "warning"),
        (CONFIG, "warning"),
        (kind_file("train"), "error"),
    ]
    lines = [each["line"] for each in found[:5]]
    assert lines == sorted(lines)


def test_the_tasks_are_those_of_a_run(project: Project, tmp_path: Path):
    """Under a choice by kind, each task is looked at under the profile of its own kind."""
    del tmp_path
    project.config(
        {
            "profiles": {
                "cloud": {"workers": {"b-train": "b-gpu"}},
                "bare": {"workers": {"b-train": "b-other"}},
            },
            "select": {"default": {"default": "cloud", "eval": "bare"}},
        }
    )
    project.kind("train", {"one": {"worker-type": "b-train"}})
    project.kind("eval", {"one": {"worker-type": "b-train"}})
    assert checked(project) == []
