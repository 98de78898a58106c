"""Running a command from outside: no shell, no input, and limits on its time and its output."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

#: The longest output that is read, in bytes, of standard output and of standard error each.
MOST_OUTPUT = 1024 * 1024

# How long what a command left behind may keep its output open once it has ended itself.
_LEFT_S = 0.5
_TURN_S = 0.1


@dataclass(frozen=True)
class Answer:
    """What became of a command. ``code`` is None where it never ended by itself: see ``why``."""

    code: int | None
    out: str = ""
    err: str = ""
    why: str = ""

    def told(self, most: int = 200) -> str:
        """How it failed, in one line: what was done to it, or its code and its last words."""
        if self.code is None:
            return self.why
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        last = printable(lines[-1])[:most] if lines else ""
        how = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return f"{how}: {last}" if last else how


def printable(text: str) -> str:
    """A text that does nothing to a terminal.

    >>> printable("a" + chr(27) + "[2J")
    'a?[2J'
    """
    return "".join(c if c.isprintable() else "?" for c in text)


def call(
    argv: Sequence[str],
    environ: Mapping[str, str],
    timeout_s: float,
    cwd: str | None = None,
    most: int = MOST_OUTPUT,
    pass_fds: Sequence[int] = (),
) -> Answer:
    """Run a command to its end, or to its limits; it inherits ``pass_fds``. Raises nothing."""
    try:
        process = subprocess.Popen(
            list(argv),
            env=dict(environ),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=pass_fds,
        )
    except (OSError, ValueError) as error:
        return Answer(None, why=f"{argv[0]} can't be run: {error}")
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        pipes = {process.stdout: bytearray(), process.stderr: bytearray()}
        why = _read(process, pipes, time.monotonic() + timeout_s, most)
        if why is not None:
            _kill(process)
        process.wait()
        out, err = (bytes(each).decode("utf-8", "replace") for each in pipes.values())
    if why is None:
        return Answer(process.returncode, out, err)
    return Answer(None, out, err, why or f"no answer within {timeout_s:g} s")


def _read(
    process: subprocess.Popen[bytes], pipes: Mapping[IO[bytes], bytearray], until: float, most: int
) -> str | None:
    """Read until the end: None; or to the limit of the time: "", or of the output: a sentence."""
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        ended: float | None = None
        while selector.get_map() or process.poll() is None:
            now = time.monotonic()
            if process.poll() is not None:
                ended = now if ended is None else ended
                if now > ended + _LEFT_S:
                    return None
            if now > until:
                return ""
            if not selector.get_map():
                time.sleep(_TURN_S / 10)
            for ready, _ in selector.select(_TURN_S) if selector.get_map() else ():
                held = pipes[ready.fileobj]  # type: ignore[index]
                chunk = os.read(ready.fd, 65536)
                held += chunk
                if not chunk:
                    selector.unregister(ready.fileobj)
                if len(held) > most:
                    return f"it said more than {most} bytes"
    return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a command with all that it started in its session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        process.kill()
