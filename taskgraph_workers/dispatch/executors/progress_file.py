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
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from taskgraph_workers.dispatch.message import is_deep
from taskgraph_workers.dispatch.model import (
    DROPPED,
    END_ROWS,
    LATEST,
    MACHINE_ROWS,
    SPELLINGS,
    Progress,
)

#: The longest line, and how much is read of what one run tells; in bytes.
MOST_LINE, MOST_FILE = 8 * 1024, 32 * 1024 * 1024

#: The one fact that tells of lines that could not be taken.
IGNORED = "progressLinesIgnored"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_KEPT_BACK = {*END_ROWS.values(), *MACHINE_ROWS, IGNORED, DROPPED}
_MOST_SEQ = 2**31 - 1

# So much is read at once, more than a line; and so much of what was read is remembered.
_CHUNK, _TAIL = 8 * MOST_LINE, 64


@dataclass(frozen=True)
class Mark:
    """How far a file was read.

    ``file`` and ``tail``, the bytes before ``offset``, tell one that was put in its place, cut or
    written anew: that is read from its beginning. ``is_long``: in the middle of a line that is too
    long. ``bytes``, ``lines`` and ``ignored`` count what was read, by ``first`` the first of the
    lines that were ignored is known, and why; ``trouble`` is what keeps it from being read.
    """

    file: tuple[int, int] = (0, 0)
    offset: int = 0
    tail: bytes = b""
    is_long: bool = False
    bytes: int = 0
    lines: int = 0
    ignored: int = 0
    first: str = ""
    trouble: str = ""


#: Before anything was read.
BEGINNING = Mark()


@dataclass(frozen=True)
class Told:
    """What a file tells behind a mark, up to another one; ``more`` is there to be read now."""

    facts: tuple[Progress, ...]
    mark: Mark
    more: bool = False


def read(path: str, mark: Mark, known: Progress, most: int, ended: bool) -> Told:
    """What a run's trainer told behind a mark: so many facts at most, and not many bytes.

    ``known`` gives what facts do not say: run and time. Nothing where it told nothing yet. A last
    line without its end is still being written, unless the run has ``ended``. Raises OSError where
    the file is there and can't be read.
    """
    if mark.bytes >= MOST_FILE:
        return Told((), mark)
    try:
        handle = _opened(path)
    except FileNotFoundError:
        return Told((), mark)
    except ValueError as error:
        new = str(error) != mark.trouble
        return Told((), _ignore(mark, 0, str(error)) if new else mark)
    with open(handle, "rb", buffering=0) as opened:
        mark = _found_again(opened, replace(mark, trouble=""))
        content = os.pread(opened.fileno(), _CHUNK, mark.offset)
    reader = _Reader(content, known, most, ended and len(content) < _CHUNK)
    mark = reader.read(mark)
    if mark.bytes >= MOST_FILE:
        mark = _ignore(mark, mark.lines + 1, f"more than {MOST_FILE} bytes were told")
        return Told(tuple(reader.facts), mark)
    return Told(tuple(reader.facts), mark, reader.stopped or len(content) == _CHUNK)


@dataclass
class _Reader:
    """Takes lines from what was read of a file. ``whole``: its last line is one without its end."""

    content: bytes
    known: Progress
    most: int
    whole: bool
    facts: list[Progress] = field(default_factory=list)
    stopped: bool = False

    def read(self, mark: Mark) -> Mark:
        """Take lines behind a mark; the mark behind those that were taken."""
        at = 0
        while at < len(self.content):
            if len(self.facts) >= self.most:
                self.stopped = True
                break
            end = self.content.find(b"\n", at)
            line = self.content[at : end if end >= 0 else None]
            if end < 0 and len(line) <= MOST_LINE and not (self.whole or mark.is_long):
                break  # it is still being written
            mark = self._taken(mark, line, has_end=end >= 0)
            at += len(line) + (end >= 0)
        tail = (mark.tail + self.content[:at])[-_TAIL:]
        return replace(mark, offset=mark.offset + at, bytes=mark.bytes + at, tail=tail)

    def _taken(self, mark: Mark, line: bytes, has_end: bool) -> Mark:
        if mark.is_long:  # the rest of one that was ignored
            return replace(mark, is_long=not has_end)
        mark = replace(mark, lines=mark.lines + 1)
        if len(line) > MOST_LINE:
            why = f"it has more than {MOST_LINE} bytes"
            return replace(_ignore(mark, mark.lines, why), is_long=not has_end)
        if not line.strip():
            return mark
        try:
            found = check(parse(line.decode()), self.known)
        except (ValueError, RecursionError):
            found = "it is not JSON"
        if isinstance(found, str):
            return _ignore(mark, mark.lines, found)
        self.facts.append(found)
        return mark


def _ignore(mark: Mark, line: int, why: str) -> Mark:
    """Count a line that can't be taken; line 0 is the file itself."""
    first = mark.first or f"line {line}: {why}"
    return replace(mark, ignored=mark.ignored + 1, first=first, trouble="" if line else why)


def _found_again(opened: BinaryIO, mark: Mark) -> Mark:
    """A mark in a file: at its beginning, unless what was read before is still before it."""
    there = os.fstat(opened.fileno())
    file = (there.st_dev, there.st_ino)
    if file == mark.file:
        before = os.pread(opened.fileno(), len(mark.tail), mark.offset - len(mark.tail))
        if before == mark.tail:
            return mark
    return replace(mark, file=file, offset=0, tail=b"", is_long=False, lines=0)


def _opened(path: str) -> int:
    """A file, and nothing else: no link, no pipe. Raises ValueError for those."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"the file can't be opened: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ValueError("it is no file")
    return handle


def check(value: object, known: Progress, machine: bool = False) -> Progress | str:
    """The fact that a JSON value is, or why it is none.

    ``known`` gives what it does not say. ``machine``: it may tell of machines.
    """
    if not isinstance(value, Mapping):
        return "it is no object"
    name = value.get("name")
    if not isinstance(name, str):
        return "it has no name"
    if not _NAME.fullmatch(name):
        return "a name is a letter, and then up to 63 letters, digits, '_', '.' and '-'"
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


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


def _no_constant(text: str) -> object:
    raise ValueError(text)


def _is_time(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= LATEST  # type: ignore[operator]
