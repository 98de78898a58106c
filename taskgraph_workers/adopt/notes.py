"""The comments of a YAML file: which lines they are on, and what they are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import yaml


class Note(NamedTuple):
    """One comment. ``alone`` says that it has its line to itself; lines count from 1."""

    line: int
    column: int
    text: str
    alone: bool


class Notes:
    """The comments of a text, and which of them were taken along so far."""

    def __init__(self, text: str) -> None:
        ends = _ends(text)
        self.content = frozenset(ends)
        self.by_line = {note.line: note for note in _notes(text, ends)}
        self.taken: set[int] = set()

    def header(self, line: int) -> list[Note]:
        """The comments right above a key."""
        found: list[Note] = []
        while (note := self.by_line.get(line - 1 - len(found))) is not None and note.alone:
            found.insert(0, note)
        return found

    def start(self, line: int, column: int) -> int:
        """The line where what is about a key begins: its comments, after what went before.

        What is indented deeper than the key is about what went before.
        """
        start = line
        for above in range(line - 1, 0, -1):
            note = self.by_line.get(above)
            if above in self.content or (note is not None and note.column > column):
                break
            start = above if note is not None else start
        return start

    def between(self, first: int, last: int) -> list[Note]:
        """The comments from one line up to, not including, another."""
        return [note for line, note in sorted(self.by_line.items()) if first <= line < last]

    def take(self, notes: Sequence[Note]) -> list[str]:
        """The texts, which are taken along from here on."""
        self.taken.update(note.line for note in notes)
        return [note.text for note in notes]

    def of_table(
        self, lines: Mapping[str, int], column: int, end: int
    ) -> tuple[dict[str, list[Note]], list[Note]]:
        """What is about each key of a table, and what stands behind the last of them.

        ``lines`` are those of the keys, ``column`` is where they begin; ``end`` is the line on
        which something else begins.
        """
        found: dict[str, list[Note]] = {}
        ordered = sorted(lines.items(), key=lambda each: each[1])
        starts = [self.start(line, column) for _, line in ordered]
        for (name, _), start, last in zip(ordered, starts, [*starts[1:], end]):
            found[name] = self.between(start, last)
        content = max((line for line in self.content if line < end), default=0)
        behind = [n for n in self.between(content + 1, end) if n.column <= column]
        if ordered:
            last_of_all = ordered[-1][0]
            found[last_of_all] = [n for n in found[last_of_all] if n not in behind]
        return found, [note for note in behind if note.column > 1]


def _notes(text: str, ends: Mapping[int, int]) -> Iterator[Note]:
    for number, line in enumerate(text.splitlines(), 1):
        end = ends.get(number, 0)
        rest = line[end:] if end < len(line) else ""
        if rest.lstrip().startswith("#"):
            column = line.index("#", end) + 1
            yield Note(number, column, rest.strip(), alone=number not in ends)


def _ends(text: str) -> dict[int, int]:
    """For each line that holds more than a comment, the column where that ends."""
    ends: dict[int, int] = {}
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        start, end = token.start_mark, token.end_mark
        for line in range(start.line, end.line + 1):
            column = end.column if line == end.line else len(text)
            if column > (start.column if line == start.line else 0):
                ends[line + 1] = max(ends.get(line + 1, 0), column)
    return ends
