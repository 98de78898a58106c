"""Where a request runs, and what its trainer is told."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers.config import check
from taskgraph_workers.dispatch import place
from taskgraph_workers.dispatch.model import Message, Placed, Refused, Start
from taskgraph_workers.errors import WorkersError
from taskgraph_workers.model import Choice, Config, Context
from taskgraph_workers.resolve import resolve

WHOLE = """
workers:
    aliases:
        b-gpu: &gcp
            provisioner: '{trust-domain}-{level}'
            implementation: docker-worker
            os: linux
            worker-type: '{alias}'
        b-gpu-4: *gcp
workers-config:
    workers:
        b-gpu: {env: {GPUS: "0", WORKSPACE: "12000"}, resources: {gpus: 1, gpu-memory: 16GiB}}
        b-gpu-4: {env: {GPUS: "0 1 2 3", WORKSPACE: "12000"}, resources: {gpus: 4}}
    profiles:
        cloud: {}
        onprem:
            levels: [1]
            workers:
                b-gpu-4:
                    provisioner: lab
                    worker-type: snakepit
                    env:
                        GPUS: {detect: gpu-indices, at-least: 2}
                        WORKSPACE: {detect: inherited}
                    worker: {max-run-time: 2592000}
    select: {default: {default: cloud, evaluate: onprem}}
    require:
        - {workers: .*gpu.*, env: [GPUS, WORKSPACE]}
    dispatch:
        skus: {ND6: b-gpu-4, NC6: b-gpu, nc6: b-gpu-4, 6: b-gpu}
        images: ['cwolff/my_keras_model(:[\\w.-]+)?', 'a/x|b/y', 'registry\\.example\\.com/.*']
        task:
            max-run-time: {by-image: {cwolff/.*: {by-sku: {ND6: 2h, default: 1h}}, default: 604800}}
            retries: {by-sku: {ND6: 2, default: 1}}
            scopes: {by-image: {'cwolff/.*|a/x': [secrets:get:project/keras], default: []}}
            env: {EXTRA: {by-image: {a/x: x, default: y}}, TRAINING_REQUEST_ID: mine}
