"""A trainer's parent: it writes down how the trainer ended, whatever becomes of the supervisor.

Only the parent of a process is told how it ended. Were that the supervisor, nobody would know of a
training that ends after its supervisor was killed; so it is a process between the two, a copy of
the supervisor that does nothing else. Loaded by :mod:`.supervisor`: imports little.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
from typing import Any, Callable

from taskgraph_workers.dispatch.failpoints import reach

#: What starts a trainer. Raises OSError or ValueError where that can't be done.
Start = Callable[[], "subprocess.Popen[bytes]"]

# As many descriptors of a supervisor may be open.
_MOST_OPEN = 256


class Witness:
    """The trainer that a witness has started. ``pid`` is the trainer's, and its session's."""

    def __init__(self, start: Start, record: Callable[[int], object], lock: int) -> None:
        """Start it. Raises OSError where that can't be done.

        The witness hands the code that it ends with to ``record``, and keeps ``lock`` open.
        """
        says, told = os.pipe()
        self.witness = os.fork()
        if self.witness == 0:
            _be_witness(start, record, lock, told)
        os.close(told)
        self._says = open(says, "rb")  # noqa: SIM115 - until it has ended
        self.is_lost = False
        self.code: int | None = None
        first = self._heard()
        self.pid: int = first.get("pid", 0)
        if "errno" in first:
            self._end()
            raise OSError(first["errno"], first["text"], first["file"])

    def poll(self) -> int | None:
        """How it ended, as :meth:`subprocess.Popen.poll` says it; None while it goes on.

        ``is_lost`` where its witness was killed: then nobody knows, nor whether it has ended.
        """
        if self.code is None and os.waitpid(self.witness, os.WNOHANG)[0]:
            code = self._heard().get("code")
            self.is_lost = code is None
            self.code = -signal.SIGKILL if code is None else code
            self._says.close()
        return self.code

    def _heard(self) -> dict[str, Any]:
        line = self._says.readline()
        return json.loads(line) if line.endswith(b"\n") else {}

    def _end(self) -> None:
        os.waitpid(self.witness, 0)
        self._says.close()


def _be_witness(start: Start, record: Callable[[int], object], lock: int, told: int) -> None:
    """What the witness does. Never returns."""
    try:
        signal.set_wakeup_fd(-1)
        # What asks the supervisor to end leaves this one alone; trainers get all as usual.
        signal.signal(signal.SIGTERM, lambda *_: None)
        os.setsid()
        # Above all the lock of the supervisor, which must end with it.
        _close_all_but({0, 1, 2, told, lock})
        code = _witnessed(start, told)
        if code is not None:
            reach("trainer-witnessed")
            # A disk may be full: then only the supervisor is told.
            with contextlib.suppress(OSError):
                record(code)
            _tell(told, {"code": code})
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)


def _witnessed(start: Start, told: int) -> int | None:
    """Start a trainer, and wait for its end; None where it can't be started."""
    try:
        process = start()
    except OSError as error:
        _tell(told, {"errno": error.errno, "text": error.strerror, "file": error.filename})
    except ValueError as error:
        _tell(told, {"errno": errno.EINVAL, "text": str(error), "file": None})
    else:
        _tell(told, {"pid": process.pid})
        return process.wait()
    return None


def _tell(told: int, value: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # of a supervisor that is gone
        os.write(told, json.dumps(value).encode() + b"\n")


def _close_all_but(kept: set[int]) -> None:
    low = 0
    for high in [*sorted(kept), _MOST_OPEN]:
        if low < high:  # an empty range up to 0 is taken for one without an end
            os.closerange(low, high)
        low = high + 1
