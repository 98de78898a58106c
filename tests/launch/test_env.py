"""GPUS and WORKSPACE of workers, and how they get them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_stand_in import running, start, text
from taskgraph_workers.config import check
from taskgraph_workers.detect import Detect
from taskgraph_workers.errors import WorkersError
from taskgraph_workers.launch.env import alone, commands_of, ends_with_its_shell, env_of
from taskgraph_workers.launch.model import Demand, WorkerGroup
from taskgraph_workers.machines import Group

MACHINES = Path(__file__).resolve().parent.parent / "stand_ins"
DETECTED = {"GPUS": Detect("gpu-indices"), "WORKSPACE": Detect("gpu-memory", 0.75)}

CONFIG = """
workers:
    aliases:
        b-gpu: &lab
            provisioner: lab-{level}
            worker-type: gpu
            implementation: generic-worker
            os: linux
        b-old: *lab
workers-config:
    workers:
        b-gpu: {env: {GPUS: "0 1", WORKSPACE: "8000"}}
        b-old: {env: {GPUS: "0 1"}}
    profiles:
        far: {workers: {b-gpu: lab-far/gpu}}
        near: {workers: {b-any: {to: b-gpu, env: {WORKSPACE: {detect: inherited}}}}}
"""


def env(group: dict[str, Any], change: tuple[str, str] = ("", "")) -> dict[str, Any]:
    config, problems = check(yaml.safe_load(CONFIG.replace(*change)))
    assert config is not None, problems
    return env_of(config, Group("g", "start", **group))


def test_what_all_placements_say():
    """A value on which every way to the pool agrees, at whatever level; inherited says nothing."""
    expected = {"GPUS": "0 1", "WORKSPACE": "8000"}
    for pool in ("lab-1/gpu", "lab-3/gpu"):
        assert env({"pool": pool, "gpus": 2}) == expected
    assert env({"pool": "lab-far/gpu"}) == expected


def test_where_placements_differ():
    """What they differ about is detected, if the worker has GPUs; else it has none."""
    change = ('b-old: {env: {GPUS: "0 1"}}', 'b-old: {env: {GPUS: "2 3"}}')
    whole = {"GPUS": DETECTED["GPUS"], "WORKSPACE": "8000"}
    assert env({"pool": "lab-1/gpu", "gpus": 2}, change) == whole
    assert env({"pool": "lab-1/gpu"}, change) == {"WORKSPACE": "8000"}


def test_without_a_pool():
    """It is detected for a worker with GPUs; and nobody asks for it without."""
    assert env({"gpus": 1}) == DETECTED
    assert env({"pool": "nobody/leads-here", "gpus": 1}) == DETECTED
    assert env({}) == {}


def test_a_group_has_the_last_word():
    """Its own values, and null for none."""
    own = {"GPUS": "7", "WORKSPACE": None, "OTHER": "x"}
    assert env({"pool": "lab-1/gpu", "gpus": 2, "env": own}) == {"GPUS": "7", "OTHER": "x"}


# --- commands -------------------------------------------------------------------------------


def group(name: str = "g", command: str = "start", **env: Any) -> WorkerGroup:
    return WorkerGroup(name, 1, (Demand(name, launcher=False),), command, env=env)


def test_constants_are_exported(tmp_path: Path):
    """Whatever they hold, the worker has them as they are; a command becomes the worker."""
    odd = "a 'b' \"c\" $HOME `id` \\ !"
    made = commands_of([group(command="printenv ODD GPUS", ODD=odd, GPUS="0 1")])
    assert made.texts == {}
    done = subprocess.run(
        ["bash", "-c", made.lines["g"]], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{odd}\n0 1\n"
    assert "exec printenv" in made.lines["g"]


def test_groups_share_what_detects():
    """One text for all that detect the same."""
    made = commands_of([group("a", **DETECTED), group("b", **DETECTED), group("c", X="1")])
    assert list(made.texts) == ["TASKGRAPH_WORKERS_DETECT_1"]
    assert made.lines["a"] == made.lines["b"] == 'eval "$TASKGRAPH_WORKERS_DETECT_1"; exec start'


def test_a_worker_detects(tmp_path: Path):
    """In a script, on its machine, among the GPUs that it was given."""
    made = commands_of([group(command='echo "$GPUS, $WORKSPACE" >> found', **DETECTED)])
    script = text(start(1, made.lines["g"]), texts=made.texts)
    path = f"{MACHINES / 'four'}:/usr/bin:/bin"
    with running(script, tmp_path, PATH=path, CUDA_VISIBLE_DEVICES="1,3") as run:
        assert run.end()[0] == 0
    assert (tmp_path / "found").read_text("utf-8") == "0 1, 12120\n"


def test_a_worker_that_finds_nothing(tmp_path: Path):
    """It does not start, and the script says why and with which status."""
    made = commands_of([group(command="touch started", **DETECTED)])
    script = text(start(1, made.lines["g"], "g"), texts=made.texts)
    with running(script, tmp_path, PATH=f"{MACHINES / 'no-driver'}:/usr/bin:/bin") as run:
        status, said = run.end()
    assert status == 69
    assert "nvidia-smi failed" in said
    assert "a worker of g ended with status 69" in said
    assert not (tmp_path / "started").exists()


def tried(tmp_path: Path, machine: str, **environ: str) -> tuple[str, str]:
    """What a worker that only tries has in its environment, and what its script says."""
    line = 'echo "${GPUS-none}, ${WORKSPACE-none}, $tw_n" >> found'
    made = commands_of([group(command=line)._replace(tried=DETECTED)])
    script = text(start(1, made.lines["g"]), texts=made.texts)
    path = f"{MACHINES / machine}:/usr/bin:/bin"
    with running(script, tmp_path, PATH=path, **environ) as run:
        status, said = run.end()
    assert status == 0, said
    return (tmp_path / "found").read_text("utf-8"), said


@pytest.mark.parametrize(
    ("machine", "environ", "found", "told"),
    [
        ("four", {"CUDA_VISIBLE_DEVICES": "1,3"}, "0 1, 12120, \n", "WORKSPACE='12120'"),
        ("none", {"CUDA_VISIBLE_DEVICES": "1,3"}, "0 1, none, \n", "WORKSPACE: nvidia-smi"),
        ("none", {}, "none, none, \n", "GPUS: 0 GPUs found"),
        ("no-driver", {}, "none, none, \n", "nvidia-smi failed"),
        ("mig", {}, "0, none, \n", "WORKSPACE: nvidia-smi doesn't tell"),
        ("four", {"GPUS": "7", "WORKSPACE": ""}, "7, , \n", "GPUS='0 1 2 3'"),
    ],
)
def test_a_worker_that_only_tries(
    tmp_path: Path, machine: str, environ: dict[str, str], found: str, told: str
):
    """It starts with what can be worked out, whatever that is; what is set already stays."""
    have, said = tried(tmp_path, machine, **environ)
    assert have == found
    assert told in said


def test_a_machine_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A driver that never answers keeps no worker from starting."""
    monkeypatch.setattr("taskgraph_workers.launch.env._TRY_S", 1)
    smi = tmp_path / "hangs" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text("#!/bin/sh\nsleep 600 & wait\n")
    smi.chmod(0o755)
    assert tried(tmp_path, str(smi.parent), CUDA_VISIBLE_DEVICES="1")[0] == "none, none, \n"


def test_every_fault_at_once():
    """What no shell can hold is refused, for each group."""
    with pytest.raises(WorkersError) as caught:
        commands_of([group("a", X="1\n2"), group("b", command="x\0")])
    assert "group 'a'" in str(caught.value)
    assert "group 'b'" in str(caught.value)


@pytest.mark.parametrize(
    ("command", "line", "lost"),
    [
        ("start 'a;b' \"$(x)\"", "exec start 'a;b' \"$(x)\"", False),
        ("exec start", "exec start", False),
        ("cd /x && exec start", "cd /x && exec start", False),
        ("cd /x && start", "cd /x && start", True),
        ("A=1 start", "A=1 start", True),
        ("start | tee log", "start | tee log", True),
        ("if x; then start; fi", "if x; then start; fi", True),
        (". venv; exec start", ". venv; exec start", False),
        ("it's open", "it's open", True),
        ("command start", "command start", True),
        ("exit 3", "exit 3", True),
        ("set-up-worker x", "exec set-up-worker x", False),
    ],
)
def test_the_worker_is_the_main_process(command: str, line: str, lost: bool):
    """A single command replaces its shell; of others it is known whether they do so."""
    assert alone(command) == line
    assert ends_with_its_shell(command) == lost
