"""Arguments of celery's workers, and what becomes of them in a shell."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers.launch.merlin.args import parse, quoted
from taskgraph_workers.launch.merlin.shell import expand


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("--concurrency 4", 4),
        ("--concurrency=4", 4),
        ("-c 4", 4),
        ("-c4", 4),
        ("-c=4", 4),
        ("-Ec4 -l INFO", 4),
        ("-l INFO --concurrency '4' -Ofair", 4),
        ("-c 4 -c 2", 2),
        ("--autoscale=10,3", 10),
        ("--autoscale 3,10 -c 2", 10),
        ("--autoscale=7", 7),
        ("--concurrency $N", 5),
        ("--concurrency ${N}", 5),
        ("-P solo", 1),
        ("-c 4 --pool=solo", 1),
        ("--autoscale=10,3 -Psolo", 1),
        ("-P threads -c 4", 4),
        ("-c 0", None),
        ("--prefetch-multiplier 4", None),
        ("-n c4", None),
        ("", None),
    ],
)
def test_concurrency_in_every_spelling(text: str, number: int | None):
    """How many processes a worker has is read however celery lets it be written."""
    args = parse(text, {"N": "5"})
    assert (args.concurrency, args.faults) == (number, ())


@pytest.mark.parametrize(
    "text", ["--concurrency four", "-c -1", "--concurrency $N", "--autoscale=1,2,3", "-c", "-n 'x"]
)
def test_what_is_no_number_is_a_fault(text: str):
    """What celery would refuse is said at once, not by fifty workers in an allocation."""
    assert len(parse(text).faults) == 1


def test_what_the_solo_pool_leaves_without_effect_is_told():
    """In it celery runs one task at a time, whatever else says how many."""
    assert parse("-P solo -c 4").remarks == ("-c 4 has no effect: -P solo is one process",)
    assert parse("-P solo -c 1").remarks == parse("-c 4 -P prefork").remarks == ()


def test_a_worker_keeps_what_is_not_ours():
    """Concurrency, name and queues go, the rest stays as it is and in its order."""
    args = parse("-l INFO -Ec4 -n mine.%h --prefetch-multiplier=1 -Q a,b -O fair --hostname=x rest")
    assert args.words == ("-l", "INFO", "-E", "--prefetch-multiplier=1", "-O", "fair", "rest")
    assert (args.name, args.queues, args.loglevel) == ("x", "a,b", "INFO")


@pytest.mark.parametrize("text", ["-D", "--detach", "--pidfile=x", "--pidfile x", "-S db", "-B"])
def test_what_workers_cannot_share_is_left_out(text: str):
    """A pidfile that fifty workers would write is dropped, with a word on why."""
    args = parse(f"-E {text} -l INFO")
    assert args.words == ("-E", "-l", "INFO")
    assert "left out" in args.remarks[0]


def test_an_option_that_celery_does_not_have_is_named():
    """A misspelt option is told, with the nearest one, and handed on as it is."""
    args = parse("--concurency 4")
    assert args.words == ("--concurency", "4")
    assert args.remarks == (
        "celery's worker has no option --concurency; did you mean '--concurrency'?",
    )


PIECES = [
    "$HOME",
    "${X}",
    "$X",
    "$",
    "${",
    "}",
    '"',
    "'",
    "`id`",
    "$(id)",
    "\\",
    " ",
    "!",
    "*",
    "é",
]
WORDS = st.one_of(
    st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=12),
    st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
)


@given(WORDS)
def test_a_shell_reads_the_words_that_merlin_meant(word: str):
    """Whatever a word holds, bash reads it as one word, with variables filled in and no command."""
    env = {"HOME": "/ho me", "X": "`y` $(z)", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["bash", "-c", f"printf %s {quoted(word)}"], capture_output=True, env=env, check=True
    )
    # Bash takes a variable that is not set for nothing.
    assert done.stdout.decode() == expand(word, _Env(env))


class _Env(dict):  # type: ignore[type-arg]
    def get(self, name: str, default: str = "") -> str:
        return super().get(name, default if name[0].isdigit() else "")


@pytest.mark.parametrize("text", ["a\nb", "'a\rb'", "a\0b"])
def test_control_characters_are_no_arguments(text: str):
    """A line break in quotes can't be handed on; outside of them it only parts words."""
    args = parse(text)
    assert args.faults or args.words == ("a", "b")


def test_substitutions_are_text_and_told():
    """What Merlin would run in a shell is plain text here, and the user hears of it."""
    args = parse("-l $(whoami)")
    assert args.words == ("-l", "$(whoami)")
    assert "run what is in $(...)" in args.remarks[0]
    assert quoted(args.words[1]) == "'$(whoami)'"
