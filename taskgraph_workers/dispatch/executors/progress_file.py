"""Progress as trainers tell it: JSON lines, appended to the file that TRAINING_PROGRESS_FILE names.

A line is an object: ``{"name": "imagesDownloaded"}``. ``at`` (seconds since the epoch), ``seq`` (a
number that tells facts of one name apart) and ``data`` (an object) may be there; whatever else is
there counts as data. What machines do, and how a training ended, is not a trainer's to say.

Whoever reads it trusts nothing: the file is written by code from outside.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from taskgraph_workers.dispatch.message import is_deep
from taskgraph_workers.dispatch.model import END_ROWS, LATEST, MACHINE_ROWS, SPELLINGS, Progress

#: The longest line, and how much of one file, is read; in bytes.
MOST_LINE, MOST_FILE = 8 * 1024, 1024 * 1024

#: The one fact that tells of lines that could not be taken.
IGNORED = "progressLinesIgnored"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_KEPT_BACK = {*END_ROWS.values(), *MACHINE_ROWS, IGNORED}
_MOST_SEQ = 2**31 - 1


@dataclass
class Told:
    """What a file tells. ``ignored`` counts lines; ``first`` says where and why the first was."""

    facts: list[Progress] = field(default_factory=list)
    ignored: int = 0
    first: str = ""

    def ignore(self, line: int, why: str) -> None:
        """Count a line that can't be taken."""
        self.ignored += 1
        self.first = self.first or f"line {line}: {why}"


def read(path: str, run: int, now: float, ended: bool) -> Told:
    """What a run's trainer told so far; nothing where it told nothing yet.

    ``now`` is the time of facts that tell none. A last line without its end is still being written,
    unless the run has ``ended``. Raises OSError where the file is there and can't be read.
    """
    told = Told()
    content, more = _content(path, told)
    lines = content.split(b"\n")
    last = lines.pop()
    if ended and not more and last.strip():
        lines.append(last)
    for number, line in enumerate(lines, 1):
        if line.strip():
            _take(told, line, number, Progress("", now, run))
    if more:
        told.ignore(len(lines) + 1, f"the file has more than {MOST_FILE} bytes")
    return told


def check(value: object, known: Progress, machine: bool = False) -> Progress | str:
    """The fact that a JSON value is, or why it is none.

    ``known`` gives what it does not say. ``machine``: it may tell of machines.
    """
    if not isinstance(value, Mapping):
        return "it is no object"
    name = value.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "it has no name that could be one"
    name = SPELLINGS.get(name, name)
    if name in _KEPT_BACK and not (machine and name in MACHINE_ROWS):
        return f"{name} is not a trainer's to say"
    at, seq, data = value.get("at", known.at), value.get("seq", 0), value.get("data", {})
    if is_deep(value):
        return "it is nested too deep"
    if not _is_time(at) or not isinstance(data, Mapping):
        return "at is no time" if isinstance(data, Mapping) else "data is no object"
    if type(seq) is not int or not 0 <= seq <= _MOST_SEQ:
        return "seq is no number to count by"
    rest = {k: v for k, v in value.items() if k not in ("name", "at", "seq", "data", "run")}
    return Progress(name, float(at), known.run, seq, {**rest, **data})


def append(path: str, name: str, data: Mapping[str, Any], at: float, seq: int = 0) -> None:
    """Tell a fact. Raises ValueError where it is none, OSError where it can't be written."""
    value = {"name": name, "at": at, "seq": seq, "data": dict(data)}
    found = check(value, Progress("", at))
    line = json.dumps(value, allow_nan=False).encode() + b"\n"
    if isinstance(found, str):
        raise ValueError(found)
    if len(line) > MOST_LINE:
        raise ValueError(f"it has more than {MOST_LINE} bytes")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(handle, line)  # one call, so that lines of several writers stay apart
    finally:
        os.close(handle)


def parse(text: str) -> Any:
    """A JSON value without endless numbers. Raises ValueError or RecursionError."""
    return json.loads(text, parse_constant=_no_constant, parse_float=_finite)


def about_ignored(told: Told, run: int, now: float, ended: bool) -> Iterator[Progress]:
    """What is said of lines that were not taken: once when the first comes, once at the end."""
    if told.ignored:
        yield Progress(IGNORED, now, run, 0, {"first": told.first})
        if ended:
            yield Progress(IGNORED, now, run, 1, {"lines": told.ignored})


def _content(path: str, told: Told) -> tuple[bytes, bool]:
    """The beginning of a file, and whether there is more. Only of a file: no link, no pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return b"", False
    except OSError as error:
        told.ignore(0, f"the file can't be opened: {error.strerror}")
        return b"", False
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        told.ignore(0, "it is no file")
        return b"", False
    with open(handle, "rb") as opened:
        content = opened.read(MOST_FILE + 1)
    return content[:MOST_FILE], len(content) > MOST_FILE


def _take(told: Told, line: bytes, number: int, known: Progress) -> None:
    if len(line) > MOST_LINE:
        return told.ignore(number, f"it has more than {MOST_LINE} bytes")
    try:
        value = parse(line.decode())
    except (ValueError, RecursionError):
        return told.ignore(number, "it is not JSON")
    found = check(value, known)
    if isinstance(found, str):
        return told.ignore(number, found)
    told.facts.append(found)
    return None


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


def _no_constant(text: str) -> object:
    raise ValueError(text)


def _is_time(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= LATEST  # type: ignore[operator]
