"""What the loop says, on standard error: plain lines, or JSON on wish.

Each line names the request that it is about. Of a message only its id, SKU and image are ever said,
and of an error that nobody foresaw its type and place alone: its text might hold anything. A line
that can't be written is left out.
"""

from __future__ import annotations

import contextlib
import json
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Callable, TextIO

INFO, WARNING, ERROR = "info", "warning", "error"


@dataclass(frozen=True)
class Log:
    """Writes lines. ``quiet`` leaves out what is as it should be."""

    stream: TextIO
    as_json: bool = False
    quiet: bool = False
    clock: Callable[[], float] = time.time

    def info(self, event: str, request_id: str | None = None, **fields: Any) -> None:
        """Something happened that should."""
        if not self.quiet:
            self._write(INFO, event, request_id, fields)

    def warn(self, event: str, request_id: str | None = None, **fields: Any) -> None:
        """Something that passes, or that somebody may want to look at."""
        self._write(WARNING, event, request_id, fields)

    def error(self, event: str, request_id: str | None = None, **fields: Any) -> None:
        """Something that somebody has to mend."""
        self._write(ERROR, event, request_id, fields)

    def _write(
        self, level: str, event: str, request_id: str | None, fields: Mapping[str, Any]
    ) -> None:
        said = {name: value for name, value in fields.items() if value not in (None, "")}
        at = stamp(self.clock())
        if self.as_json:
            line = json.dumps(
                {"at": at, "level": level, "event": event, "requestId": request_id, **said}
            )
        else:
            sign = "" if level == INFO else f"{level}: "
            about = f"{_plain(request_id)}: " if request_id is not None else ""
            more = "".join(f" {name}={_plain(value)}" for name, value in said.items())
            line = f"{at} {sign}{about}{_printable(event)}{more}"
        # A full disk or a reader that went away stops no work: the ledger knows all that is true.
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(f"{line}\n")  # in one piece: two threads may write
            self.stream.flush()


def stamp(at: float) -> str:
    """A time as logs and JSON have it: UTC, to the millisecond.

    >>> stamp(1521193391.25)
    '2018-03-16T09:43:11.250Z'
    """
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds")[:-6] + "Z"


def where(error: BaseException) -> str:
    """The type of an error and where it came up.

    >>> try:
    ...     {}["secret"]
    ... except KeyError as error:
    ...     where(error).split(" ")[0]
    'KeyError'
    """
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return type(error).__name__ + place


def _printable(text: str) -> str:
    """A text on one line, whatever is in it."""
    return text if text.isprintable() else json.dumps(text)


def _plain(value: Any) -> str:
    """A value on one line: as it is if it is one word, else as JSON says it."""
    text = str(value)
    return text if text.isprintable() and text and " " not in text else json.dumps(text)
