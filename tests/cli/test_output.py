"""Printing: colour, encodings, tables, and talk that is no data."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from taskgraph_workers.cli import output as module
from taskgraph_workers.cli.layout import Styled
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem
from tests.cli.commands import ROOT


class Stream(io.TextIOWrapper):
    """A stream in memory that may be a terminal, with an encoding of its own."""

    def __init__(self, encoding: str = "utf-8", terminal: bool = False) -> None:
        super().__init__(io.BytesIO(), encoding=encoding, newline="\n")
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    @property
    def written(self) -> str:
        self.flush()
        kept = self.buffer
        assert isinstance(kept, io.BytesIO)
        return kept.getvalue().decode(self.encoding)


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> tuple[Stream, Stream]:
    """Return standard output and error, both of them terminals of 80 columns."""
    both = Stream(terminal=True), Stream(terminal=True)
    for name in ("NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    # Not those of `sys` itself, which pytest replaces before each phase of a test.
    monkeypatch.setattr(module, "sys", SimpleNamespace(stdout=both[0], stderr=both[1]))
    return both


GREEN = "\033[32mmoved\033[0m\n"


@pytest.mark.parametrize(
    ("option", "env", "terminal", "colored"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {}, True, False),
    ],
)
def test_colour(
    option: str,
    env: dict[str, str],
    terminal: bool,
    colored: bool,
    streams: tuple[Stream, Stream],
    monkeypatch: pytest.MonkeyPatch,
):
    """`auto` looks at the terminal and at NO_COLOR; the option beats both."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    streams[0].terminal = terminal
    Output(option).line(Styled("moved", "green"))
    assert streams[0].written == (GREEN if colored else "moved\n")


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("utf-8", "é → 日\n"), ("latin-1", "é -> \\u65e5\n"), ("ascii", "\\xe9 -> \\u65e5\n")],
)
def test_what_an_encoding_lacks(encoding: str, shown: str, monkeypatch: pytest.MonkeyPatch):
    """Signs of ours have a stand-in, other letters are escaped, and nothing fails."""
    stream = Stream(encoding)
    monkeypatch.setattr(module, "sys", SimpleNamespace(stdout=stream))
    Output().line("é → 日")
    assert stream.written == shown


def test_a_terminal_is_not_told_what_to_do(streams: tuple[Stream, Stream]):
    """Control characters and marks of direction in a value are shown, not obeyed."""
    Output("never").line("a\033[2Jb\nc\td\u202ee\u2066")
    assert streams[0].written == "a\\x1b[2Jb\\nc\\td\\u202ee\\u2066\n"


ROWS = [["train", ["GPUS: 0", "WORKSPACE: 12000 → 8000"]], ["evaluate", "nothing"]]


def test_a_table_has_columns(streams: tuple[Stream, Stream]):
    """Cells of several lines stand side by side, under their header, without trailing blanks."""
    Output("never").table(ROWS, header=["KIND", "CHANGES"], indent=2)
    assert streams[0].written.splitlines() == [
        "  KIND      CHANGES",
        "  train     GPUS: 0",
        "            WORKSPACE: 12000 → 8000",
        "  evaluate  nothing",
    ]


def test_a_table_fits_its_terminal(streams: tuple[Stream, Stream], monkeypatch: pytest.MonkeyPatch):
    """Where it would be too wide, its widest cells wrap; wide letters count twice."""
    monkeypatch.setenv("COLUMNS", "24")
    Output("never").table([*ROWS, ["日本語", "x"]])
    lines = streams[0].written.splitlines()
    assert lines == [
        "train     GPUS: 0",
        "          WORKSPACE:",
        "            12000 → 8000",
        "evaluate  nothing",
        "日本語    x",
    ]


def test_a_row_across_does_not_widen_a_column(streams: tuple[Stream, Stream]):
    """A row of one cell runs over all columns, and an empty table prints nothing."""
    output = Output("never")
    output.table([["A heading that is wider than all"], ["a", "b"]], indent=2)
    output.table([])
    assert streams[0].written == "A heading that is wider than all\n  a  b\n"


