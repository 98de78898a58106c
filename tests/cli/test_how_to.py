"""The pages about looking before a move: what they show is what the command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.commands import command
from tests.graph.support import ROOT

PAGES = [ROOT / "docs" / "how-to" / f"{name}.md" for name in ("find-out-why",)]
BLOCK = re.compile(r"```console\n\$ taskgraph-workers (.*)\n((?:.*\n)+?)```")


def examples() -> list[tuple[str, str]]:
    """Each command of the pages that is shown with what it prints."""
    return [found for page in PAGES for found in BLOCK.findall(page.read_text("utf-8"))]


def without_lines(text: str) -> str:
    """A text without line numbers, which move with every edit of the example."""
    return re.sub(r"\.yml:\d+", ".yml:N", text)


def test_there_are_examples():
    """The pages have the examples that are run here."""
    assert len(examples()) == 3


@pytest.mark.parametrize(("line", "printed"), examples())
def test_an_example(line: str, printed: str):
    """A command of the pages prints what they show, line numbers aside."""
    done = command(*shlex.split(line), cwd=Path(ROOT))
    assert done.returncode == 0, done.stderr
    assert without_lines(done.stdout) == without_lines(printed)
