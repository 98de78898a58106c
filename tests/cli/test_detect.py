"""`detect`: what a machine would give its tasks, told on that machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from taskgraph_workers.detect import Detect, detect_here
from tests.cli.commands import answer, command
from tests.graph.support import ROOT

MACHINES = ROOT / "tests" / "stand_ins"
SITE = """\
workers-config:
    profiles:
        site:
            workers:
                gpu:
                    provisioner: site
                    worker-type: gpu
                    implementation: docker-worker
                    os: linux
                    env:
                        GPUS: {detect: gpu-indices, at-least: 2}
                        WORKSPACE: {detect: gpu-memory, share: 0.5, of: sum}
                        TOKEN: {detect: inherited}
                        LANG: C
                        DEEP: {by-kind: {train: {detect: gpu-count}, default: "9"}}
    select: {default: site}
"""


def on(machine: str, *arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
    """What `detect` did where nothing is in PATH but the machine's tools."""
    return command("detect", *arguments, **{"PATH": str(MACHINES / machine), **env})


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A file with a worker that leaves four values to the machine, one for a kind only."""
    file = tmp_path / "site.yml"
    file.write_text(SITE)
    return file


def test_everything_is_told_where_nothing_is_asked_for():
    """All that can be found out, as NAME=value, and on standard error from where."""
    done = on("unequal")
    assert done.returncode == 0
    assert done.stdout == "GPU_COUNT=4\nGPU_INDICES=0 1 2 3\nGPU_MEMORY=11019\n"
    assert done.stderr == (
        "GPU_COUNT: 4 of 4 GPUs, from nvidia-smi\n"
        "GPU_INDICES: 4 of 4 GPUs, from nvidia-smi\n"
        "GPU_MEMORY: 1/1 of 11019 MiB, the smallest of 4 of 4 GPUs, from nvidia-smi\n"
    )
    assert on("unequal", "all").stdout == done.stdout


@pytest.mark.parametrize(
    ("machine", "arguments", "printed"),
    [
        ("eight", "gpu-count", "GPU_COUNT=8\n"),
        ("one", "gpu-indices gpu-count", "GPU_COUNT=1\nGPU_INDICES=0\n"),
        (
            "four",
            "gpu-indices gpu-count gpu-memory --share 0.75 --of smallest --at-least 2",
            "GPU_COUNT=4\nGPU_INDICES=0 1 2 3\nGPU_MEMORY=12120\n",
        ),
        ("unequal", "gpu-memory --of sum", "GPU_MEMORY=72459\n"),
        ("unequal", "--share 0.5 gpu-memory --of largest", "GPU_MEMORY=12288\n"),
    ],
)
def test_what_is_asked_for(machine: str, arguments: str, printed: str):
    """Each value by itself, with the keys that it has in a configuration."""
    done = on(machine, *arguments.split())
    assert (done.returncode, done.stdout) == (0, printed)


def test_one_reason_is_told_once():
    """What is not there for one reason is told in one line, with all the names."""
    (line,) = on("nothing").stderr.splitlines()
    assert line.startswith("error: GPU_COUNT, GPU_INDICES, GPU_MEMORY: 0 GPUs found, at least 1 ")
    assert line.endswith("or give GPU_COUNT, GPU_INDICES, GPU_MEMORY a value in workers-config.")
    told = on("one", "gpu-count", "gpu-memory", "--at-least", 2, "--at-least-mib", 20000).stderr
    assert [each.split(":")[1] for each in told.splitlines()] == [" GPU_COUNT", " GPU_MEMORY"]


def test_quiet_leaves_the_values():
    """With -q nothing is said but what is printed."""
    done = on("one", "gpu-count", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "GPU_COUNT=1\n", "")


def test_what_limits_the_machine_is_looked_at():
    """The environment counts as it does in a task, and what is odd about it is told once."""
    done = on("unequal", CUDA_VISIBLE_DEVICES="1,7")
    assert done.stdout == "GPU_COUNT=1\nGPU_INDICES=0\nGPU_MEMORY=12288\n"
    cut = "warning: CUDA_VISIBLE_DEVICES='1,7' ends at '7', which is no GPU here\n"
    assert done.stderr.count(cut) == 1
    assert "warning: these GPUs differ, and CUDA may number them otherwise" in done.stderr
    assert "GPU_COUNT: 1 of 4 GPUs, from CUDA_VISIBLE_DEVICES\n" in done.stderr


@pytest.mark.parametrize(
    ("machine", "arguments", "printed", "fault"),
    [
        ("nothing", [], "", "error: GPU_COUNT, GPU_INDICES, GPU_MEMORY: 0 GPUs found"),
        ("no-driver", ["gpu-count"], "", "error: GPU_COUNT: nvidia-smi failed (9)"),
        ("garbage", ["gpu-indices"], "", "not a GPU"),
        ("mig", [], "GPU_COUNT=1\nGPU_INDICES=0\n", "error: GPU_MEMORY: nvidia-smi doesn't tell"),
        ("one", ["gpu-count", "--at-least", 2], "", "1 GPUs found, at least 2 wanted"),
        (
            "one",
            ["gpu-count", "gpu-memory", "--at-least-mib", 20000],
            "GPU_COUNT=1\n",
            "16160 MiB found, at least 20000 wanted",
        ),
    ],
)
def test_what_is_not_found(machine: str, arguments: list[Any], printed: str, fault: str):
    """It ends with 1 and the reason, and prints what was found all the same."""
    done = on(machine, *arguments)
    assert (done.returncode, done.stdout) == (1, printed)
    assert fault in done.stderr


def test_json():
    """One object, with what was found and what was not."""
    machine = {"PATH": str(MACHINES / "mig")}
    said = answer("detect", "gpu-count", "gpu-memory", code=1, **machine)
    count, memory = said["values"]
    assert count == {
        "name": "GPU_COUNT",
        "detect": "gpu-count",
        "found": True,
        "value": "1",
        "said": "1 of 2 GPUs, from nvidia-smi",
        "warnings": [],
    }
    assert (memory["found"], memory["value"]) == (False, None)
    assert memory["said"].startswith("GPU_MEMORY: nvidia-smi doesn't tell the memory of a MIG")


def test_a_worker_of_the_project():
    """The values of a name under a profile, as its tasks get them."""
    name = ("--worker", "b-largegpu-xlargedisk")
    done = on("unequal", *name, "--profile", "onprem")
    assert (done.returncode, done.stdout) == (0, "WORKSPACE=8264\n")
    done = on("unequal", *name)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"{name[1]} leaves nothing to the machine under profile gcp-spot\n"
    done = on("unequal", *name, TASKGRAPH_WORKERS_PROFILE="onprem")
    assert done.stdout == "WORKSPACE=8264\n"


def test_a_worker_of_a_file(site: Path):
    """Without a project, under the default, and as for a kind."""
    worker = ("--worker", "gpu", "--config", site)
    done = on("four", *worker, TOKEN="a secret")
    assert (done.returncode, done.stdout) == (0, "GPUS=0 1 2 3\nWORKSPACE=32320\n")
    done = on("four", *worker, "--kind", "train", TOKEN="a secret")
    assert done.stdout == "DEEP=4\nGPUS=0 1 2 3\nWORKSPACE=32320\n"


def test_what_is_inherited_is_not_shown(site: Path):
    """It is there or it is not; its value might be a secret."""
    worker = ("--worker", "gpu", "--config", site)
    done = on("four", *worker, TOKEN="a secret")
    assert "TOKEN: inherited from the worker\n" in done.stderr
    assert "a secret" not in done.stdout + done.stderr
    machine = {"PATH": str(MACHINES / "four")}
    said = answer("detect", *worker, TOKEN="a secret", **machine)["values"][1]
    assert (said["name"], said["found"], said["value"]) == ("TOKEN", True, None)
    done = on("four", *worker)
    assert done.returncode == 1
    assert "error: TOKEN (detect: inherited): not set, or empty." in done.stderr


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ("gpu-memory --of smalest", "did you mean 'smallest'?"),
        ("gpu-memory --share 2", "'share' has to be a number over 0, 1 at most"),
        ("gpu-count --at-least 0", "'at-least' has to be a whole number from 1"),
        ("gpu-count --share 0.5", "hint: add gpu-memory"),
        ("gpu-memory --at-least 2", "hint: for gpu-memory: --at-least-mib N"),
        ("--profile onprem", "--profile goes with --worker only"),
        ("gpu-count --worker b-gpu", "--worker says what to detect"),
        ("--worker b-gpu --of sum", "--worker says what to detect"),
        ("--worker b-largegpv", "did you mean 'b-largegpu'?"),
        ("--worker b-gpu --profile onprm", "did you mean 'onprem'?"),
        ("--worker b-gpu --kind trian", "there is no kind 'trian'"),
        ("--worker b-gpu --root nowhere", "nowhere"),
    ],
)
def test_what_can_not_be_asked(arguments: str, fault: str):
    """It ends with 2, says what would be right, and looks at no machine."""
    done = on("nothing", *arguments.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert fault in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Where there is no /bin/sh, that is said, and it ends with 2."""
    from taskgraph_workers.cli import main

    def none(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("subprocess.run", none)
    assert main(["detect"]) == 2
    assert capsys.readouterr().err == "error: /bin/sh can't be run: No such file or directory\n"


def test_it_needs_no_taskgraph():
    """Neither Taskgraph nor, without a worker name, a configuration is loaded."""
    program = (
        "import sys\n"
        "from taskgraph_workers.cli import main\n"
        "main(['detect', '-q'])\n"
        "print(sorted({'taskgraph', 'yaml', 'taskgraph_workers.config'} & set(sys.modules)))\n"
        "main(['detect', '-q', '--worker', 'b-gpu'])\n"
        "print('taskgraph' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-2:] == ["[]", "False"]


def test_notes_come_with_each_value():
    """What a machine says besides is kept, also beside a fault."""
    environ = {"PATH": str(MACHINES / "four"), "CUDA_VISIBLE_DEVICES": "0,9"}
    values = {"A": Detect("gpu-count"), "B": Detect("gpu-count", at_least=2)}
    found, missing = detect_here(values, environ)
    assert found.notes == missing.notes
    assert found.notes == ("CUDA_VISIBLE_DEVICES='0,9' ends at '9', which is no GPU here",)
    assert missing.said.startswith("B: 1 GPUs found, at least 2 wanted")
