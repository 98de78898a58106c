"""`launch status`, `launch stop` and `launch --submit`, where there is no scheduler."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from launch_inputs import NODE
from taskgraph_workers.launch.jobs import Launch, keep, new_folder
from taskgraph_workers.schedulers.base import State

DONE = State("ended", "COMPLETED", "node[1-2]", True)
LATE = State("ended", "TIMEOUT", "node3", False)
REFUSAL = "Slurm did not take the job: sbatch: error: invalid partition specified: nowhere"


@pytest.fixture
def kept(launch: Any) -> Any:
    """Four launches: one that ended well, one that did not, one refused, and one broken off."""
    for job, refused, ended in (("41", "", DONE), ("42", "", LATE), (None, REFUSAL, None)):
        folder = new_folder("launches")
        keep(Launch(folder, "slurm", os.getcwd(), job, (f"w-{job}.out",), refused, ended))
    new_folder("launches")
    return launch


def test_the_table(kept: Any):
    """All launches, each on a line; what takes more room has a line of its own."""
    done = kept("status")
    assert done.code == 0
    lines = done.out.splitlines()
    assert [line.split() for line in lines[:4]] == [
        ["launch", "job", "state", "reason", "nodes", "output"],
        ["0001", "41", "ended", "COMPLETED", "node[1-2]", "w-41.out"],
        ["0002", "42", "ended", "TIMEOUT", "node3", "w-42.out"],
        ["0003", "-", "refused"],
    ]
    assert REFUSAL in " ".join(done.out.split())
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(("which", "code"), [("1", 0), ("41", 0), ("2", 1), ("3", 1), ("0004", 1)])
def test_how_one_is(kept: Any, which: str, code: int):
    """The exit code tells whether it is well."""
    done = kept("status", which, "--json")
    assert done.code == code
    (said,) = json.loads(done.out)["launches"]
    assert said["succeeded"] is {0: True, 1: None if which in ("3", "0004") else False}[code]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("1",), 0, "job 41 had ended before (COMPLETED)"),
        (("3",), 2, f"launch 0003 has no job: {REFUSAL}"),
        ((), 2, "launch 0004 has no job: broken off\n"),
        (("9",), 2, "there is no launch and no job 9 in launches"),
        (("1", "--wait", "x"), 2, "--wait: 'x' is no duration"),
        (("1", "--launches", "elsewhere"), 2, "nothing was launched in elsewhere"),
    ],
)
def test_a_stop_that_does_nothing(kept: Any, words: tuple[str, ...], code: int, told: str):
    """Of a job that is over, or of a launch that never got one."""
    done = kept("stop", *words)
    assert (done.code, told in done.out + done.err) == (code, True)
    assert "waiting" not in done.err


def test_a_launch_that_knows_no_id(launch: Any, tmp_path: Path):
    """A job that may be its is told, to whoever asks how it is and to whoever would stop it."""
    keep(Launch(new_folder("launches"), "slurm", os.getcwd(), name="Merlin"))
    (tmp_path / "bin").mkdir()
    squeue = tmp_path / "bin" / "squeue"
    squeue.write_text("#!/bin/bash\necho '7|Merlin'\necho '8|other'\n")
    squeue.chmod(0o755)
    told = "broken off; named 'Merlin', and of no launch: 7 (scancel 7)"
    assert told in launch("status").out
    done = launch("stop")
    assert (done.code, f"launch 0001 has no job: {told}" in done.err) == (2, True)
    squeue.write_text("#!/bin/bash\nexit 1\n")
    assert "Slurm can't be asked for jobs" in launch("status").out


def test_a_scheduler_that_can_not_be_asked(launch: Any):
    """Is no refusal of the job."""
    done = launch("demo.yaml", *NODE, "--test")
    assert done.code == 2
    assert "error: there is no sbatch here, which would be asked" in done.err


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm's command, which takes every job, and is all that there is of Slurm."""
    program = tmp_path / "bin" / "sbatch"
    program.parent.mkdir()
    program.write_text("#!/bin/bash\necho 7\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("sbatch")
@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_what_would_not_run_is_not_submitted(launch: Any, tmp_path: Path, quiet: tuple[str, ...]):
    """A spec of which a step would not run is refused with a remedy, unless somebody insists."""
    spec = (tmp_path / "demo.yaml").read_text("utf-8")
    (tmp_path / "bad.yaml").write_text(spec.replace("procs: 8, ", ""), "utf-8")
    words = (*NODE, "--scheduler", "slurm", "--submit", *quiet)
    done = launch("bad.yaml", *words)
    assert (done.code, done.out) == (1, "")
    assert done.err.endswith(
        "error: not submitted: as it is, simulate would not run\n    hint: mend the spec"
        " (--corrected FILE writes it as it ought to be); --force submits it as it is\n"
    )
    assert not (tmp_path / "launches").exists()
    assert launch("bad.yaml", *words, "--test").code == 1
    for name, force in (("demo.yaml", ()), ("bad.yaml", ("--force",))):
        done = launch(name, *words, *force)
        assert (done.code, done.out) == (0, "7\n")
        assert not quiet or done.err == ""


@pytest.mark.usefixtures("sbatch")
@pytest.mark.parametrize("act", ["--test", "--submit"])
def test_what_would_never_start(launch: Any, tmp_path: Path, act: str):
    """Is told once, also to the quiet; --force submits it all the same."""
    sinfo = tmp_path / "bin" / "sinfo"
    sinfo.write_text("#!/bin/bash\necho 'pdebug*|1|36|64000|gpu:4|30:00|1|36'\n", "utf-8")
    sinfo.chmod(0o755)
    words = ("demo.yaml", "--scheduler", "slurm", "--nodes", "2", act)
    told = "2 nodes are more than queue pdebug has, 1: the job would never start"
    for quiet in ((), ("-q",)):
        done = launch(*words, *quiet)
        assert (done.code, done.out, done.err.count(told)) == (1, "", 1)
    assert not (tmp_path / "launches").exists()
    assert act == "--test" or launch(*words, "--force").out == "7\n"


def test_a_scheduler_that_is_not_here(launch: Any, tmp_path: Path):
    """What can't be run is told; the folder of the launch says so, too."""
    done = launch("demo.yaml", *NODE, "--submit")
    assert (done.code, done.out) == (2, "")
    assert "sbatch can't be run" in done.err
    assert "refused" in launch("status").out
    assert (tmp_path / "launches" / "0001" / "workers.sbatch").exists()
