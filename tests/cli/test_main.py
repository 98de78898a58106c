"""The command as a whole: how it starts, ends, and is told what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import taskgraph_workers
from taskgraph_workers import cli
from taskgraph_workers.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = (sys.executable, "-m", "taskgraph_workers")


def run(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Return what the command did in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **more.pop("env", {})}
    return subprocess.run(
        [*PYTHON, *arguments], env=env, capture_output=True, text=True, check=False, **more
    )


def test_it_tells_its_version():
    """`python -m taskgraph_workers --version` prints it on standard output."""
    done = run("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"taskgraph-workers {taskgraph_workers.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_helps_with_an_example(command: str, capsys: pytest.CaptureFixture[str]):
    """`COMMAND --help` ends with a line that a reader can try."""
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr()
    assert "\nexample:\n  " in shown.out
    assert "taskgraph-workers " + command in shown.out.rpartition("example:")[2]
    assert shown.err == ""


def test_the_help_names_each_command(capsys: pytest.CaptureFixture[str]):
    """`--help` lists the commands, each with what it does, and the exit codes."""
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for command in COMMANDS:
        assert f"\n    {command} " in shown
    assert "2 could not run" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["pln"],
        ["show", "--level", "x"],
        ["plan", "--nonsense"],
        ["plan", "--col", "never"],
        ["plan", "-q", "-v"],
    ],
    ids=" ".join,
)
def test_what_it_does_not_understand(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    """Wrong arguments, cut option names among them, end with 2 and nothing on standard output."""
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("usage: taskgraph-workers")


@pytest.mark.parametrize(
    ("arguments", "command", "told"),
    [
        (["plan", "onprem"], "plan", "onprem; did you mean --profile onprem?"),
        (["plan", "--nonsense"], "plan", "unrecognized arguments: --nonsense\n"),
        (["show", "b-gpu", "onprem"], "show", "unrecognized arguments: onprem\n"),
        (["explain", "a", "-q", "b", "c"], "explain", "unrecognized arguments: c\n"),
    ],
)
def test_the_usage_is_that_of_the_command(
    arguments: list[str], command: str, told: str, capsys: pytest.CaptureFixture[str]
):
    """What a command does not understand is told under its own usage, with what was meant."""
    assert main(arguments) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"usage: taskgraph-workers {command} [-h]")
    assert told in shown


def test_it_starts_without_what_it_does_not_need():
    """Help and completion load no Taskgraph, and none of what reads a configuration."""
    program = (
        "import sys\n"
        "from taskgraph_workers.cli import main\n"
        "lines = ['--help', 'plan --help', 'completion bash']\n"
        "codes = [main(line.split()) for line in lines]\n"
        "heavy = {'taskgraph', 'voluptuous', 'yaml', 'taskgraph_workers.config'}\n"
        "print(codes, sorted(heavy & sys.modules.keys()), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == "[0, 0, 0] []\n"


def test_a_reader_who_has_enough_is_no_error():
    """Where nobody reads any more, it ends in silence, as commands do that a SIGPIPE ends."""
    reading, writing = os.pipe()
    os.close(reading)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            [*PYTHON, "completion", "bash"],
            env=env,
            stdout=closed,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_is_told_in_a_line():
    """What can't be written is no bug of ours: one line, and 2."""
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    for arguments in ("schema", "completion bash"):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(
                [*PYTHON, *arguments.split()],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        said = "error: standard output can't be written: No space left on device\n"
        assert (done.returncode, done.stderr) == (2, said), arguments


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_error(closed: str):
    """Who closes a stream wants to hear nothing of it, and no other file becomes it."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {closed}', "sh", *PYTHON, "schema"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (closed == "2>&-")


def test_ctrl_c_is_no_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """An interrupt ends it with 130 and without a word."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("taskgraph_workers.cli.completion.bash", interrupt)
    assert main(["completion", "bash"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch):
    """Only what a user can mend is told in a line: anything else keeps its traceback."""

    def break_down(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("taskgraph_workers.cli.completion.bash", break_down)
    with pytest.raises(ZeroDivisionError):
        cli.main(["completion", "bash"])
