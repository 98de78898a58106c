"""What `check` says of tasks whose names are keyed, and of fields laid over their `worker`."""

from __future__ import annotations

import json

import pytest

from tests.cli.commands import command, place
from tests.graph.project import Project
from tests.graph.test_review import CONFIG, checked, kind_file, line_of, of


def test_a_keyed_name_is_the_one_that_holds_here(project: Project):
    """A kind that asks by level or profile is loaded as a run does, and what it asks is known."""
    project.config({"require": [{"workers": "b-gpu", "env": ["GPUS"]}]})
    keyed = {"by-level": {"1": "b-gpu", "default": "b-other"}}
    project.kind("train", {"one": {"worker-type": keyed}})
    told = of(checked(project, code=1), "error")
    assert told["message"].startswith("train-one: GPUS is required on 'b-gpu'")
    assert checked(project, "--level", "3") == []


def test_a_keyed_name_that_has_no_branch_here(project: Project):
    """It points into the kind.yml, once for all tasks, and the rest of the kind is looked at."""
    project.config({"profiles": {"lab": {"levels": [1], "workers": {}}}})
    keyed = {"by-level": {"3": "b-gpu"}}
    tasks = {"one": {"worker-type": keyed}, "two": {"worker-type": keyed}}
    project.kind("train", {**tasks, "three": {"worker-type": "b-gup"}})
    unpicked, unknown = (each for each in checked(project, code=1) if each["severity"] == "error")
    assert place(unpicked) == line_of(project, kind_file("train"), "'3': b-gpu")
    assert unpicked["message"] == (
        "train-one and train-two: no branch for level '1', and no default"
    )
    assert place(unknown) == line_of(project, kind_file("train"), "worker-type: b-gup")


@pytest.mark.parametrize("chosen", [None, "lab"])
def test_a_field_that_the_configuration_lays_on_in_vain(project: Project, chosen: str | None):
    """A `worker` field that no task has of itself is told once, where it is written."""
    said = {"b-gpu": {"worker": {"max-runtime": 7200}}}
    profiles = {"lab": {"workers": said}, "big": {"extends": "lab"}}
    project.config({"profiles": profiles, "select": {"default": chosen}})
    project.kind("train", {"one": {}, "two": {}})
    told = of(checked(project, code=1), "error")
    assert place(told) == line_of(project, CONFIG, "max-runtime")
    assert told["message"] == (
        "train-one and train-two: docker-worker knows no worker field 'max-runtime', which profile "
        "lab gives 'b-gpu' on shop-1/b-gpu under profile 'lab' and 'big'"
    )
    assert told["hint"] == "did you mean 'max-run-time'?"


def test_what_only_follows_from_a_wrong_choice(project: Project):
    """Of a choice that is refused, that is told, and not what its tasks then lack."""
    lab = {"workers": {"b-train": {"to": "b-gpu", "env": {"GPUS": "0"}}}}
    required = [{"workers": "b-train", "env": ["GPUS"]}]
    project.config({"profiles": {"lab": lab}, "require": required})
    project.kind("train", {"one": {"worker-type": "b-train"}, "two": {"worker-type": "b-trian"}})
    wrong, unknown = checked(project, code=1, TASKGRAPH_WORKERS_PROFILE="labb")
    assert wrong["message"] == "there is no profile 'labb'"
    assert place(unknown) == line_of(project, kind_file("train"), "worker-type: b-trian")