"""

MESSAGE = Message("r-1", "ND6", "cwolff/my_keras_model", "images-3-15-2018", "models/1", "d", {})


def config(changes: str = "", whole: str = WHOLE) -> Config:
    """The configuration, with these lines below `dispatch` besides."""
    data = yaml.safe_load(whole)
    data["workers-config"]["dispatch"].update(yaml.safe_load(textwrap.dedent(changes)) or {})
    made, problems = check(data)
    assert made is not None, list(map(str, problems))
    return made


def ask(
    made: Config | None = None, choice: Choice | None = None, **fields: Any
) -> Placed | Refused:
    asked = Message(**{**MESSAGE.__dict__, **fields})
    return place.place(made or config(), asked, choice, "proj")


def job(*args: Any, **fields: Any) -> Placed:
    made = ask(*args, **fields)
    assert isinstance(made, Placed), made
    return made


@pytest.fixture(autouse=True)
def no_choice(monkeypatch: pytest.MonkeyPatch):
    for name in ("TASKGRAPH_WORKERS_PROFILE", "TASK_ID"):
        monkeypatch.delenv(name, raising=False)


def test_all_that_is_placed():
    """A SKU leads to a worker name; env, resources and limits come along; the message is told."""
    assert job() == Placed(
        request_id="r-1",
        image="cwolff/my_keras_model",
        sku="ND6",
        worker="b-gpu-4",
        pool="proj-1/b-gpu-4",
        env={
            "GPUS": "0 1 2 3",
            "WORKSPACE": "12000",
            "EXTRA": "y",
            "TRAINING_REQUEST_ID": "r-1",
            "TRAINING_IMAGE": "cwolff/my_keras_model",
            "TRAINING_IMAGES_CONTAINER": "images-3-15-2018",
            "TRAINING_BASE_MODEL_BLOB_ID": "models/1",
        },
        resources={"gpus": 4},
        max_run_time_s=7200,
        retries=2,
        scopes=("secrets:get:project/keras",),
        profile="cloud",
        start=Start(),
    )


def test_how_it_is_started_here():
    """As the configuration says that accepts it: a command by the whole name, else without tag."""
    local = "local: {engine: podman, options: [--shm-size=8g], commands: {%s: [x], '%s:2': [y]}}"
    made = config(local % (("cwolff/my_keras_model",) * 2))
    for tag, command in (("", "x"), (":1", "x"), (":2", "y")):
        start = Start("podman", ("--shm-size=8g",), (command,))
        assert job(made, image=f"cwolff/my_keras_model{tag}").start == start
    assert job(made, image="a/x").start == Start("podman", ("--shm-size=8g",))


def test_no_base_model_is_empty_text():
    """So that a trainer always has the variable."""
    assert job(base_model=None).env["TRAINING_BASE_MODEL_BLOB_ID"] == ""


@pytest.mark.parametrize(
    ("sku", "worker"), [("ND6", "b-gpu-4"), ("NC6", "b-gpu"), ("nc6", "b-gpu-4"), ("6", "b-gpu")]
)
def test_skus_are_exact(sku: str, worker: str):
    """Two that differ in their case alone are two."""
    assert job(sku=sku).worker == worker


@pytest.mark.parametrize("sku", ["Nd6", "ND6 ", "N.6", "ND", "default", "b-gpu-4", ""])
def test_an_unknown_sku_is_refused(sku: str):
    """Neither patterns, nor a default, nor worker names count."""
    refused = ask(sku=sku)
    assert isinstance(refused, Refused)
    assert (refused.code, refused.digest, refused.request_id) == ("unknown-sku", "d", "r-1")
    assert refused.reason.startswith("this trainingVmSku is not known here; ")


@pytest.mark.parametrize(
    ("sku", "hint"),
    [("ND6 ", "did you mean 'ND6'?"), ("Standard", "there is: 6, NC6, ND6, nc6")],
)
def test_a_sender_is_told_what_it_may_ask_for(sku: str, hint: str):
    """Names of the configuration; what the message says is not repeated."""
    refused = ask(sku=sku)
    assert isinstance(refused, Refused)
    assert refused.reason == f"this trainingVmSku is not known here; {hint}"


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ("cwolff/other", "this trainingImage is not allowed here"),
        ("evil/cwolff/my_keras_model", "this trainingImage is not allowed here"),
        ("cwolff/my_keras_model:1:2", "trainingImage is no name of an image"),
        ("a/xevil", "this trainingImage is not allowed here"),
        ("registry.example.com/../a", "trainingImage is no name of an image"),
        ("registry.example.com/a b", "trainingImage is no name of an image"),
        ("registryXexample.com/a", "this trainingImage is not allowed here"),
        ("a/x:2", "this trainingImage is not allowed here with this tag or digest"),
        ("docker://a/x", "trainingImage is no name of an image: it begins with a scheme"),
        ("a/x ", "trainingImage is no name of an image: it begins or ends with a blank"),
        ("A/X", "trainingImage is no name of an image: it has capital letters"),
    ],
)
def test_an_image_that_is_not_allowed(image: str, reason: str):
    """First it has to be the name of an image, then one pattern has to match all of it."""
    assert ask(image=image) == Refused("image-not-allowed", reason, "d", "r-1")


@pytest.mark.parametrize(
    ("image", "more"), [("me/my_modle", "; did you mean 'me/my_model'?"), ("gpu/xyz:1", "")]
)
def test_a_sender_is_told_which_image_is_near(image: str, more: str):
    """Of those that are named; a pattern has no name to tell."""
    made = config("images: [me/my_model, 'gpu/.*[ab]']")
    refused = ask(made, image=image)
    assert isinstance(refused, Refused)
    assert refused.reason == f"this trainingImage is not allowed here{more}"
    assert (refused.sku, refused.image) == ("ND6", image)


def test_values_by_image_and_sku():
    """Scopes included; a pattern of these matches whole names."""
    assert job(sku="NC6").max_run_time_s == 3600
    assert (job(sku="NC6").retries, job(image="b/y").scopes) == (1, ())
    assert job(image="a/x").scopes == ("secrets:get:project/keras",)
    assert job(image="a/x").env["EXTRA"] == "x"
    other = job(image="registry.example.com/cwolff/a")
    assert (other.max_run_time_s, other.scopes) == (604800, ())


def test_a_value_without_a_branch_refuses():
    """It is no reason to guess."""
    made = config("task: {retries: {by-sku: {NC6: 1}}}")
    assert job(made, sku="NC6").retries == 1
    assert ask(made) == Refused(
        "no-placement", "no branch for sku 'ND6', and no default", "d", "r-1"
    )


def test_nothing_said_of_the_task():
    """Then there is no limit, and nothing is tried again."""
    plain = job(config("task: {}"))
    assert (plain.max_run_time_s, plain.retries, plain.scopes) == (None, 0, ())


# --- the choice -----------------------------------------------------------------------------


def moved(made: Config, **env: str) -> str | None:
    return place.choice_of(made, environ=env).profile


def test_a_swap_of_profiles_moves_requests():
    """The same rules as for a graph's tasks: pool, env and limits of the other machines."""
    there = job(choice=Choice("onprem"))
    assert (there.pool, there.worker, there.profile) == ("lab/snakepit", "b-gpu-4", "onprem")
    assert there.max_run_time_s == 2592000
    assert {"GPUS", "WORKSPACE"}.isdisjoint(there.env)
    assert there.detect == {
        "GPUS": {"detect": "gpu-indices", "at-least": 2},
        "WORKSPACE": {"detect": "inherited"},
    }


def test_as_the_graph_places(monkeypatch: pytest.MonkeyPatch):
    """Pool, env and resources are those of a task of the kind with the same worker name."""
    made = config("kind: evaluate")
    placement = resolve(made, "b-gpu-4", Choice("onprem"), Context(kind="evaluate"))
    assert job(made).pool == placement.pool
    monkeypatch.setenv("TASKGRAPH_WORKERS_PROFILE", "cloud")
    assert job(made).pool == "proj-1/b-gpu-4"


