"""What a trainer on this machine printed: where that is, and its end."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING

from taskgraph_workers.cli import dispatch_state
from taskgraph_workers.cli.layout import Styled
from taskgraph_workers.cli.output import Output

if TYPE_CHECKING:
    from taskgraph_workers.dispatch.ledger.values import Request

#: Of a trainer that failed so many lines are shown, each so long at most.
_LINES, _MOST_LINE = 10, 300
# As much as these may take, with what is left out of them.
_TAIL = 16 * 1024

# What colours a terminal, moves on it or names its window: ECMA-48's CSI, and OSC.
_OBEYED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")


def file_of(args: argparse.Namespace, request: Request) -> str | None:
    """The file that a request's trainer prints to; None where there is none on this machine."""
    from taskgraph_workers.dispatch.executors import folder

    if request.executor != "local" or request.key is None:
        return None
    state = dispatch_state.state_of(args).folder
    file = os.path.join(state, folder.JOBS, request.key, folder.OUTPUT)
    return file if os.path.isfile(file) else None


def near(file: str) -> str:
    """A path as it is shortest to type here."""
    try:
        here = os.path.relpath(file)
    except (OSError, ValueError):  # this folder is gone
        return file
    return file if here.startswith(os.pardir) else here


def show_end(file: str, output: Output) -> None:
    """Print the last lines of a file, whole, so that nothing in them does anything."""
    lines = last_lines(file)
    output.line()
    output.line("  ", Styled("its last lines" if lines else "it printed nothing", "dim"))
    for line in lines:
        output.whole_line("    ", line)


def last_lines(file: str) -> list[str]:
    """The last lines of a file that say something; none where it can't be read.

    Of a line that was written over and over, as a progress bar is, its last state.
    """
    try:
        with open(file, "rb") as opened:
            start = max(0, opened.seek(0, os.SEEK_END) - _TAIL)
            opened.seek(start)
            text = opened.read(_TAIL).decode("utf-8", "backslashreplace")
    except OSError:
        return []
    lines = text.split("\n")
    if start and len(lines) > 1:
        del lines[0]  # its beginning is not there
    shown = (_OBEYED.sub("", line).rstrip().rpartition("\r")[2] for line in lines)
    said = [line.expandtabs(4) for line in shown if line.strip()]
    return [
        line if len(line) <= _MOST_LINE else f"{line[:_MOST_LINE]}..." for line in said[-_LINES:]
    ]
