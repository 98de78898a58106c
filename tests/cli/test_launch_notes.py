"""What `launch` says besides the script, to who runs the originating example as it is."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from launch_inputs import LAB_OPTIONS, NODE, SPEC

ROOT = Path(__file__).resolve().parent.parent.parent

# The originating issue's, in which both steps share a queue, and keys are lost.
EXAMPLE = """\
description: {name: example_wf, description: worker launch}
batch: {type: flux}
study:
- name: step_1
  description: step 1
  run:
    cmd: $(LAUNCHER) echo "do something"
    nodes: 2
    cores: 8
- name: step_2
  description: step 2
  run:
    cmd: $(LAUNCHER) echo "do something else"
    nodes: 1
    gpus: 4
merlin:
  resources:
    workers:
      step_1_workers:
        args: -l INFO --concurrency 4 --prefetch-multiplier 1 -Ofair
        steps: [step_1]
        nodes: 1
      step_2_workers:
        args: -l INFO --concurrency 1 --prefetch-multiplier 1 -Ofair
        steps: [step_2]
        nodes: 2
"""


@pytest.fixture
def said(launch: Any, tmp_path: Path) -> list[str]:
    """What is said of the example."""
    (tmp_path / "example.yaml").write_text(EXAMPLE, "utf-8")
    done = launch("example.yaml", "-o", "w.flux")
    assert (done.code, done.out) == (0, "")
    lines: list[str] = done.err.splitlines()
    return lines[1:]


def test_what_is_wrong_comes_first(said: list[str]):
    """In one line, then what was asked, the allocation and why."""
    assert said[:7] == [
        "8 nodes; but as it is, step_2_workers would never start,"
        " and step_1 and step_2 would not run: see below.",
        "",
        "example_wf: 4 step_1_workers",
        "8 nodes (exclusive: whole nodes for each task)",
        "  step_1_workers: 4 x 2 nodes (step_1) = 8",
        "for flux; no walltime",
        "",
    ]


def test_warnings_stand_below_what_is_to_be_done(said: list[str]):
    """What keeps anything from running first; each with file and line, and no key path."""
    headings = [line for line in said if line.endswith(":") and not line.startswith(" ")]
    assert headings[:3] == [
        "To mend, or it does not run:",
        "Worth knowing of the spec:",
        "To say on the command line:",
    ]
    mend = said[said.index(headings[0]) + 1 : said.index("", said.index(headings[0]))]
    assert [line.partition(": ")[0] for line in mend if line[0] != " "] == [
        "example.yaml:8",
        "example.yaml:14",
        "example.yaml:23",
    ]
    assert "study[0]" not in "\n".join(said)


def test_the_spec_as_it_ought_to_be(said: list[str], launch: Any, tmp_path: Path):
    """Is printed; an option writes it to a new file, and launched it has no such warnings left."""
    at = said.index("Merlin would do what is meant if the spec said:")
    printed = [line[4:] for line in said[at + 2 : said.index("", at)]]
    assert "number is for launch" in said[at + 1]
    done = launch("example.yaml", "--corrected", "better.yaml", "--size", *NODE)
    assert "the corrected spec is in better.yaml" in done.err
    text = (tmp_path / "better.yaml").read_text("utf-8")
    assert text.splitlines() == printed
    (tmp_path / "better.yaml").write_text(text.replace("number: 4", "number: 6"), "utf-8")
    after = launch("better.yaml", *NODE, "--corrected", "best.yaml")
    assert after.code == 0
    assert "6 step_1_workers, 2 step_2_workers" in after.err
    assert "there is nothing to correct in the spec: best.yaml is not written" in after.err
    assert "To mend" not in after.err
    assert not (tmp_path / "best.yaml").exists()


def test_a_long_spec_is_shown_by_what_changes(launch: Any, tmp_path: Path):
    """Nobody reads a hundred lines for two of them."""
    long = EXAMPLE + "user:\n" + "".join(f"  key_{number}: x\n" for number in range(100))
    (tmp_path / "long.yaml").write_text(long, "utf-8")
    err = launch("long.yaml").err
    assert "\n    -    cores: 8\n    +    procs: 8\n" in err
    assert "key_50" not in err
    assert "(--corrected FILE writes all of it)" in err


def test_the_study_comes_first(launch: Any):
    """A job that finds no work ends: that is said for a study, and not of other workers."""
    done = launch("demo.yaml", *NODE)
    last = "Queue the study first (merlin run demo.yaml): a job that finds no work for 60 s ends."
    assert done.err.splitlines()[-1] == last
    assert "merlin" not in launch(*LAB_OPTIONS).err


def test_faults_come_before_warnings(launch: Any, tmp_path: Path):
    """Each as a sentence about its key, with the line."""
    text = EXAMPLE.replace("steps: [step_2]", "steps: step_2")
    (tmp_path / "bad.yaml").write_text(text.replace("nodes: 2\n    cores", "nodes: two\n    cores"))
    lines = launch("bad.yaml").err.splitlines()
    faults = [line for line in lines if "warning" not in line and line[0] != " "]
    assert lines[0] == faults[0] == "bad.yaml:8: nodes must be a whole number from 1, not two"
    assert faults[1] == "bad.yaml:25: steps must be a list, not the string 'step_2'"
    assert any("warning: " in line for line in lines[3:])


def test_what_is_unknown_says_why(launch: Any):
    """An answer that can't be given names what it needs, or that there is none."""
    out = launch("demo.yaml", "--size").out
    assert "  packed: unknown (needs --node): every mixture of tasks fits\n" in out
    out = launch("demo.yaml", "--size", "--node", "cores=8").out
    assert "  packed: unknown (needs --node gpus=N): every" in out
    out = launch(*LAB_OPTIONS, "--size").out
    assert "  exclusive: unknown (no task has a launcher): whole" in out
    assert "  useful: unknown (no study to count tasks in): no more" in out
    assert "  each: 8 cores and 2 GPUs, inside of its worker\n" in out
    assert "A  trainers: each 8 cores and 2 GPUs\n" in out


def on_terminal(folder: Path, columns: int, *words: str) -> str:
    """What a terminal of so many columns shows."""
    main, end = pty.openpty()
    env = {"PYTHONPATH": str(ROOT), "PATH": "", "COLUMNS": str(columns), "TERM": "xterm"}
    command = [sys.executable, "-m", "taskgraph_workers", "launch", *words]
    with subprocess.Popen(command, cwd=folder, env=env, stdout=end, stderr=end) as process:
        os.close(end)
        parts = []
        while True:
            try:
                parts.append(os.read(main, 65536))
            except OSError:  # the other end is closed
                break
            if not parts[-1]:
                break
        assert process.wait() == 0
    os.close(main)
    return b"".join(parts).decode("utf-8")


@pytest.mark.parametrize("columns", [80, 40])
def test_it_fits_the_terminal(columns: int, tmp_path: Path):
    """Whatever is said is wrapped, but for the spec itself; warnings are in colour."""
    (tmp_path / "example.yaml").write_text(SPEC.replace("procs: 8", "cores: 8"), "utf-8")
    shown = on_terminal(tmp_path, columns, "example.yaml", "-o", "w.sbatch")
    assert "\033[33mwarning:" in shown
    plain = re.sub(r"\x1b\[[0-9;]*[mK]", "", shown).splitlines()
    assert "would not run: see below." in " ".join(line.strip() for line in plain)
    assert [line for line in plain if len(line) > columns and not line.startswith("    ")] == []