def test_who_chooses():
    """--profile beats the variable, which beats select.default; each may speak by kind."""
    made, kind = config(), config("kind: evaluate")
    assert (moved(made), moved(kind)) == ("cloud", "onprem")
    assert moved(made, TASKGRAPH_WORKERS_PROFILE="onprem") == "onprem"
    assert moved(made, TASKGRAPH_WORKERS_PROFILE="{evaluate: cloud}") == "cloud"
    assert moved(kind, TASKGRAPH_WORKERS_PROFILE="{evaluate: cloud}") == "cloud"
    environ = {"TASKGRAPH_WORKERS_PROFILE": "cloud"}
    assert place.choice_of(made, "onprem", environ=environ).profile == "onprem"
    run = place.choice_of(made, "{workers: {b-gpu-4: {env: {GPUS: '2 3'}}}}", environ={})
    assert (run.profile, job(choice=run).env["GPUS"]) == ("cloud", "2 3")


@pytest.mark.parametrize(
    ("profile", "environ", "below", "told"),
    [
        ("onprm", {}, "", "there is no profile 'onprm'"),
        ("{a: [", {}, "", "--profile is no YAML"),
        ("", {}, "", "--profile is empty"),
        (None, {"TASKGRAPH_WORKERS_PROFILE": "onprm"}, "", "there is no profile 'onprm'"),
        (
            None,
            {"TASKGRAPH_WORKERS_PROFILE": "onprem", "TASK_ID": "x"},
            "",
            "TASKGRAPH_WORKERS_PROFILE is set inside a task",
        ),
        ("onprem", {}, "level: 3", "profile 'onprem' is for level 1, and this is level 3"),
    ],
)
def test_a_choice_that_is_refused(profile, environ, below, told):
    """Before any request is taken."""
    with pytest.raises(WorkersError) as error:
        place.choice_of(config(below), profile, environ=environ)
    assert told in str(error.value)


def test_the_argument_is_fine_inside_a_task():
    """It is on the task's own record."""
    assert place.choice_of(config(), "onprem", environ={"TASK_ID": "x"}).profile == "onprem"


# --- guards ---------------------------------------------------------------------------------


def test_required_env():
    """A request whose machine is not told what it needs is refused; the task's env counts."""
    bare = WHOLE.replace('{env: {GPUS: "0", WORKSPACE: "12000"}, ', "{")
    made = config(whole=bare)
    refused = ask(made, sku="NC6")
    assert isinstance(refused, Refused)
    assert refused.code == "no-placement"
    assert "GPUS is required on 'b-gpu' and is not set" in refused.reason
    assert "WORKSPACE is required" in refused.reason
    told = [problem.text for problem in place.problems(made, Choice("cloud"))]
    assert [text.split(" on ")[0] for text in told] == ["GPUS is required", "WORKSPACE is required"]
    given_ = config("task: {env: {GPUS: '0', WORKSPACE: '1'}}", bare)
    assert job(given_, sku="NC6").env["WORKSPACE"] == "1"
    assert place.problems(given_, Choice("cloud")) == []


def test_problems_before_anything_is_taken():
    """No SKU, no image, a name that leads nowhere under this profile."""
    assert place.problems(config(), Choice("cloud")) == []
    told = [each.message for each in place.problems(config("{skus: {}, images: []}"), Choice())]
    assert told == [
        "no machine type is allowed, so every request is refused",
        "no image is allowed, so every request is refused",
    ]
    missing = config(
        "skus: {ND6: b-new}",
        WHOLE.replace("cloud: {}", "cloud: {}\n        new: {workers: {b-new: b-gpu}}"),
    )
    (problem,) = place.problems(missing, Choice("cloud"))
    assert "'b-new' leads nowhere under profile 'cloud'" in problem.message
    assert place.problems(missing, Choice("new")) == []
    assert isinstance(ask(missing, Choice("cloud")), Refused)


def test_without_dispatch():
    """Nothing can be asked for, and somebody has to be told so."""
    with pytest.raises(WorkersError, match="says nothing of dispatch"):
        place.choice_of(Config())
    assert [str(each) for each in place.problems(Config(), Choice())] != []


@given(
    st.sampled_from(["ND6", "NC6"]) | st.text(),
    st.sampled_from(["a/x", "registry.example.com/b:1"]) | st.text(),
    st.text(max_size=40),
)
def test_nothing_is_ever_replaced(sku: str, image: str, container: str):
    """Whatever is asked for: exactly that, or refused; and never more env than there are names."""
    made = CONFIG
    asked = Message("r", sku, image, container, None, "d", {})
    found = place.place(made, asked, Choice("cloud"), "proj")
    if isinstance(found, Placed):
        assert (found.sku, found.image) == (sku, image)
    else:
        assert found.request_id == "r"
        assert found.code in {"unknown-sku", "image-not-allowed"}


CONFIG = config()
