"""Walltimes: what is meant, and what Merlin does with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from merlin_texts import HEAD, STUDY, faults, notes, read

from taskgraph_workers.launch.merlin.walltimes import walltime
from taskgraph_workers.units import days_exact


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ('"00:20:00"', 1200),
        ("00:20:00", 1200),
        ('"1:30"', 90),
        ('"1:00:00:00"', 86400),
        ("3600", 3600),
        ("$(W)", 1500),
    ],
)
def test_a_walltime_as_merlin_reads_it(text: str, seconds: int):
    """``[[d:]h:]m:s``, or seconds; a variable may stand for it. Nothing is to be said of these."""
    variables = "env: {variables: {W: '00:25:00'}}\n"
    spec = read(f"{HEAD}{variables}batch: {{walltime: {text}}}\n{STUDY}")
    assert (spec.batch.header.walltime_s, spec.notes) == (seconds, ())


@pytest.mark.parametrize(
    ("text", "seconds", "told", "hint"),
    [
        ("90m", 5400, "Merlin reads 90m as 90 seconds", '"01:30:00"'),
        ("2h", 7200, "Merlin reads 2h as 2 seconds", '"02:00:00"'),
        ("1-00:00:00", 86400, "Merlin can't read 1-00:00:00", '"1:00:00:00"'),
        ("20", 20, "a walltime of 20 is 20 seconds to Merlin", '"00:20:00"'),
        ('"20"', 20, "a walltime of 20 is 20 seconds to Merlin", '"00:20:00"'),
        ("10:00:00", 36000, "YAML reads 10:00:00 as the number 36000", '"10:00:00"'),
        ("1:00:00:00", 86400, "YAML reads 1:00:00:00 as the number 216000", '"1:00:00:00"'),
    ],
)
def test_a_walltime_that_is_taken_otherwise(text: str, seconds: int, told: str, hint: str):
    """It is read as it is meant, and what Merlin would do is said, with what to write."""
    spec = read(f"{HEAD}batch: {{walltime: {text}}}\n{STUDY}")
    assert spec.batch.header.walltime_s == seconds
    (note,) = spec.notes
    assert (note.line, note.path) == (2, ("batch", "walltime"))
    assert note.message.startswith(told)
    assert hint in note.hint


@pytest.mark.parametrize("text", ["soon", "0", "-5", "1.5", "true", "[1]", "1:2:3:4:5", '" "'])
def test_no_walltime(text: str):
    """What is none, or nothing, is a fault of the header."""
    assert len(faults(f"{HEAD}batch: {{walltime: {text}}}\n{STUDY}")) == 1


def test_no_walltime_of_a_step():
    """A step's is no part of the header: Merlin fails on it only when it gets there."""
    spec = read(HEAD + "study:\n- {name: s, description: d, run: {cmd: x, walltime: soon}}\n")
    assert notes(spec)[0].startswith("3: study.0.run.walltime: 'soon' is no duration")


@given(st.integers(1, 10**8))
def test_what_is_proposed_means_the_same(seconds: int):
    """A clock that is proposed is read as just as many seconds, and nothing is said of it."""
    found = walltime(days_exact(seconds), None)
    assert (found.seconds, found.note) == (seconds, "")
