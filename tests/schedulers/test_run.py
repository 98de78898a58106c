from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from taskgraph_workers.schedulers.base import Command
from taskgraph_workers.schedulers.run import run


def sh(script: str, **kwargs: object) -> Command:
    return Command(("/bin/sh", "-c", script), **kwargs)  # type: ignore[arg-type]


def test_what_a_command_says():
    """Exit code, output and errors come back."""
    answer = run(sh("echo out; echo err >&2; exit 3"))
    assert (answer.exit_code, answer.stdout, answer.stderr) == (3, "out\n", "err\n")


def test_what_a_command_reads():
    """Its input is what the command says, and else empty: nothing of ours is read."""
    assert run(sh("cat", stdin="#BSUB -J x\n")).stdout == "#BSUB -J x\n"
    assert run(sh("cat"), timeout_s=5).exit_code == 0


def test_input_that_nobody_reads():
    """A command that ends without reading its input is no fault of anybody's."""
    assert run(sh("exit 4", stdin="x" * 10**6)).exit_code == 4


@pytest.mark.parametrize("program", ["no-such-program", "/etc/passwd", "/", "a\0b"])
def test_what_can_not_be_started(program: str):
    """A command that isn't there, or is none, has no exit code and says why."""
    answer = run(Command((program,)))
    assert answer.exit_code is None
    assert "can't be run" in answer.stderr


def test_a_command_that_hangs(tmp_path: Path):
    """A command that doesn't end is killed with what it started; what it said is kept."""
    child = tmp_path / "pid"
    answer = run(sh(f"echo some; sleep 600 & echo $! > {child}; wait"), timeout_s=0.5)
    assert answer.exit_code is None
    assert answer.stdout == "some\n"
    assert answer.hung
    assert "no answer within 0.5 s" in answer.stderr
    stat = Path("/proc", child.read_text().strip(), "stat")
    deadline = time.monotonic() + 10
    while stat.exists() and " Z " not in stat.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_daemon_that_keeps_the_output_open(tmp_path: Path):
    """Nothing is waited for that got away with the output, into a session of its own."""
    started = time.monotonic()
    answer = run(sh(f"setsid sleep 20 & echo $! > {tmp_path}/pid; sleep 20"), timeout_s=0.5)
    assert answer.exit_code is None
    assert time.monotonic() - started < 15
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_output_that_is_no_text():
    """Bytes that are no UTF-8 do no harm."""
    answer = run(sh(r"printf 'a\377b'"))
    assert answer.stdout == "a\ufffdb"


def test_variables_that_are_kept_away():
    """Variables that would override a script's directives don't reach the command."""
    environ = {"PATH": os.environ["PATH"], "SBATCH_PARTITION": "x", "SLURM_CONF": "y"}
    answer = run(sh("env", without=("SBATCH_",)), environ=environ)
    assert "SLURM_CONF=y" in answer.stdout
    assert "SBATCH" not in answer.stdout
    assert "SBATCH_PARTITION=x" in run(sh("env"), environ=environ).stdout
