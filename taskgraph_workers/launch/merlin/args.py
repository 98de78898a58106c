"""The arguments of a Celery worker, as ``args`` of a Merlin worker writes them.

Merlin puts them into a command line for a shell as they are, after replacing ``$NAME`` by the
environment (``study/celeryadapter.py``, ``os.path.expandvars``). Here they are split into words
as a shell splits them, and each is quoted again: nothing in them can become another command.
``$NAME`` stays, in double quotes, so that the worker's own environment fills it in.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from taskgraph_workers.errors import did_you_mean
from taskgraph_workers.launch.merlin.shell import VARIABLE, expand
from taskgraph_workers.schedulers.quoting import check, word

#: The options of ``celery worker`` (5.6) that take a value, each under its long name.
_LONG = {
    "-n": "--hostname",
    "-S": "--statedb",
    "-l": "--loglevel",
    "-O": "--optimization",
    "-c": "--concurrency",
    "-P": "--pool",
    "-Q": "--queues",
    "-X": "--exclude-queues",
    "-I": "--include",
    "-s": "--schedule-filename",
    "-f": "--logfile",
}
_VALUED = {
    *_LONG.values(),
    *("--prefetch-multiplier", "--time-limit", "--soft-time-limit", "--max-tasks-per-child"),
    *("--max-memory-per-child", "--heartbeat-interval", "--autoscale", "--schedule"),
    *("--scheduler", "--pidfile", "--uid", "--gid", "--umask", "--executable"),
}
_SWITCHES = {
    *("--detach", "--task-events", "--events", "--purge", "--discard", "--beat"),
    *("--without-gossip", "--without-mingle", "--without-heartbeat", "--disable-prefetch"),
}
_SHORT_SWITCHES = {"-D": "--detach", "-E": "--task-events", "-B": "--beat"}

#: Each worker is one process with a name and queues that we give it.
_OURS = frozenset({"--concurrency", "--hostname", "--queues", "--autoscale"})

#: What is handed on, and looked at besides.
_KEPT = frozenset({"--loglevel", "--pool", "--prefetch-multiplier", "--disable-prefetch"})

#: What several workers can't share, and what would take a worker out of the script's hands.
_UNSHARED = {
    "--detach": "the script could not tell whether the worker still runs",
    "--pidfile": "every worker of the group would write the same file",
    "--statedb": "every worker of the group would write the same file",
    "--beat": "every worker of the group would start a scheduler of its own",
}

_SUBSTITUTION = re.compile(r"`|\$\(")


class WorkerArgs(NamedTuple):
    """What the arguments say.

    ``words`` are those to hand on, unquoted; ``concurrency`` is None where nothing is said;
    ``said`` is how it is written. ``name`` and ``queues`` are what ``-n`` and ``-Q`` would be.
    ``prefetch`` is how many tasks each process takes at a time, None where nothing is said.
    ``faults`` and ``remarks`` are sentences: what makes it impossible, and what should be known.
    """

    words: tuple[str, ...] = ()
    concurrency: int | None = None
    said: str = ""
    name: str | None = None
    queues: str | None = None
    loglevel: str | None = None
    prefetch: str | None = None
    faults: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class _Reading:
    """What was found so far."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.words: list[str] = []
        self.values: dict[str, tuple[str, str]] = {}
        self.faults: list[str] = []
        self.remarks: list[str] = []


def parse(text: str, environ: Mapping[str, str] | None = None) -> WorkerArgs:
    """The arguments of a worker.

    ``environ`` is what ``$NAME`` in a number is looked up in.

    >>> parse("-l INFO -c4 --prefetch-multiplier 1 -Ofair").words
    ('-l', 'INFO', '--prefetch-multiplier', '1', '-Ofair')
    >>> parse("-l INFO --concurrency=4").concurrency, parse("--autoscale=10,3").concurrency
    (4, 10)
    """
    reading = _Reading(environ or {})
    try:
        words = [check(each) for each in shlex.split(text)]
    except ValueError as error:
        what = {"No closing quotation": "a quote is never closed"}.get(str(error), str(error))
        return WorkerArgs(faults=(f"args {text!r}: {what}",))
    if _SUBSTITUTION.search(text):
        what = "Merlin hands args to a shell, which would run what is in $(...) or `...`"
        reading.remarks.append(f"{what}; launch takes it as plain text")
    for option, value, written in _options(words, reading):
        _take(reading, option, value, written)
    return _result(reading)


def _options(words: list[str], reading: _Reading) -> Iterator[tuple[str, str, list[str]]]:
    """Each option by its long name, with its value, and the words it is written in."""
    left = list(words)
    while left:
        first = left.pop(0)
        if first == "--":
            yield "", "", [first, *left]
            return
        if first.startswith("--"):
            yield _long(first, left, reading)
        elif first.startswith("-") and len(first) > 1:
            yield from _short(first, left, reading)
        else:
            yield "", "", [first]