def test_json_has_a_version(streams: tuple[Stream, Stream]):
    """One object, whatever the terminal; its version comes first."""
    Output("always").json({"moves": ["é"]})
    assert json.loads(streams[0].written) == {"version": 1, "moves": ["é"]}
    assert streams[0].written.isascii()


def test_talk_is_no_data(streams: tuple[Stream, Stream]):
    """Everything but data goes to standard error; a warning is said once."""
    output = Output("never")
    output.talk("hello")
    output.warn("mind the gap\nhint: look down")
    output.warn("mind the gap\nhint: look down")
    output.error("no")
    assert streams[0].written == ""
    told = streams[1].written.replace(module._ERASE, "")
    assert told == "hello\nwarning: mind the gap\nhint: look down\nerror: no\n"


def test_talk_is_wrapped_for_people_only(
    streams: tuple[Stream, Stream], monkeypatch: pytest.MonkeyPatch
):
    """A terminal gets faults and hints wrapped as a report is; a file has each on one line."""
    monkeypatch.setenv("COLUMNS", "24")
    problem = Problem("nothing says what to go to", hint="add --profile to it: {a: b}")
    Output("never").problems([problem])
    told = streams[1].written.replace(module._ERASE, "")
    assert told.splitlines() == [
        "error: nothing says what",
        "  to go to",
        "    hint: add --profile",
        "      to it: {a: b}",
    ]
    streams[1].terminal = False
    Output("never").problems([problem])
    assert "\n    hint: add --profile to it: {a: b}\n" in streams[1].written


def test_quiet_keeps_errors(streams: tuple[Stream, Stream]):
    """`-q` takes away warnings and talk, never what went wrong."""
    output = Output("never", quiet=True)
    output.talk("hello")
    output.warn("mind the gap")
    output.problems([Problem("wrong", ("a", "b"), "mend it", file="x.yml", line=3, column=1)])
    output.problems([Problem("odd", file="x.yml", severity="warning"), Problem("also wrong")])
    assert streams[1].written == "x.yml:3:1: a.b: wrong\n    hint: mend it\nerror: also wrong\n"


def test_progress_is_for_the_impatient(
    streams: tuple[Stream, Stream], monkeypatch: pytest.MonkeyPatch
):
    """Nothing in the first second; then one line, cut to the width, that goes away again."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setenv("COLUMNS", "20")
    output = Output("never")
    now[0] += module.PATIENCE_S / 2
    output.progress("early")
    assert streams[1].written == ""
    now[0] += module.PATIENCE_S
    output.progress("Making a graph: kind train")
    assert streams[1].written == "\r\033[KMaking a graph: kin"
    output.clear()
    assert streams[1].written.endswith("\r\033[K")


@pytest.mark.parametrize("how", ["no terminal", "dumb", "quiet", "verbose"])
def test_no_progress(how: str, streams: tuple[Stream, Stream], monkeypatch: pytest.MonkeyPatch):
    """Where nobody would see it, or it can't go away, or all is told anyway, there is none."""
    monkeypatch.setattr(module, "PATIENCE_S", 0)
    streams[1].terminal = how != "no terminal"
    monkeypatch.setenv("TERM", "dumb" if how == "dumb" else "xterm")
    output = Output("never", quiet=how == "quiet", verbose=how == "verbose")
    output.progress("working")
    output.clear()
    assert streams[1].written == ""


def test_what_is_said_stands_where_it_was_said(tmp_path: Path):
    """Data and talk that go to one file are in the order in which they came."""
    code = (
        "from taskgraph_workers.cli.output import Output\n"
        "output = Output()\n"
        "output.line('one'); output.warn('two'); output.line('three'); output.error('four')"
    )
    with (tmp_path / "both").open("w") as both:
        subprocess.run([sys.executable, "-c", code], stdout=both, stderr=both, cwd=ROOT, check=True)
    said = (tmp_path / "both").read_text().splitlines()
    assert said == ["one", "warning: two", "three", "error: four"]
