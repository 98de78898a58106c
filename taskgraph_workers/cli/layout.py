"""Text in columns of a terminal: how wide it is, where it breaks, what each column gets. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Union


class Styled(NamedTuple):
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
# How much further right than its beginning the rest of a wrapped line is.
_HANG = 2

_WORDS = re.compile(r"\s*\S+|\s+")
# What is copied as a whole, such as "0 1 2", `levels: [1]` or {GPUS: "0"}, is one word.
_SNIPPETS = re.compile(
    r"""\s* (?: (?<!\w)'[^']*'(?!\w) | "[^"]*" | `[^`]*` | \{[^{}]*\} | \S )+ | \s+""", re.VERBOSE
)


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


def fit(natural: Sequence[int], room: int, words: Sequence[int] = ()) -> list[int]:
    """The widths of a table's columns: the widest give way until all, and the gaps, fit.

    ``words`` are the widths below which a column's words would break, which comes last.

    >>> fit([10, 40, 50], 74)
    [10, 30, 30]
    >>> fit([10, 40, 50], 74, [10, 40, 9])
    [10, 40, 20]
    """
    widths = list(natural)
    room -= GAP * (len(widths) - 1)
    for least in (words or [0] * len(widths), [0] * len(widths)):
        floors = [max(NARROWEST, width) for width in least]
        while sum(widths) > room:
            wide = [index for index, floor in enumerate(floors) if widths[index] > floor]
            if not wide:
                break
            # Of equal ones that which is cut already, so that no more cells are wrapped than must.
            widths[max(wide, key=lambda at: (widths[at], widths[at] < natural[at]))] -= 1
    return widths


def word_width(line: Sequence[Styled]) -> int:
    """The width below which :func:`wrap` would break a word of the line.

    >>> word_width([Styled("GPUS: 0 1"), Styled(" ab-cde")])
    8
    """
    first, *rest = [word.text.rstrip() for word in _words(line)] or [""]
    return max([width_of(first), *(_hang(line) + width_of(word.lstrip()) for word in rest)])


def _hang(line: Iterable[Styled]) -> int:
    """How far the rest of a wrapped line is indented."""
    text = "".join(part.text for part in line)
    return len(text) - len(text.lstrip(" ")) + _HANG


def wrap(line: Sequence[Styled], width: int) -> Iterator[list[Styled]]:
    """A line as lines of at most this width, broken between words where that can be.

    What does not fit hangs: it goes on a little further right than the line began.
    """
    if line_width(line) <= width:
        yield list(line)
        return
    hang = min(_hang(line), width - 2)
    hanging = Styled(" " * hang)
    done: list[Styled] = []
    used = 0
    for part in _words(line, width - hang):
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


def _words(line: Iterable[Styled], room: int | None = None) -> Iterator[Styled]:
    """The words of a line, with the blanks before them; a snippet is one if there is room."""
    for part in line:
        for snippet in _SNIPPETS.findall(part.text):
            fits = room is None or width_of(snippet.strip()) <= room
            for word in [snippet] if fits else _WORDS.findall(snippet):
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