def _long(first: str, left: list[str], reading: _Reading) -> tuple[str, str, list[str]]:
    option, equals, value = first.partition("=")
    if option not in _VALUED:
        if option not in _SWITCHES:
            hint = did_you_mean(option, _VALUED | _SWITCHES, "")
            what = f"celery's worker has no option {option}"
            reading.remarks.append(f"{what}; {hint}" if hint else what)
        return option, value, [first]
    if equals:
        return option, value, [first]
    return option, *_next(option, [first], left, reading)


def _short(first: str, left: list[str], reading: _Reading) -> Iterator[tuple[str, str, list[str]]]:
    """One word of short options: ``-c4``, ``-Ec4``, ``-E``."""
    for index in range(1, len(first)):
        letter, rest = f"-{first[index]}", first[index + 1 :]
        if letter in _SHORT_SWITCHES:
            yield _SHORT_SWITCHES[letter], "", [letter]
            continue
        option = _LONG.get(letter, letter)
        if option not in _VALUED:
            reading.remarks.append(f"celery's worker has no option {letter}")
            yield option, rest, [letter + rest]
        elif rest:
            yield option, rest, [letter + rest]
        else:
            yield option, *_next(letter, [letter], left, reading)
        return


def _next(
    shown: str, written: list[str], left: list[str], reading: _Reading
) -> tuple[str, list[str]]:
    if not left:
        reading.faults.append(f"args: {shown} has no value behind it")
        return "", written
    value = left.pop(0)
    return value, [*written, value]


def _take(reading: _Reading, option: str, value: str, written: list[str]) -> None:
    if option in _OURS or option in _KEPT:
        reading.values[option] = (value, " ".join(written))
    if option in _OURS:
        return
    if option in _UNSHARED:
        reading.remarks.append(f"{' '.join(written)} is left out: {_UNSHARED[option]}")
    else:
        reading.words.extend(written)


def _result(reading: _Reading) -> WorkerArgs:
    concurrency, said = _number(reading, "--concurrency")
    most, range_said = _number(reading, "--autoscale")
    values = {option: value for option, (value, _) in reading.values.items()}
    if values.get("--pool") == "solo":
        # The solo pool is the worker's own process, whatever else is said (celery.concurrency).
        solo = reading.values["--pool"][1]
        if (most or concurrency or 1) != 1:
            reading.remarks.append(f"{range_said or said} has no effect: {solo} is one process")
        most, concurrency, said = None, 1, solo
    if most:
        reading.remarks.append(f"{range_said}: counted as {most} workers, the most that it allows")
    return WorkerArgs(
        words=tuple(reading.words),
        concurrency=most or concurrency,
        said=range_said if most else said,
        name=values.get("--hostname"),
        queues=values.get("--queues"),
        loglevel=values.get("--loglevel"),
        prefetch="1" if "--disable-prefetch" in values else values.get("--prefetch-multiplier"),
        faults=tuple(reading.faults),
        remarks=tuple(reading.remarks),
    )


def _number(reading: _Reading, option: str) -> tuple[int | None, str]:
    """The value of an option that counts processes, and how it is written."""
    value, said = reading.values.get(option, ("", ""))
    if not said:
        return None, ""
    text = expand(value, reading.environ)
    if said.startswith("-c=") and text.startswith("="):
        # celery takes the sign for a part of the number, and refuses it.
        text = text[1:]
        reading.remarks.append(f"celery refuses {said}: write -c {text}")
    numbers = text.split(",") if option == "--autoscale" else [text]
    if len(numbers) > 2 or not all(
        re.fullmatch(r"\s*\d{1,9}\s*", each, re.ASCII) for each in numbers
    ):
        if value:
            reading.faults.append(f"args: {said}: {text!r} is no number of processes")
        return None, ""
    # Zero is as good as nothing to celery.
    return max(map(int, numbers)) or None, said


def quoted(text: str) -> str:
    """One word for bash, in which ``$NAME`` alone stays what it is.

    Raises ValueError for what can't be said in a script.

    >>> print(quoted("INFO"), quoted("$HOME/my log"), quoted("$(touch x)"))
    INFO "${HOME}/my log" '$(touch x)'
    """
    if not any(map(_is_name, VARIABLE.finditer(text))):
        return word(text)
    parts, end = [], 0
    for found in filter(_is_name, VARIABLE.finditer(check(text))):
        parts += [_escaped(text[end : found.start()]), f"${{{found[1] or found[2]}}}"]
        end = found.end()
    return f'"{"".join(parts)}{_escaped(text[end:])}"'


def _is_name(found: re.Match[str]) -> bool:
    return not (found[1] or found[2])[0].isdigit()


def _escaped(text: str) -> str:
    return re.sub(r'([\\"$`])', r"\\\1", text)
