"""Sizes and durations."""

from __future__ import annotations

import doctest
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers import units


def test_the_examples():
    """The examples in the module are right."""
    assert doctest.testmod(units).failed == 0


@pytest.mark.parametrize(
    ("text", "floor", "ceil"),
    [
        ("16GiB", 16384, 16384),
        ("16 gib", 16384, 16384),
        ("16G", 16384, 16384),
        ("1.5T", 1572864, 1572864),
        ("1KiB", 0, 1),
        ("0MB", 0, 0),
        ("1MB", 0, 1),
        ("1000000kB", 953, 954),
        ("256GB", 244140, 244141),
    ],
)
def test_sizes(text: str, floor: int, ceil: int):
    """Binary units as Slurm's, decimal ones with a B; a machine's rounded down, a need's up."""
    assert (units.mib_floor(text), units.mib_ceil(text)) == (floor, ceil)


@pytest.mark.parametrize(
    "text", ["16", "GiB", "", "-1GiB", "1e3MiB", "16XB", "1 2GiB", "٣GiB", "9" * 16 + "GiB"]
)
def test_what_is_no_size(text: str):
    """Without a unit nobody knows what is meant; the message shows how to write it."""
    with pytest.raises(ValueError, match="is no size: write a number and a unit, such as 16GiB"):
        units.mib_floor(text)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        (20, 20),
        ("20", 20),
        ("90m", 5400),
        ("2h", 7200),
        ("1d", 86400),
        ("45s", 45),
        ("1h30m", 5400),
        (" 2H ", 7200),
        ("20:00", 1200),
        ("00:20:00", 1200),
        ("1:30:00", 5400),
        ("36:00:00", 129600),
        ("2:00:00:00", 172800),
        ("1-00:00:00", 86400),
        ("1-12:30", 131400),
    ],
)
def test_durations(said: int | str, seconds: int):
    """Letters, clock forms as Merlin reads them, Slurm's days, and plain seconds."""
    assert units.seconds(said) == seconds


@pytest.mark.parametrize(
    "said", ["", "soon", "1m2h", "90x", "-5", "1.5h", "1:2:3:4:5", "1-1:2:3:4", "1-2", "9" * 99]
)
def test_what_is_no_duration(said: str):
    """The message shows every way to write one."""
    with pytest.raises(ValueError, match="is no duration: write 90m, 2h, 1-00:00:00, H:M:S or a"):
        units.seconds(said)


@pytest.mark.parametrize("said", [0, -5, "0", "0m", "00:00:00"])
def test_nothing_is_no_duration(said: int | str):
    """A job can't end before it begins; to some schedulers 0 means no limit at all."""
    with pytest.raises(ValueError, match="a duration must be longer than nothing"):
        units.seconds(said)


@given(st.text(max_size=20) | st.integers())
def test_only_value_errors(said: int | str):
    """Whatever is said, it is a duration, or a ValueError."""
    with suppress(ValueError):
        assert units.seconds(said) > 0


@given(st.text(max_size=20))
def test_only_value_errors_for_sizes(text: str):
    """Whatever is said, it is a size, or a ValueError; rounding differs by one MiB at most."""
    with suppress(ValueError):
        assert units.mib_ceil(text) - units.mib_floor(text) in (0, 1)


@given(st.integers(1, 10**9))
def test_seconds_and_their_clock_form_are_the_same(total: int):
    """H:M:S says what the number of seconds says."""
    hours, rest = divmod(total, 3600)
    assert units.seconds(f"{hours}:{rest // 60:02}:{rest % 60:02}") == total
