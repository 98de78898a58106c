"""Text in columns of a terminal: how wide it is, where it breaks, what each column gets. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Styled:
    """A text on one line, in one style of :data:`taskgraph_workers.cli.output.STYLES`."""

    text: str
    style: str = ""


#: What a line is made of, side by side.
Part = Union[str, Styled]
#: One part, or several.
Line = Union[Part, Sequence[Part]]
#: What stands in a cell of a table: one part, or a list of lines.
Cell = Union[Part, Sequence[Line]]

#: Between two columns.
GAP = 2
#: No column gets narrower than this, unless its content is.
NARROWEST = 8
# How far the rest of a wrapped line is indented.
_HANG = 2

_WORDS = re.compile(r"\s*\S+|\s+")


def width_of(text: str) -> int:
    r"""How many columns of a terminal a text takes.

    >>> width_of("abc"), width_of("\u65e5\u672c"), width_of("e\u0301")
    (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(_width(char) for char in text)


def _width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def line_width(line: Iterable[Styled]) -> int:
    """How many columns the parts of a line take."""
    return sum(width_of(part.text) for part in line)


def fit(natural: Sequence[int], room: int) -> list[int]:
    """The widths of a table's columns: the widest give way until all, and the gaps, fit.

    >>> fit([10, 40, 50], 74)
    [10, 30, 30]
    """
    widths = list(natural)
    room -= GAP * (len(widths) - 1)
    while sum(widths) > room:
        widest = max(range(len(widths)), key=widths.__getitem__)
        if widths[widest] <= NARROWEST:
            break
        widths[widest] -= 1
    return widths


def wrap(line: Sequence[Styled], width: int) -> Iterator[list[Styled]]:
    """A line as lines of at most this width, broken between words where that can be.

    What does not fit hangs: it goes on a little further right than the line began.
    """
    if line_width(line) <= width:
        yield list(line)
        return
    text = "".join(part.text for part in line)
    hang = min(len(text) - len(text.lstrip(" ")) + _HANG, width - 2)
    hanging = Styled(" " * hang)
    done: list[Styled] = []
    used = 0
    for part in _words(line):
        word = part.text
        if used + width_of(word) > width and used:
            yield done
            done, used = [hanging], hang
            word = word.lstrip()
        while used + width_of(word) > width:
            head, word = _split(word, width - used)
            yield [*done, Styled(head, part.style)]
            done, used = [hanging], hang
        done.append(Styled(word, part.style))
        used += width_of(word)
    yield done


def _words(line: Iterable[Styled]) -> Iterator[Styled]:
    for part in line:
        for word in _WORDS.findall(part.text):
            yield Styled(word, part.style)


def _split(text: str, width: int) -> tuple[str, str]:
    """As much as fits, one character at least; after one of `/-:` in its second half."""
    end, used = 1, width_of(text[0])
    while end < len(text) and used + _width(text[end]) <= width:
        used += _width(text[end])
        end += 1
    seam = max(text.rfind(sign, end // 2, end) for sign in "/-:")
    end = seam + 1 if seam > 0 else end
    return text[:end], text[end:]
