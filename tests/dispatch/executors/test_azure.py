"""The example for virtual machines of Azure, on a stand-in for it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from local_jobs import ROOT

from taskgraph_workers.config import load_file
from taskgraph_workers.dispatch import place
from taskgraph_workers.dispatch.executors import Setting, find
from taskgraph_workers.dispatch.executors.base import Unreachable
from taskgraph_workers.dispatch.executors.command import CommandExecutor
from taskgraph_workers.dispatch.executors.submits import claimed
from taskgraph_workers.dispatch.message import key_of
from taskgraph_workers.dispatch.model import VM_DESTROYED, Job, Message, Placed
from taskgraph_workers.model import LOCAL

STAND_IN = ROOT / "tests" / "stand_ins" / "azure" / "az.py"
KEY = key_of("r", 1)
NAME = f"tw-{KEY}"
IMAGE = "registry.example.com/trainers/a:1"


class Azure:
    """A stand-in for Azure, and the example's executor for it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "azure"
        programs = folder / "bin"
        for each in (self.home, programs):
            each.mkdir()
        for name in ("az", "curl", "docker"):
            line = f'#!/bin/sh\nexec {sys.executable} {STAND_IN} {name} "$@"\n'
            (programs / name).write_text(line)
            (programs / name).chmod(0o755)
        path = f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin"
        self.environ = {"PATH": path, "AZURE": str(self.home), "TASKGRAPH_WORKERS_BROKER": "secret"}
        self.config = load_file("config.yml")
        assert self.config.dispatch is not None
        self.dispatch = self.config.dispatch

    def executor(self) -> CommandExecutor:
        assert self.dispatch.executor != LOCAL
        setting = Setting(self.dispatch, str(self.home / "state"), self.environ)
        made = find(self.dispatch.executor, setting)
        assert isinstance(made, CommandExecutor)
        return made

    def job(self, **fields: Any) -> Job:
        asked = Message("r", "Standard_NC6s_v3", IMAGE, "a 'b' $(c)", None, "d", {})
        choice = place.choice_of(self.config, environ={})
        placed = place.place(self.config, Message(**{**asked.__dict__, **fields}), choice)
        assert isinstance(placed, Placed), placed
        return Job(key=KEY, attempt=1, **vars(placed))

    @property
    def machines(self) -> list[str]:
        return sorted(each.name for each in self.home.glob("tw-*"))

    def go(self, code: int) -> None:
        (self.home / "new").write_text(str(code))
        (self.home / "new").rename(self.home / "go")

    def until(self, executor: CommandExecutor, phase: str) -> Any:
        limit = time.monotonic() + 30
        while True:
            status = executor.poll([KEY])[KEY]
            if status.phase == phase:
                return status
            assert time.monotonic() < limit, status
            time.sleep(0.05)


@pytest.fixture
def azure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Azure]:
    shutil.copytree(ROOT / "examples" / "azure-vms", tmp_path / "example")
    monkeypatch.chdir(tmp_path / "example")
    made = Azure(tmp_path)
    yield made
    made.go(0)  # machines that are left would wait for that for ever


@pytest.mark.parametrize(("code", "phase"), [(0, "succeeded"), (3, "failed")])
def test_a_machine_for_a_request(azure: Azure, code: int, phase: str):
    """It is made, runs the trainer with its variables, tells how that ended, and is deleted."""
    executor = azure.executor()
    assert executor.find(KEY) is None
    handle = executor.submit(azure.job())
    assert (handle, azure.machines) == (KEY, [NAME])
    running = azure.until(executor, "running")
    assert running.machine == f"id-of-{NAME}"
    azure.go(code)
    ended = azure.until(executor, phase)
    assert ended.exit_code == code
    docker = json.loads((azure.home / NAME / "docker").read_text())
    assert docker["argv"][-1] == IMAGE
    assert docker["env"]["TRAINING_IMAGES_CONTAINER"] == "a 'b' $(c)"
    assert docker["env"]["TRAINING_BASE_MODEL_BLOB_ID"] == ""
    assert docker["env"]["GPUS"] == "0"
    executor.release(handle)
    assert azure.machines == []
    assert [fact.name for fact in executor.progress(handle)] == [VM_DESTROYED]
    executor.release(handle)


