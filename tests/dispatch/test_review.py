"""What ``check`` says of ``dispatch``, which the loader lets pass."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from taskgraph_workers.cli import main
from taskgraph_workers.config import check
from taskgraph_workers.dispatch import place
from taskgraph_workers.dispatch.executors import GROUP, Setting, find
from taskgraph_workers.dispatch.executors.base import trainer_env
from taskgraph_workers.dispatch.model import Message
from taskgraph_workers.dispatch.review import CONTRACT, review
from taskgraph_workers.errors import ConfigError
from taskgraph_workers.model import Config

BASE: dict[str, Any] = {"skus": {"ND6": "gpu"}, "images": ["me/one", "me/t.*"]}
ALIASES = {"gpu": {"provisioner": "shop", "worker-type": "lab", "implementation": "x", "os": "x"}}
NONE = {"local": {"engine": "none"}}
ONE = {"local": {"engine": "none", "commands": {"me/one": ["train"]}}}
TWO = {"local": {"engine": "none", "commands": {"me/two": ["train"]}}}
WITHOUT = "'me/one' has no command: its requests would fail"


def written(**dispatch: Any) -> dict[str, Any]:
    """All that stands in the file."""
    ours = {"dispatch": {**BASE, **dispatch}}
    return {"workers-config": ours, "workers": {"aliases": ALIASES}}


def read(**dispatch: Any) -> Config:
    """A configuration that the loader finds no error in."""
    config, _ = check(written(**dispatch))
    assert config is not None
    return config


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({}, []),
        (ONE, []),
        ({"task": {"env": {"TRAINING_LEVEL": "7"}}}, []),
        ({"executor": "lab"}, ["error: executor: there is no executor 'lab'"]),
        ({"images": []}, ["error: no image is allowed, so every request is refused"]),
        (NONE, ["warning: local.engine: no engine runs images, and no image has a command"]),
        (TWO, [f"warning: images[0]: no engine runs images, and {WITHOUT}"]),
        ({**TWO, "images": ["me/two", "me/.*"]}, []),
        (
            {"task": {"env": {"TRAINING_RUN": "7"}}},
            ["warning: task.env.TRAINING_RUN: every trainer is told TRAINING_RUN by"],
        ),
    ],
)
def test_what_is_said(said: dict[str, Any], told: list[str]):
    """Each with its place; nothing where nothing is wrong."""
    found = []
    for each in review(read(**said)):
        where = ".".join(map(str, each.path[2:])).replace(".0", "[0]")
        found.append(f"{each.severity}: {where}: {each.text}".replace(": : ", ": "))
    assert [bool(one.startswith(two)) for one, two in zip(found, told)] == [True] * len(told)
    assert len(found) == len(told), found


def test_another_executor_runs_what_has_no_command():
    """A site's own knows how; the engine is this machine's."""
    commands = {act: ["lab", act, "{key}"] for act in ("submit", "find", "poll", "cancel")}
    assert review(read(**NONE, executor="lab", executors={"lab": commands})) == []


def test_what_check_refuses_is_what_a_dispatcher_refuses(tmp_path: Path):
    """The same words, from where the executor is made."""
    config = read(executor="lab")
    assert config.dispatch is not None
    with pytest.raises(ConfigError, match="there is no executor 'lab'") as caught:
        find("lab", Setting(config.dispatch, str(tmp_path)))
    (problem,) = review(config)
    assert caught.value.problems == (problem.at("", 0, 0),)


def test_an_executor_of_another_package(monkeypatch: pytest.MonkeyPatch):
    """It is there if it is installed; it is not loaded."""

    class Point:
        name = "lab"

    monkeypatch.setattr(
        "taskgraph_workers.offered.offered", lambda group: [Point] if group == GROUP else []
    )
    assert review(read(executor="lab")) == []


def test_the_names_of_the_contract():
    """All that a trainer is told by the dispatcher and its job; the run and the file by name."""
    message = Message("r", "ND6", "me/one", "images", None, "", {})
    told = trainer_env(SimpleNamespace(env=place._contract(message), attempt=1))
    assert {*told, "TRAINING_RUN", "TRAINING_PROGRESS_FILE"} == set(CONTRACT)


def test_the_command_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """``check`` ends with 1, and names the line."""
    file = tmp_path / "c.yml"
    file.write_text(yaml.safe_dump(written(executor="lab")))
    assert main(["check", "--config", str(file)]) == 1
    shown = capsys.readouterr().out
    assert "workers-config.dispatch.executor\n" in shown
    assert "there is no executor 'lab'\n" in shown
