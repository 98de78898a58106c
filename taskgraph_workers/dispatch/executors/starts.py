"""What an engine says when it can't start a container, and how long to wait before asking again.

Most of what keeps an engine from it passes by itself: a registry that is down, above all. Whether
it does nobody can tell from an exit code, so it is tried some times and no more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from taskgraph_workers.dispatch.backoff import delay
from taskgraph_workers.dispatch.executors.call import printable

#: How often an engine is asked to start a container: with waits of 2 s and more, within a quarter
#: of an hour.
MOST = 10

#: What clients of engines exit with when the image's command can't be run: podman-run(1). That does
#: not pass by itself, but a runtime that was killed looks the same, so it is tried once more.
REFUSED, MOST_REFUSED = {126, 127}, 2

#: What a training ends with where most likely no trainer ran: that, as shells and engines say it,
#: and 69 (EX_UNAVAILABLE of sysexits.h), where a value could not be found out before. Why is in
#: the last words then.
BEFORE = {*REFUSED, 69}

_LONGEST_S = 300.0
_TAIL, _MOST_TEXT, _SHORTEST_SECRET = 8192, 300, 4

# What docker adds to its last words.
_HELP = re.compile(r"(See|Run) '.*--help'.*")
# Passwords and signatures of addresses.
_SECRETS = ((re.compile(r"://[^/@\s]+@"), "://...@"), (re.compile(r"\?[^\s\"']+"), "?..."))


def rest_s(tries: int, first_s: float) -> float:
    """How long to wait after so many tries: longer each time, in part by chance."""
    return delay(tries - 1, lambda: os.urandom(1)[0] / 255, first_s, _LONGEST_S)


def last_words(path: str, since: int, secrets: Iterable[str] = ()) -> str:
    """The last line that was written to a file since it was so long, without what is secret."""
    try:
        with open(path, "rb") as opened:
            end = opened.seek(0, os.SEEK_END)
            opened.seek(max(since, end - _TAIL))
            text = opened.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line and not _HELP.fullmatch(line)]
    return _plain(said[-1], secrets) if said else ""


def _plain(line: str, secrets: Iterable[str]) -> str:
    for pattern, shown in _SECRETS:
        line = pattern.sub(shown, line)
    return printable(without(line, secrets))[:_MOST_TEXT]


def without(text: str, secrets: Iterable[str]) -> str:
    """A text without values that are secret; those of a few characters might be anything."""
    for value in sorted(secrets, key=len, reverse=True):
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "...")
    return text