def test_what_az_is_told(azure: Azure):
    """The size is the SKU; nothing of the message but that and the key is in its argv."""
    executor = azure.executor()
    (azure.home / "no-boot").touch()
    executor.submit(azure.job())
    assert executor.find(KEY) == KEY
    argv = json.loads((azure.home / NAME / "argv").read_text())
    assert argv[argv.index("--size") + 1] == "Standard_NC6s_v3"
    assert argv[argv.index("--name") + 1] == NAME
    assert "$(c)" not in str(argv)
    assert "secret" not in str(argv)
    assert not Path(argv[argv.index("--user-data") + 1]).exists()
    assert executor.poll([KEY])[KEY].phase == "queued"


def test_a_second_machine_is_never_made(azure: Azure):
    """Whoever asks, and also where find did not see the first: the name is taken."""
    executor = azure.executor()
    (azure.home / "no-boot").touch()
    assert executor.submit(azure.job()) == azure.executor().submit(azure.job()) == KEY
    with claimed(executor.submits, KEY) as claim:
        assert executor._submitted(azure.job(), claim).code == 1
    assert azure.machines == [NAME]


def test_a_login_that_has_expired(azure: Azure):
    """Az ends with 1 then: that says nothing of any machine."""
    executor = azure.executor()
    executor.submit(azure.job())
    (azure.home / "expired").touch()
    with pytest.raises(Unreachable, match=r"exit code 1.*refresh token has expired"):
        executor.find(key_of("r", 2))
    for act in (executor.cancel, executor.release):
        with pytest.raises(Unreachable, match=r"exit code 1.*refresh token has expired"):
            act(KEY)
    with pytest.raises(Unreachable):
        executor.submit(replace(azure.job(), key=key_of("r", 2)))
    assert executor.poll([KEY])[KEY].phase == "unknown"
    assert azure.machines == [NAME]
    (azure.home / "expired").unlink()
    assert azure.until(executor, "running")


def test_a_machine_is_canceled(azure: Azure):
    """That is told first; the machine goes when the end is recorded, and is gone when it is."""
    executor = azure.executor()
    executor.submit(azure.job())
    azure.until(executor, "running")
    executor.cancel(KEY)
    assert executor.poll([KEY])[KEY].phase == "canceled"
    (azure.home / "slow").touch()
    with pytest.raises(Unreachable, match="still there"):
        executor.release(KEY)
    assert VM_DESTROYED not in [fact.name for fact in executor.progress(KEY)]
    (azure.home / "slow").unlink()
    executor.release(KEY)
    assert VM_DESTROYED in [fact.name for fact in executor.progress(KEY)]
    executor.cancel(KEY)
    assert executor.poll([KEY])[KEY].phase == "lost"


def test_a_machine_that_azure_can_not_make(azure: Azure):
    """It is left there, failed: that is the end of its request, and it is deleted as others are."""
    executor = azure.executor()
    (azure.home / "full").touch()
    handle = executor.submit(azure.job())
    assert executor.poll([handle])[handle].phase == "failed"
    executor.release(handle)
    assert azure.machines == []


def test_gpus_that_only_the_machine_knows(azure: Azure):
    """Where it finds none the training does not start, and says why by its exit code."""
    executor = azure.executor()
    executor.submit(azure.job(sku="Standard_NC24s_v3"))
    assert azure.until(executor, "failed").exit_code == 69
    executor.release(KEY)


def test_a_limit(azure: Azure):
    """The machine ends the trainer by itself."""
    executor = azure.executor()
    executor.submit(replace(azure.job(), max_run_time_s=1))
    assert azure.until(executor, "failed").exit_code == 124
    executor.release(KEY)
