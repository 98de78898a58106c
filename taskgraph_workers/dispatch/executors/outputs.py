"""Keeps what a trainer prints from filling a disk. Loaded by :mod:`.supervisor`: imports little."""

from __future__ import annotations

import contextlib
import os
from typing import BinaryIO

#: How long ``output.log`` may get, in bytes, until its middle is taken out; and how much of its
#: beginning and of its end is kept then.
MOST, KEPT = 64 * 1024 * 1024, 16 * 1024 * 1024

#: What stands where something was taken out.
MARKER = b"[taskgraph-workers: output was left out here]\n"

_LONGEST_LINE = 64 * 1024


def shorten(path: str, most: int = MOST, kept: int = KEPT) -> bool:
    """Take the middle out of a file that is too long; whether that was done.

    Its writers append, so they go on behind what is kept. What they write in the moment between
    reading the end and cutting the file is left out, too. Where none of it can be done, as on a
    disk that is gone, nothing is.
    """
    with contextlib.suppress(OSError):
        size = os.stat(path).st_size
        if size <= most:
            return False
        with open(path, "r+b") as opened:
            end = _end(opened, size - kept, 2 * kept)
            opened.truncate(_line_before(opened, kept))
        with open(path, "ab") as appended:
            appended.write(MARKER + end)
        return True
    return False


def _line_before(opened: BinaryIO, at: int) -> int:
    """Where the last line before this place ends; the place itself in a line that is very long."""
    start = max(0, at - _LONGEST_LINE)
    opened.seek(start)
    return start + (opened.read(at - start).rfind(b"\n") + 1 or at - start)


def _end(opened: BinaryIO, at: int, most: int) -> bytes:
    """What is behind this place, from the next line on, where there is one soon."""
    opened.seek(at)
    text = opened.read(most)
    return text[text.find(b"\n", 0, _LONGEST_LINE) + 1 :]
