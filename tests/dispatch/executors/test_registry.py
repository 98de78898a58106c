"""How an executor is found by its name."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from taskgraph_workers.dispatch.executors import GROUP, Setting, find
from taskgraph_workers.dispatch.executors.command import CommandExecutor
from taskgraph_workers.dispatch.executors.local import LocalExecutor
from taskgraph_workers.errors import ConfigError
from taskgraph_workers.model import Commands, Dispatch


def setting(folder: Path, **dispatch: Any) -> Setting:
    return Setting(Dispatch(**dispatch), str(folder), {"PATH": ""}, lambda: 5.0)


def offered(monkeypatch: pytest.MonkeyPatch, **loads: Any) -> list[str]:
    """Entry points of these names; which were looked up."""
    asked: list[str] = []
    points = [SimpleNamespace(name=n, value=f"m:{n}", load=load) for n, load in loads.items()]

    def found(group: str) -> list[Any]:
        asked.append(group)
        return points

    monkeypatch.setattr("taskgraph_workers.offered.offered", found)
    return asked


def test_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The machine itself, and the site's commands; nothing else is looked up for them."""
    asked = offered(monkeypatch)
    local = find("local", setting(tmp_path))
    assert isinstance(local, LocalExecutor)
    assert (local.name, local.jobs, local.clock()) == ("local", str(tmp_path / "jobs"), 5.0)
    made = find("vms", setting(tmp_path, executors={"vms": Commands("vms")}))
    assert isinstance(made, CommandExecutor)
    assert (made.name, made.environ) == ("vms", {"PATH": ""})
    assert asked == []


def test_somebody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is made of the setting."""
    made = SimpleNamespace(name="k8s")
    asked = offered(monkeypatch, k8s=lambda: lambda given: (made, given))
    whole = setting(tmp_path)
    assert find("k8s", whole) == (made, whole)
    assert asked == [GROUP]


def test_one_that_there_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With what there is, and where it is asked for."""
    offered(monkeypatch, k8s=lambda: None)
    known = setting(tmp_path, executors={"vms": Commands("vms")}, executor="vmss")
    with pytest.raises(ConfigError) as error:
        find("vmss", known)
    told = "workers-config.dispatch.executor: there is no executor 'vmss'"
    assert str(error.value) == f"{told}\n    hint: did you mean 'vms'?"
    with pytest.raises(ConfigError, match="there is: k8s, local, vms"):
        find("zebra", known)


def test_one_that_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its user is told where it is from."""

    def load() -> Any:
        raise ImportError("no module named boto3")

    offered(monkeypatch, aws=load)
    with pytest.raises(
        ConfigError, match=r"'aws' \(m:aws\) can't be loaded: no module named boto3"
    ):
        find("aws", setting(tmp_path))
