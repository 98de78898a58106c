"""Completion of the command in shells."""

from __future__ import annotations

import subprocess

import pytest

from taskgraph_workers.cli import COMMANDS, make_parser
from taskgraph_workers.cli.completion import SHELLS, bash, fish, words_of, zsh
from tests.needs import needs

WORDS = list(words_of(make_parser()))


def complete(line: str) -> set[str]:
    """Return what bash offers at the end of a line, file names apart."""
    program = (
        f'{bash(WORDS)}COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
        '_taskgraph_workers; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    words = line.split(" ")
    done = subprocess.run(
        [needs("bash"), "--norc", "-uc", program, "bash", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("taskgraph-workers pl", {"plan"}),
        ("taskgraph-workers plan --pro", {"--profile"}),
        ("taskgraph-workers plan --profile onprem --fr", {"--from", "--from-parameters"}),
        ("taskgraph-workers plan --color ", {"auto", "always", "never"}),
        ("taskgraph-workers plan --color a", {"auto", "always"}),
        ("taskgraph-workers completion f", {"fish"}),
        ("taskgraph-workers launch st", {"status", "stop"}),
        ("taskgraph-workers launch stop --n", {"--now"}),
        ("taskgraph-workers plan -p ", set()),
        ("taskgraph-workers plan --root ta", set()),
    ],
)
def test_bash_completes(line: str, offered: set[str]):
    """Commands, options and their values; where a file is wanted, bash's own completion."""
    assert complete(line) == offered


def test_bash_offers_every_command():
    """After the command's name come all subcommands."""
    assert complete("taskgraph-workers ") >= set(COMMANDS)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_option_is_known_to_every_shell(shell: str):
    """Whatever the parser takes is in each script."""
    script = {"bash": bash, "zsh": zsh, "fish": fish}[shell](WORDS)
    for word in WORDS:
        spelled = word.text.lstrip("-") if shell == "fish" else word.text
        assert spelled in script


def test_the_script_is_clean():
    """Shellcheck has nothing to say of the script for bash."""
    done = subprocess.run(
        [needs("shellcheck"), "--shell=bash", "-"],
        input=bash(WORDS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
