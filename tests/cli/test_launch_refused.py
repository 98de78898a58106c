"""What `launch` refuses, and how it says so; and its help."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from launch_inputs import NODE, SPEC


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "nothing says what to launch\n    hint: launch SPEC.yaml, or launch --cluster NAME"),
        ("demo.yaml --node cores=x", "--node: cores must be a whole number, not 'x'"),
        ("demo.yaml --node cpus=3", "'cpus=3' is nothing that a node has"),
        ("demo.yaml --node ,", "--node: say what a node has"),
        ("demo.yaml --node gpus=1,gpus=2", "--node: gpus is said twice"),
        ("demo.yaml --node memory=3", "'3' is no size"),
        ("demo.yaml --walltime 90x --margin 0", "--margin: a duration must be longer"),
        ("demo.yaml --walltime 90x --margin 0", "--walltime: '90x' is no duration"),
        ("demo.yaml --nodes 0", "--nodes: must be at least 1, not 0"),
        ("demo.yaml --requeue -1", "--requeue: must be at least 0, not -1"),
        ("demo.yaml --scheduler slrm", "there is no scheduler 'slrm'"),
        ("demo.yaml --group trainer", "trainer"),
        ("demo.yaml --vars N", "--vars takes NAME=VALUE, not 'N'"),
        ("demo.yaml --root .", "--root goes with --cluster only"),
        ("--cluster lba --config lab.yml", "did you mean 'lab'?"),
        ("--cluster lab --config lab.yml --vars A=1", "--vars goes with a SPEC only"),
        ("demo.yaml --margin 20m", "a longer walltime, or a shorter --margin"),
        ("demo.yaml --directive x", "directive: 'x' is no directive"),
        ("demo.yaml --directive --x=y", "write the whole line: --directive='#SBATCH --mail-type="),
        ("demo.yaml --name -x", "expected one argument; did you mean --name=-x?"),
        ("demo.yaml --walltime=--", "argument --walltime: '--' is no value"),
        ("demo.yaml --group=--", "argument --group: '--' is no value"),
        ("demo.yaml -o--", "argument -o: '--' is no value"),
        ("stop --wait=--", "argument --wait: '--' is no value"),
        ("--cluster lab --config lab.yml --corrected x", "--corrected goes with a SPEC only"),
        ("demo.yaml --corrected demo.yaml", "demo.yaml: is there already, and is not replaced"),
        ("demo.yaml --corrected no/x", "no/x: can't be written"),
        ("demo.yaml --queue a\nb", "queue: 'a\\nb' has a line break in it"),
        ("demo.yaml --node gpus=2,cores=8", "train"),
        ("demo.yaml --force", "--force goes with --submit only"),
        ("nowhere.yaml", "nowhere.yaml: there is no such file"),
        (
            "statsu",
            "there is no file 'statsu', and no such command\n    hint: did you mean 'status'",
        ),
        ("stpo", "no such command\n    hint: did you mean 'stop'?"),
        ("stpo 12 --now", "error: unrecognized arguments: 12 --now; did you mean 'stop'?"),
        ("status.yaml", "status.yaml"),
    ],
)
def test_what_can_not_be_asked(launch: Any, words: str, told: str):
    """It ends with 2 and says what would be right; nothing is printed, and nothing raised."""
    done = launch(*(word.replace("\\n", "\n") for word in words.split(" ") if word))
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert "Traceback" not in done.err


def test_every_fault_at_once(launch: Any):
    """Of one command line."""
    err = launch("demo.yaml", "--walltime", "90x", "--node", "x", "--nodes", "0").err
    assert err.count("error:") == 3


def test_a_step_that_can_not_be_read_is_named(launch: Any, tmp_path: Path):
    """Where none is sized nobody can tell the nodes, and the way out that is named works."""
    text = re.sub(r"run: {cmd: [^,]+", "run: {cmd: srun -n $N x", SPEC)
    (tmp_path / "demo.yaml").write_text(text, "utf-8")
    done = launch("demo.yaml", *NODE)
    assert (done.code, done.out) == (2, "")
    assert "can't be told: none of their steps is sized\n    hint: say the nodes" in done.err
    assert done.err.count("is not sized: it has srun -n $N: no number") == 2
    done = launch("demo.yaml", *NODE, "--nodes", "2")
    assert (done.code, "#SBATCH --nodes=2" in done.out) == (0, True)
    assert done.out.count("\ntw_start_group ") == 2


def test_beside_others_a_step_that_can_not_be_read_is_left_out(launch: Any, tmp_path: Path):
    """No size is said to be the smallest, or the most, that it takes."""
    text = re.sub(r"run: {cmd: [^,]+", "run: {cmd: srun -n $N x", SPEC, count=1)
    (tmp_path / "demo.yaml").write_text(text, "utf-8")
    done = launch("demo.yaml", *NODE, "--size")
    assert done.code == 0
    assert "packed: 2 nodes without simulate" in done.out
    assert "at most" not in done.out
    assert "what tasks of simulate take can't be told" in done.err
    assert "without what simulate may take" in launch("demo.yaml", *NODE).err


def test_without_a_scheduler(launch: Any, tmp_path: Path):
    """Where neither an option, the machine nor the spec names one: no script, but sizes."""
    (tmp_path / "demo.yaml").write_text(SPEC.replace("type: slurm", "type: local"), "utf-8")
    done = launch("demo.yaml", *NODE)
    assert done.code == 2
    assert "nothing says which scheduler gets the job\n    hint: say --scheduler" in done.err
    done = launch("demo.yaml", *NODE, "--size", "--submit")
    assert (done.code, "--size only shows how many nodes" in done.err) == (2, True)
    done = launch("demo.yaml", *NODE, "--size")
    assert (done.code, "for no scheduler yet; nodes with 36 cores" in done.out) == (0, True)
    said = json.loads(launch("demo.yaml", *NODE, "--size", "--json").out)
    assert (said["scheduler"], said["allocation"]["nodes"]) == (None, 2)


def test_a_file_called_status(launch: Any, tmp_path: Path):
    """Is reached by its path; the word is the command."""
    (tmp_path / "status").write_text(SPEC, "utf-8")
    assert "#SBATCH" in launch("./status", *NODE).out
    assert "nothing was launched in launches" in launch("status").err
    (tmp_path / "statsu").write_text(SPEC, "utf-8")
    assert "#SBATCH" in launch("statsu", *NODE).out


@pytest.mark.parametrize("words", [(), ("status",), ("stop",)])
def test_the_help(launch: Any, words: tuple[str, ...]):
    """Fits in 80 columns, and names the commands inside of this one."""
    done = launch(*words, "--help")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    assert words or "launch stop [LAUNCH]" in done.out
