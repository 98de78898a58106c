"""All printing: data on standard output, talk on standard error.

Tables fit the terminal (80 columns where its width is unknown), colour comes only where it is
wanted, and what a stream's encoding lacks is written in ASCII.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from taskgraph_workers.cli.layout import GAP, Cell, Part, Styled, fit, line_width, word_width, wrap
from taskgraph_workers.errors import Problem

#: Styles, and their numbers in ANSI's SGR sequence.
STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

#: Signs of ours, and what stands for them where the encoding lacks them.
PLAIN = {"→": "->", "×": "x"}

# Marks of writing direction, which can make a text read as another.
_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

#: Progress is shown after this many seconds.
PATIENCE_S = 1.0

_ERASE = "\r\033[K"


class Output:
    """Where one command prints, and how. ``color`` is ``auto``, ``always`` or ``never``."""

    def __init__(self, color: str = "auto", quiet: bool = False, verbose: bool = False) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self._color = color
        self._start = time.monotonic()
        self._told: set[str] = set()

    @property
    def width(self) -> int:
        """The columns there are for data."""
        return max(shutil.get_terminal_size((80, 24)).columns, 20)

    # --- data ---

    def line(self, *parts: Part) -> None:
        """One line of data, or more where it is too wide."""
        for line in wrap(_parts(parts, sys.stdout), self.width):
            self._print(sys.stdout, line)

    def whole_line(self, *parts: Part) -> None:
        """One line of data, however wide: one that is copied, or that another program reads."""
        self._print(sys.stdout, _parts(parts, sys.stdout))

    def json(self, fields: Mapping[str, Any]) -> None:
        """One JSON object, with the version of its shape."""
        import json

        print(json.dumps({"version": 1, **fields}, indent=2), file=sys.stdout)

    def text(self, text: str) -> None:
        """A text that is meant for a file or another program: as it is."""
        sys.stdout.write(text)

    def table(
        self, rows: Iterable[Sequence[Cell]], header: Sequence[str] = (), indent: int = 0
    ) -> None:
        """Rows of cells in columns; what is too wide is wrapped inside its cell.

        A row of one cell, where others have more, is a line of its own across all columns.
        """
        head = [[Styled(name, "dim") for name in header]] if header else []
        cells = [[_lines(cell, sys.stdout) for cell in row] for row in [*head, *rows]]
        count = max(map(len, cells), default=0)
        columns = list(zip(*(row for row in cells if len(row) == count)))
        natural, words = (
            [max(measure(line) for cell in each for line in cell) for each in columns]
            for measure in (line_width, word_width)
        )
        widths = fit(natural, self.width - indent, words)
        for row in cells:
            across = len(row) == 1 < count
            self._row(row, [self.width] if across else widths, 0 if across else indent)

    def _row(
        self, row: Sequence[Sequence[Sequence[Styled]]], widths: Sequence[int], indent: int
    ) -> None:
        wrapped = [
            [part for line in cell for part in wrap(line, width)]
            for cell, width in zip(row, widths)
        ]
        for at in range(max(map(len, wrapped))):
            self._print(sys.stdout, _beside(wrapped, at, widths, indent))

    # --- talk ---

    def talk(self, *parts: Part) -> None:
        """Something a person may want to know; not with ``-q``."""
        if not self.quiet:
            self.clear()
            self._say(_parts(parts, sys.stderr))

    def talk_lines(self, text: str) -> None:
        """Talk of several lines."""
        if not self.quiet:
            self.clear()
            for line in text.splitlines():
                self._print(sys.stderr, _parts([line], sys.stderr))

    def warn(self, text: str) -> None:
        """A warning, once; not with ``-q``."""
        if text not in self._told:
            self._told.add(text)
            self._tell("warning: ", "yellow", text)

    def error(self, text: str) -> None:
        """What went wrong."""
        self.clear()
        self._tell("error: ", "red", text)

    def problems(self, problems: Iterable[Problem]) -> None:
        """Faults, each with its place in front where it has one, as editors read it.

        With ``-q`` the warnings beside them are left out.
        """
        for problem in problems:
            sign = "" if problem.file else "error: "
            style = "red" if problem.severity == "error" else "yellow"
            self._tell(sign, style, str(problem))

    def progress(self, text: str) -> None:
        """What is being done, on a line that comes and goes: on a terminal, after a second."""
        late = time.monotonic() - self._start >= PATIENCE_S
        if late and self._has_progress():
            shown = "".join(part.text for part in _parts([text], sys.stderr))
            sys.stderr.write(_ERASE + shown[: self.width - 1])
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line of progress away."""
        if self._has_progress():
            sys.stderr.write(_ERASE)
            sys.stderr.flush()

    def _has_progress(self) -> bool:
        plain = self.quiet or self.verbose or os.environ.get("TERM") == "dumb"
        return not plain and _is_terminal(sys.stderr)

    def _tell(self, sign: str, style: str, text: str) -> None:
        """Talk of several lines; a warning, unless it is an error, is silenced by ``-q``."""
        if self.quiet and style != "red":
            return
        self.clear()
        for line in text.splitlines() or [""]:
            self._say(_parts([Styled(sign, style), line], sys.stderr))
            sign = ""

    def _say(self, line: Sequence[Styled]) -> None:
        """A line for people is wrapped; a file, or an editor that reads it, gets it whole."""
        whole = not _is_terminal(sys.stderr)
        for each in [line] if whole else wrap(line, self.width):
            self._print(sys.stderr, each)

    # --- the one place where it goes out ---

    def _print(self, stream: TextIO, line: Iterable[Styled]) -> None:
        colored = self._wants_color(stream)
        text = "".join(
            f"\033[{STYLES[part.style]}m{part.text}\033[0m"
            if colored and part.style and part.text
            else part.text
            for part in line
        )
        if stream is not sys.stdout:
            self._flush()
        print(text.rstrip(" "), file=stream)

    def _flush(self) -> None:
        """Have data come before what is said after it, also where both go to one file.

        Where that fails it does so again at the end, for whoever can do something about it.
        """
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()

    def _wants_color(self, stream: TextIO) -> bool:
        """``auto``: on a terminal that can, unless NO_COLOR says anything (no-color.org)."""
        if self._color != "auto":
            return self._color == "always"
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return not plain and _is_terminal(stream)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _beside(
    wrapped: Sequence[Sequence[Sequence[Styled]]], at: int, widths: Sequence[int], indent: int
) -> list[Styled]:
    """The line ``at`` of a row: that line of each of its cells."""
    line = [Styled(" " * indent)]
    for cell, width in zip(wrapped, widths):
        here = cell[at] if at < len(cell) else ()
        line += [*here, Styled(" " * (width - line_width(here) + GAP))]
    return line


def _lines(cell: Cell, stream: TextIO) -> list[list[Styled]]:
    if isinstance(cell, (str, Styled)):
        return [_parts([cell], stream)]
    return [_parts([x] if isinstance(x, (str, Styled)) else x, stream) for x in cell] or [[]]


def _parts(line: Sequence[Part], stream: TextIO) -> list[Styled]:
    """Parts that can be written to the stream as they are."""
    styled = [part if isinstance(part, Styled) else Styled(part) for part in line]
    return [Styled(_writable(part.text, stream.encoding), part.style) for part in styled]


def _writable(text: str, encoding: str | None) -> str:
    """A text without what a terminal would obey, and without what the encoding lacks."""
    if text.isascii() and text.isprintable():
        return text
    text = "".join(
        char.encode("unicode_escape").decode()
        if unicodedata.category(char) == "Cc" or char in _TURNS
        else char
        for char in text
    )
    encoding = encoding or "ascii"
    for sign, plain in PLAIN.items():
        if sign in text and not _can_encode(sign, encoding):
            text = text.replace(sign, plain)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _can_encode(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
