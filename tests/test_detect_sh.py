"""What the shell text of `detect.sh` does on machines with one GPU, many, and none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from needs import needs
from taskgraph_workers.detect import Detect, prelude

MACHINES = Path(__file__).parent / "stand_ins"
UUIDS = [line.split(", ")[1] for line in (MACHINES / "eight/query").read_text().splitlines()]
MIG = "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f"
MIG_2 = "MIG-0ed3a1b2-5d6f-5c4b-8a79-112233445566"

INDICES = {"GPUS": Detect("gpu-indices")}
MEMORY = {"WORKSPACE": Detect("gpu-memory", share=0.75)}


class Ran(NamedTuple):
    code: int
    out: str
    said: str


@pytest.fixture(params=["dash", "bash", "busybox"])
def shell(request: pytest.FixtureRequest) -> str:
    """A program that is a POSIX shell when it is called `sh`."""
    return needs(request.param)


def run(shell: str, values: dict[str, Detect], machine: str, env: dict[str, str]) -> Ran:
    """Run the prelude, with nothing in PATH but the machine's tools; `out`: what the task saw."""
    shown = " ".join(f"[${name}]" for name in sorted(values))
    task = ["/bin/sh", "-c", f'printf "%s" "{shown}"']
    done = subprocess.run(
        ["sh", "-uc", prelude(values) + 'exec "$@"', "taskgraph-workers", *task],
        executable=shell,
        env={"PATH": str(MACHINES / machine), **env},
        input="not for nvidia-smi\n",
        capture_output=True,
        text=True,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


CUDA, STEP, JOB = "CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS"


@pytest.mark.parametrize(
    ("machine", "env", "indices", "why"),
    [
        ("one", {}, "0", "1 of 1 GPUs, from nvidia-smi"),
        ("four", {}, "0 1 2 3", "4 of 4 GPUs, from nvidia-smi"),
        ("eight", {}, "0 1 2 3 4 5 6 7", "8 of 8 GPUs, from nvidia-smi"),
        ("unequal", {}, "0 1 2 3", "4 of 4 GPUs, from nvidia-smi"),
        ("crlf", {}, "0 1 2 3", "4 of 4 GPUs, from nvidia-smi"),
        ("no-memory", {}, "0 1", "2 of 2 GPUs, from nvidia-smi"),
        ("mig", {}, "0", "1 of 2 GPUs, from nvidia-smi"),
        ("half-mig", {}, "0", "1 of 2 GPUs, from nvidia-smi"),
        ("mig-rows", {}, "0 1", "2 of 2 GPUs, from nvidia-smi"),
        ("four", {CUDA: "2"}, "0", "1 of 4 GPUs, from CUDA_VISIBLE_DEVICES"),
        ("four", {CUDA: "3,1"}, "0 1", "2 of 4 GPUs, from CUDA_VISIBLE_DEVICES"),
        ("four", {CUDA: " 3, 1 ,"}, "0 1", "2 of 4 GPUs, from CUDA_VISIBLE_DEVICES"),
        ("four", {CUDA: "0,2,-1,1"}, "0 1", "CUDA_VISIBLE_DEVICES='0,2,-1,1' ends at '-1'"),
        ("four", {CUDA: "0,7,1"}, "0", "ends at '7', which is no GPU here"),
        ("four", {CUDA: "0,,1"}, "0", "ends at '', which is no GPU here"),
        ("four", {CUDA: f"{UUIDS[3]},{UUIDS[0]}"}, "0 1", "2 of 4 GPUs"),
        ("four", {CUDA: "GPU-8932,1"}, "0 1", "2 of 4 GPUs"),
        ("four", {CUDA: "0,GPU-1b0c"}, "0", "ends at 'GPU-1b0c', which is no GPU here"),
        ("four", {CUDA: f"{UUIDS[0]},{UUIDS[5]}"}, "0", "1 of 4 GPUs"),
        ("mig", {CUDA: MIG}, "0", "1 of 2 GPUs, from CUDA_VISIBLE_DEVICES"),
        ("mig", {CUDA: f"{MIG_2},{MIG}"}, "0", "1 of 2 GPUs, from CUDA_VISIBLE_DEVICES"),
        ("mig", {CUDA: "0,1"}, "0", "1 of 2 GPUs, from CUDA_VISIBLE_DEVICES"),
        ("half-mig", {CUDA: "1,0"}, "0", "1 of 2 GPUs, from CUDA_VISIBLE_DEVICES"),
        ("mig-rows", {CUDA: f"{MIG_2},{MIG}"}, "0 1", "2 of 2 GPUs, from CUDA_VISIBLE_DEVICES"),
        ("nothing", {CUDA: "2,3"}, "0 1", "2 GPUs, from CUDA_VISIBLE_DEVICES, without nvidia-smi"),
        ("nothing", {CUDA: f"{UUIDS[0]},x,1"}, "0", "1 GPUs, from CUDA_VISIBLE_DEVICES"),
        ("nothing", {CUDA: f"{MIG},{MIG_2}"}, "0", "1 GPUs, from CUDA_VISIBLE_DEVICES"),
        ("four", {STEP: "1,2"}, "1 2", "2 of 4 GPUs, from SLURM_STEP_GPUS"),
        ("four", {JOB: "3"}, "3", "1 of 4 GPUs, from SLURM_JOB_GPUS"),
        ("four", {STEP: "1", JOB: "0,1,2"}, "1", "1 of 4 GPUs, from SLURM_STEP_GPUS"),
        ("four", {STEP: "", JOB: "2,3"}, "2 3", "2 of 4 GPUs, from SLURM_JOB_GPUS"),
        ("four", {CUDA: "0", STEP: "1,2,3"}, "0", "1 of 4 GPUs, from CUDA_VISIBLE_DEVICES"),
        ("one", {STEP: "2"}, "0", "1 of 1 GPUs, from nvidia-smi"),
        ("one", {JOB: "0,1,2,3"}, "0", "1 of 1 GPUs, from nvidia-smi"),
        (
            "four",
            {"NVIDIA_VISIBLE_DEVICES": "none", "GPU_DEVICE_ORDINAL": "1"},
            "0 1 2 3",
            "4 of 4",
        ),
        ("four", {"GPUS": "7"}, "0 1 2 3", "4 of 4 GPUs, from nvidia-smi"),
    ],
)
def test_gpus_are_those_that_programs_will_count(
    shell: str, machine: str, env: dict[str, str], indices: str, why: str
):
    """Indices and their number are what CUDA will show, and standard error says from where."""
    values = {**INDICES, "N": Detect("gpu-count")}
    ran = run(shell, values, machine, env)
    assert (ran.code, ran.out) == (0, f"[{indices}] [{len(indices.split())}]")
    assert why in ran.said
    assert f"taskgraph-workers: GPUS='{indices}' (" in ran.said


@pytest.mark.parametrize(
    ("machine", "env", "wanted", "mib"),
    [
        ("one", {}, Detect("gpu-memory"), 16160),
        ("one", {}, Detect("gpu-memory", share=0.75), 12120),
        ("eight", {}, Detect("gpu-memory", share=0.5, of="sum"), 8 * 81920 // 2),
        ("crlf", {}, Detect("gpu-memory", share=0.333), 5381),
        ("unequal", {}, Detect("gpu-memory", share=0.9), 9917),
        ("unequal", {}, Detect("gpu-memory", of="largest"), 24576),
        ("unequal", {}, Detect("gpu-memory", of="sum"), 24576 + 12288 + 24576 + 11019),
        ("unequal", {CUDA: "1,2"}, Detect("gpu-memory"), 12288),
        ("unequal", {CUDA: f"{UUIDS[2]},{UUIDS[0]}"}, Detect("gpu-memory"), 24576),
        ("unequal", {STEP: "0,1"}, Detect("gpu-memory"), 12288),
        ("one", {}, Detect("gpu-memory", share=1 / 3), 5386),
        # As a float, 0.25625 * 1000000 is a little less than 256250.
        ("one", {}, Detect("gpu-memory", share=0.25625), 4141),
        ("one", {}, Detect("gpu-memory", share=0.1 + 0.2), 4848),
        ("half-mig", {CUDA: "0"}, Detect("gpu-memory"), 40536),
        ("mig-rows", {CUDA: MIG}, Detect("gpu-memory"), 19968),
        ("four", {}, Detect("gpu-memory", share=0.75, at_least=12120), 12120),
    ],
)
def test_memory_is_a_share_of_the_visible_gpus(
    shell: str, machine: str, env: dict[str, str], wanted: Detect, mib: int
):
    """Memory is whole MiB, rounded down, of the GPUs that the task's programs see."""
    ran = run(shell, {"WORKSPACE": wanted}, machine, env)
    assert (ran.code, ran.out) == (0, f"[{mib}]")
    assert f"taskgraph-workers: WORKSPACE='{mib}' (" in ran.said


NO_DRIVER = "couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver"


@pytest.mark.parametrize(
    ("machine", "env", "values", "fault"),
    [
        ("nothing", {}, INDICES, "0 GPUs found, at least 1 wanted (0 GPUs, without nvidia-smi)"),
        ("nothing", {}, INDICES, "nvidia-smi (not in PATH)"),
        ("nothing", {}, MEMORY, "WORKSPACE: 0 GPUs found"),
        ("nothing", {CUDA: "0"}, MEMORY, "WORKSPACE: nvidia-smi doesn't tell the memory"),
        ("nothing", {CUDA: "NoDevFiles"}, INDICES, "ends at 'NoDevFiles', which is no GPU here"),
        ("nothing", {JOB: "0,1"}, INDICES, "SLURM_JOB_GPUS (0,1), nvidia-smi (not in PATH)"),
        (
            "no-driver",
            {},
            INDICES,
            f"nvidia-smi failed (9): 'NVIDIA-SMI has failed because it {NO_DRIVER}",
        ),
        ("no-driver", {CUDA: "0"}, INDICES, "GPUS: nvidia-smi failed (9)"),
        ("no-devices", {}, MEMORY, "WORKSPACE: nvidia-smi failed (6): 'No devices were found'"),
        ("no-devices-but-fine", {}, INDICES, "printed 'No devices were found', not a GPU"),
        ("silent", {}, INDICES, "nvidia-smi (shows 0 GPUs)"),
        ("garbage", {}, INDICES, "'* $(touch owned) `id`', not a GPU"),
        ("no-memory", {}, MEMORY, "doesn't tell the memory"),
        ("mig", {}, MEMORY, "doesn't tell the memory of a MIG device"),
        ("mig", {CUDA: MIG}, MEMORY, "doesn't tell the memory of a MIG device"),
        ("mig", {CUDA: "MIG-none-of-these"}, INDICES, "ends at 'MIG-none-of-these'"),
        (
            "four",
            {CUDA: ""},
            INDICES,
            "Looked at CUDA_VISIBLE_DEVICES (), SLURM_STEP_GPUS (not set)",
        ),
        ("four", {CUDA: "-1"}, MEMORY, "0 of 4 GPUs, from CUDA_VISIBLE_DEVICES"),
        ("four", {CUDA: "all"}, INDICES, "CUDA_VISIBLE_DEVICES='all' ends at 'all'"),
        ("four", {CUDA: "*"}, INDICES, "CUDA_VISIBLE_DEVICES='*' ends at '*'"),
        ("four", {CUDA: "0-3"}, INDICES, "ends at '0-3', which is no GPU here"),
        ("four", {CUDA: "1,1"}, INDICES, "GPUS: CUDA_VISIBLE_DEVICES='1,1' repeats 1"),
        ("four", {CUDA: f"0,{UUIDS[0]}"}, INDICES, f"repeats {UUIDS[0]}"),
        ("four", {STEP: "7"}, INDICES, "SLURM_STEP_GPUS='7' ends at '7'"),
        ("four", {}, {"N": Detect("gpu-count", at_least=5)}, "N: 4 GPUs found, at least 5 wanted"),
        (
            "four",
            {CUDA: "2"},
            {"GPUS": Detect("gpu-indices", at_least=2)},
            "1 GPUs found, at least 2",
        ),
        (
            "unequal",
            {},
            {"WORKSPACE": Detect("gpu-memory", share=0.5, at_least=5510)},
            "WORKSPACE: 5509 MiB found, at least 5510 wanted (1/2 of 11019 MiB, the smallest of 4",
        ),
        (
            "one",
            {},
            {"W": Detect("gpu-memory", share=0.000001)},
            "W: 0 MiB found, at least 1 wanted",
        ),
        (
            "one",
            {},
            {"WORKSPACE": Detect("inherited")},
            "WORKSPACE (detect: inherited): not set, or",
        ),
        ("one", {"X": ""}, {"X": Detect("inherited")}, "X (detect: inherited): not set, or empty"),
    ],
)
def test_what_is_not_found_ends_the_task(
    shell: str, machine: str, env: dict[str, str], values: dict[str, Detect], fault: str
):
    """With nothing found, or too little, the command never starts, and 69 and a reason come out."""
    ran = run(shell, values, machine, env)
    assert (ran.code, ran.out) == (69, "")
    assert fault in ran.said
    assert all(line.startswith("taskgraph-workers: ") for line in ran.said.splitlines())


def test_several_values_ask_the_driver_once_and_fail_by_name(shell: str):
    """A fault of the driver names every value that waits for it."""
    values = {**MEMORY, **INDICES, "HOME": Detect("inherited")}
    ran = run(shell, values, "no-driver", {"HOME": "/root"})
    assert "taskgraph-workers: GPUS, WORKSPACE: nvidia-smi failed" in ran.said


def test_an_inherited_value_stays_as_it_is_and_out_of_the_log(shell: str):
    """An inherited value reaches the task untouched, and is not shown: it might be a secret."""
    value = "a  b\n$HOME * '\""
    ran = run(shell, {"TOKEN": Detect("inherited")}, "nothing", {"TOKEN": value})
    assert (ran.code, ran.out) == (0, f"[{value}]")
    assert ran.said == "taskgraph-workers: TOKEN is inherited from the worker\n"


@pytest.mark.parametrize(
    ("env", "warned"),
    [
        ({CUDA: "1,2"}, True),
        ({CUDA: "1,2", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, False),
        ({CUDA: UUIDS[1]}, False),
        ({CUDA: "0,1,2,3"}, False),
        ({}, False),
    ],
)
def test_numbers_of_unequal_gpus_are_warned_of(shell: str, env: dict[str, str], warned: bool):
    """CUDA numbers unequal GPUs fastest first, nvidia-smi by bus: numbers may then mislead."""
    ran = run(shell, MEMORY, "unequal", env)
    assert ran.code == 0
    assert ("set CUDA_DEVICE_ORDER=PCI_BUS_ID" in ran.said) is warned
    assert "PCI_BUS_ID" not in run(shell, MEMORY, "four", env).said


def test_the_rest_of_the_environment_is_untouched(shell: str, tmp_path: Path):
    """The task gets the environment it would get without the prelude, and the values."""
    env = {
        "PATH": str(MACHINES / "four"),
        "IFS": "x",
        "EMPTY": "",
        "LONG": "1\n2 * $x '\"",
        "n": "1",
        "HOME": str(tmp_path),
    }
    plain, ours = (
        subprocess.run(
            ["sh", "-c", text + 'exec "$@"', "sh", "/usr/bin/env", "-0"],
            executable=shell,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\0")
        for text in ("", prelude({**INDICES, **MEMORY}))
    )
    changed = set(plain) ^ set(ours)
    assert changed == {"GPUS=0 1 2 3", "WORKSPACE=12120"}


def test_garbage_is_never_run(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a tool prints is text: it is neither run nor expanded to file names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").touch()
    ran = run(shell, INDICES, "garbage", {})
    assert "a-file" not in ran.said
    assert os.listdir(tmp_path) == ["a-file"]
