"""Text in the columns of a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers.cli.layout import (
    GAP,
    NARROWEST,
    Styled,
    fit,
    line_width,
    width_of,
    word_width,
    wrap,
)

# Narrow, wide, combining and none; a dash and a slash, where a word may break.
TEXTS = st.text("ab -/日é\u0301\u200b", max_size=40)
LINES = st.lists(st.builds(Styled, TEXTS, st.sampled_from(["", "bold"])), max_size=4)


def letters(line: list[Styled]) -> list[tuple[str, str]]:
    """Return each letter that is no blank, with its style."""
    return [(letter, part.style) for part in line for letter in part.text if letter != " "]


@given(LINES, st.integers(2, 30))
def test_no_line_is_wider_than_it_may_be(line: list[Styled], width: int):
    """Whatever the text, what `wrap` gives fits the width."""
    assert all(line_width(each) <= width for each in wrap(line, width))


@given(LINES, st.integers(2, 30))
def test_wrapping_loses_nothing(line: list[Styled], width: int):
    """All letters come out in order, in their styles; only blanks may go."""
    assert [each for part in wrap(line, width) for each in letters(part)] == letters(line)


@given(LINES)
def test_what_fits_stays(line: list[Styled]):
    """A line that is no wider than the width comes out as it is."""
    assert list(wrap(line, max(line_width(line), 1))) == [line]


def test_words_are_kept_whole():
    """A line breaks between words, and goes on a little further right."""
    lines = wrap([Styled("WORKSPACE: 12000 to "), Styled("whatever", "bold")], 20)
    assert ["".join(part.text for part in line) for line in lines] == [
        "WORKSPACE: 12000 to ",
        "  whatever",
    ]


def test_the_rest_of_an_item_is_further_right():
    """Of a line that begins with blanks, what does not fit is indented by two more."""
    lines = wrap([Styled("  queue:create-task:low:training-onprem/snakepit")], 26)
    assert ["".join(part.text for part in line) for line in lines] == [
        "  queue:create-task:low:",
        "    training-onprem/",
        "    snakepit",
    ]


def test_a_long_word_breaks_at_a_seam():
    """A pool that is too wide breaks after its slash, a dash or a colon."""
    lines = wrap([Styled("training-onprem/snakepit-xlarge")], 20)
    assert ["".join(part.text for part in line) for line in lines] == [
        "training-onprem/",
        "  snakepit-xlarge",
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('say it here: env: {GPUS: "0 1"}', ["say it here: env:", '  {GPUS: "0 1"}']),
        ("it can't be 'gpu one two' here", ["it can't be", "  'gpu one two' here"]),
        ("write `levels: [1, 2, 3, 4, 5]`", ["write `levels: [1,", "  2, 3, 4, 5]`"]),
    ],
)
def test_a_snippet_is_a_word(text: str, lines: list[str]):
    """What is quoted or in braces is not broken, unless it is wider than a line."""
    shown = ["".join(part.text for part in line) for line in wrap([Styled(text)], 20)]
    assert [line.rstrip() for line in shown] == lines


def test_columns_give_way_where_no_word_breaks():
    """Blanks are used first; only then are words broken, such as a pool at its hyphens."""
    words = [word_width([Styled(text)]) for text in ("shop/b-linux-v100-gpu-4", "GPUS: 0 1 2 3")]
    assert words == [23, 5]
    assert fit([23, 13], 33, words) == [23, 8]
    assert fit([23, 13], 23, words) == [13, 8]


def test_widths_count_columns():
    """East Asian letters take two columns, and combining marks none."""
    assert [width_of(text) for text in ("abc", "日本", "e\u0301", "")] == [3, 4, 1, 0]


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers(1, 120))
def test_columns_fit_the_room(natural: list[int], room: int):
    """No column grows, all of them fit where that can be, and none gets too narrow to read."""
    widths = fit(natural, room)
    assert all(width <= wanted for width, wanted in zip(widths, natural))
    assert all(width == wanted or width >= NARROWEST for width, wanted in zip(widths, natural))
    fits = sum(widths) + GAP * (len(widths) - 1) <= room
    assert fits or all(width <= NARROWEST for width in widths)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6))
def test_columns_that_fit_are_left_alone(natural: list[int]):
    """With room enough, each column has the width of its content."""
    assert fit(natural, sum(natural) + GAP * (len(natural) - 1)) == natural
