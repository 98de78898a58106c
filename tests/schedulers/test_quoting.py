from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from needs import needs
from scheduler_texts import TEXTS, flux_reads, sbatch_reads
from taskgraph_workers.schedulers import quoting
from taskgraph_workers.schedulers.base import SchedulerError

VALUES = [quoting.slurm_value, quoting.flux_value, quoting.lsf_value, quoting.pbs_value]
WORDS = [quoting.word, quoting.inner, *VALUES]


@given(TEXTS)
def test_sbatch_reads_one_value(text: str):
    """Whatever a text holds, sbatch reads it as one value, as it was, and nothing behind it."""
    line = f"--comment={quoting.slurm_value(text)} --nodes=2"
    assert sbatch_reads(line) == [f"--comment={text}", "--nodes=2"]


@given(TEXTS)
def test_flux_reads_one_value(text: str):
    """Whatever a text holds, Flux reads it as one value, and sees no text of several lines."""
    line = f"--job-name={quoting.flux_value(text)} --nodes=2"
    assert flux_reads(line) == [f"--job-name={text}", "--nodes=2"]
    assert '"""' not in line
    assert not line.endswith("'''")


@pytest.mark.parametrize("quote", [quoting.lsf_value, quoting.pbs_value])
@given(text=TEXTS)
def test_untried_schedulers_get_nothing_doubtful(quote: Callable[[str], str], text: str):
    """For LSF and PBS a value is plain or in quotes, with nothing special inside, or refused."""
    try:
        value = quote(text)
    except ValueError:
        assert re.search(r"[\"'\\$`#]", text)
    else:
        assert value.strip('"') == text.strip('"')
        assert re.fullmatch(r'[\w%+:,./@-]+|"[^"\'\\$`#]*"', value, re.ASCII)


@given(TEXTS)
def test_a_word_is_one_word(text: str):
    """A shell reads back the very word."""
    assert shlex.split(quoting.word(text)) == [text]


@given(st.lists(TEXTS, min_size=1, max_size=8))
@settings(max_examples=30)
def test_bash_reads_the_words(texts: list[str]):
    """Bash takes readable words as they were, also where a line of them is quoted once more."""
    line = "printf '%s\\0' " + " ".join(map(quoting.inner, texts))
    whole = f"bash -c {quoting.word(line)}"
    for program in (line, whole):
        run = subprocess.run([needs("bash"), "-c", program], capture_output=True, check=True)
        assert run.stdout.decode().split("\0")[:-1] == texts


def test_inner_words_need_no_single_quote():
    """What people put into commands can be read in a quoted line."""
    command = "celery -Q " + quoting.inner("[merlin]_a,[merlin]_b")
    assert quoting.word(command) == "'celery -Q \"[merlin]_a,[merlin]_b\"'"


@pytest.mark.parametrize("quote", WORDS)
@pytest.mark.parametrize("bad", ["\n", "\r", "\0", "\t", "\x1b", "\x7f", "\ud800"])
def test_no_line_is_ended(quote: Callable[[str], str], bad: str):
    """A line break, a NUL, any control character, and what is no text is refused everywhere."""
    with pytest.raises(ValueError, match=r"in it|no text"):
        quote(f"a{bad}#SBATCH --nodes=99")


@pytest.mark.parametrize("quote", VALUES)
def test_no_value_overflows(quote: Callable[[str], str]):
    """A value that is longer than a scheduler's buffer is refused."""
    assert quote("x" * quoting.MOST_BYTES)
    with pytest.raises(ValueError, match="too long"):
        quote("ü" * (quoting.MOST_BYTES // 2 + 1))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--comment=x", "write #SBATCH in front"),
        ("rm -rf x", "write #SBATCH in front"),
        ("# SBATCH --comment=x", "would be a comment"),
        ("#sbatch --comment=x", "would be a comment"),
        ("#SBATCH -c 1\nrm -rf x", "a line break"),
    ],
)
def test_directives_of_the_users_own(line: str, why: str):
    """A directive of the user's own has to be one: no command, and nothing that only looks so."""
    with pytest.raises(ValueError, match=why):
        quoting.verbatim(line, "#SBATCH")


@pytest.mark.parametrize("line", ["#SBATCH --x='a b'", "#DW jobdw", "# a comment", "#SBATCH"])
def test_directives_are_kept(line: str):
    """Directives, also of other prefixes, and comments stay as they are."""
    assert quoting.verbatim(line, "#SBATCH") == line


def test_all_faults_at_once():
    """A header that can't be written says everything that is wrong with it."""
    lines = quoting.Directives("#BSUB", quoting.lsf_value)
    lines.add("job name", "-J ", "a\nb")
    lines.add("queue", "-q ", "-Ix")
    lines.add("bank", "-P ", "good")
    lines.extra(["rm x"])
    with pytest.raises(SchedulerError) as caught:
        lines.lines()
    assert [problem.message.split(":")[0] for problem in caught.value.problems] == [
        "job name",
        "queue",
        "directive",
    ]
    assert "taken for an option" in str(caught.value)


def test_what_is_not_said_is_left_out():
    """None makes no line; options that come from nobody are as they are."""
    lines = quoting.Directives("#PBS", quoting.pbs_value)
    lines.add("queue", "-q ", None)
    lines.plain("-j oe")
    lines.add("nodes", "-l nodes=", 3)
    lines.extra(["#PBS -V"])
    assert lines.lines() == ["#PBS -j oe", "#PBS -l nodes=3", "#PBS -V"]