def test_a_keyed_name_is_picked_anew_for_each_profile(project: Project):
    """What a task asks for under another profile is held against that profile, and is in use."""
    cloud = {"workers": {"b-cloud": "b-gpu"}}
    lab = {"levels": [1], "workers": {"b-lab": {"to": "b-gpu", "env": {"GPUS": "0"}}}}
    prod = {"levels": [3], "workers": {"b-prod": "b-gpu"}}
    project.config(
        {
            "profiles": {"cloud": cloud, "lab": lab, "prod": prod},
            "select": {"default": "cloud"},
            "require": [{"workers": "b-lab|b-prod", "env": ["GPUS"]}],
        }
    )
    by_level = {"by-level": {"3": "b-prod", "default": "b-cloud"}}
    keyed = {"by-profile": {"lab": "b-lab", "default": by_level}}
    project.kind("train", {"one": {"worker-type": keyed}})
    (told,) = checked(project, code=1)
    assert told["message"] == (
        "train-one: GPUS is required on 'b-prod' and is not set (chain: b-prod -> b-gpu) "
        "under profile 'prod'"
    )
    done = command(
        *["explain", "--task", "train-one", "GPUS", "--profile", "lab", "-p", "params.yml"],
        cwd=project.folder,
    )
    assert "train-one, which asks for b-lab" in done.stdout


def test_a_keyed_name_that_has_no_branch_under_another_profile(project: Project):
    """It points into the kind.yml, and says under which profile."""
    profiles = {name: {"levels": [1], "workers": {}} for name in ("cloud", "lab")}
    project.config({"profiles": profiles, "select": {"default": "cloud"}})
    project.kind("train", {"one": {"worker-type": {"by-profile": {"cloud": "b-gpu"}}}})
    told = of(checked(project, code=1), "error")
    assert place(told) == line_of(project, kind_file("train"), "cloud: b-gpu")
    assert told["message"] == "train-one: no branch for profile 'lab', and no default"


def test_an_override_that_no_task_asks_for(project: Project):
    """What a run says of a name that is asked for nowhere is told, with the nearest that is."""
    project.config({"profiles": {"lab": {"levels": [1], "workers": {"b-train": "b-gpu"}}}})
    project.kind("train", {"one": {"worker-type": "b-train"}})
    over = {"b-tarin": "b-gpu", "b-train": {"env": {"A": "1"}}, "b-gpu": {"env": {"B": "1"}}}
    choice = json.dumps({"profile": "lab", "workers": over})
    told = of(checked(project, TASKGRAPH_WORKERS_PROFILE=choice), "warning")
    assert told["message"] == (
        "TASKGRAPH_WORKERS_PROFILE speaks of 'b-tarin', which no task of this graph asks for"
    )
    assert told["hint"] == "did you mean 'b-train'?"


OWN = "def register(graph_config):\n    pass\n"


@pytest.mark.parametrize(
    ("register", "at", "hint"),
    [
        (None, "taskgraph:", "add register: taskgraph_workers:register"),
        (
            "shop:register",
            "register: shop:register",
            "call taskgraph_workers.register(graph_config) at the end of shop:register",
        ),
    ],
)
def test_a_project_that_does_not_register_us(
    project: Project, register: str | None, at: str, hint: str
):
    """Nothing would ever move: check, plan and explain say why, and say no other reason."""
    said = {"profiles": {"lab": {"levels": [1], "workers": {"b-gpu": "shop/lab"}}}}
    project.config(said, register=register)
    project.write("taskcluster/shop.py", OWN)
    project.kind("train", {"one": {}})
    (told,) = checked(project)
    assert (told["severity"], place(told)) == ("warning", line_of(project, CONFIG, at))
    assert told["hint"] == hint
    what = "nothing registers taskgraph-workers, so no task of this project is placed by it"
    for arguments in (["plan", "--profile", "lab"], ["explain", "--task", "train-one"]):
        done = command(*arguments, "-p", "params.yml", cwd=project.folder)
        assert done.stderr.count(what) == 1


def test_a_kind_that_names_us_itself_needs_no_register(project: Project):
    """What is named in a kind.yml places the tasks of that kind."""
    said = {"profiles": {"lab": {"levels": [1], "workers": {"b-gpu": "shop/lab"}}}}
    project.config(said, register=None)
    ours = "taskgraph_workers.transforms:transforms"
    project.kind("train", {"one": {}}, transforms=[ours])
    assert checked(project) == []
    done = command("plan", "--profile", "lab", "-p", "params.yml", cwd=project.folder)
    assert "1 task moves" in done.stdout
    assert "registers" not in done.stderr
