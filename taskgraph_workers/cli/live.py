"""What goes on until somebody has enough: a view drawn in place, and signals that are never lost.

A signal that raises an error is lost where it comes inside of a finalizer, and never comes where
its parent ignored it, as shells do for what runs in the background. So signals are only noted here,
and looked for wherever there is something to wait for: between looks, and for a terminal or a
reader that takes no more. Looking itself is left to a thread, since a database may keep it waiting.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import queue
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Generic, TypeVar

T = TypeVar("T")

#: What ends it.
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

# Another buffer, and nobody's cursor or broken lines there; and back to how it was.
_ENTER, _LEAVE = "\033[?1049h\033[?25l\033[?7l\033[2J", "\033[?7h\033[?25h\033[?1049l"
_TOP, _TO_END_OF_LINE, _TO_END = "\033[H", "\033[K", "\033[J"

# So much is written at once, and a terminal that takes nothing is waited for so long at the end.
_PIECE, _LAST_S = 512, 0.3


class Ended(Exception):
    """A signal asked for the end; its number."""

    @property
    def code(self) -> int:
        """What a shell says of a command that this signal ended."""
        return 128 + int(self.args[0])


class Signals:
    """Signals that came, kept in a pipe until somebody looks. Of the main thread only."""

    def __enter__(self) -> Signals:
        self.fd, self._in = os.pipe()
        for each in (self.fd, self._in):
            os.set_blocking(each, False)
        self._came: set[int] = set()
        self._wakeup = signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        heard = {*ENDS, signal.SIGWINCH, signal.SIGTSTP}
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup(1)
            heard.remove(signal.SIGHUP)
        self._before = {number: signal.signal(number, _noted) for number in heard}
        return self

    def __exit__(self, *_: Any) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self.fd)
        os.close(self._in)

    def look(self) -> None:
        """Keep those that came. Raises Ended for one that ends it."""
        with contextlib.suppress(BlockingIOError):
            self._came.update(os.read(self.fd, 4096))
        for number in ENDS:
            if number in self._came:
                raise Ended(number)

    def taken(self) -> set[int]:
        """Those that came since this was asked. Raises Ended for one that ends it."""
        self.look()
        came, self._came = self._came, set()
        return came


def _noted(*_: Any) -> None:
    """Python puts the number into the pipe; without any handler it would not."""


class Wire:
    """Standard output, for writing that a signal ends, and that knows when nobody reads it."""

    def __init__(self, signals: Signals) -> None:
        sys.stdout.flush()
        self.fd = sys.stdout.fileno()
        self._signals = signals

    def wait(self, seconds: float, more: int = -1) -> set[int]:
        """Wait for signals, or until there is something to read from ``more``.

        Raises BrokenPipeError where nobody reads standard output any more.
        """
        waits = select.poll()
        waits.register(self.fd, 0)
        for each in (self._signals.fd, more):
            if each >= 0:
                waits.register(each, select.POLLIN)
        ready = dict(waits.poll(max(0.0, seconds) * 1000))
        if ready.get(self.fd, 0):
            raise BrokenPipeError(errno.EPIPE, "nobody reads it")
        return self._signals.taken()

    def write(self, text: str, until: float | None = None) -> None:
        """Write all of it; with ``until``, a time of the monotonic clock, what can be by then.

        Raises Ended where a signal comes before it is taken, unless there is such a time.
        """
        data = text.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
        waits = select.poll()
        waits.register(self.fd, select.POLLOUT)
        if until is None:
            waits.register(self._signals.fd, select.POLLIN)
        while data:
            left_s = None if until is None else max(0.0, until - time.monotonic())
            ready = dict(waits.poll(None if left_s is None else left_s * 1000))
            if self._signals.fd in ready:
                self._signals.look()
            if not ready and until is not None:
                return
            if self.fd in ready:
                data = data[os.write(self.fd, data[:_PIECE]) :]


class Screen:
    """A terminal's other buffer, as long as it lasts; the terminal is as it was afterwards."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._shown = ""

    def __enter__(self) -> Screen:
        self._wire.write(_ENTER)
        return self

    def __exit__(self, *_: Any) -> None:
        with contextlib.suppress(OSError):
            self._wire.write(_LEAVE, time.monotonic() + _LAST_S)

    @property
    def height(self) -> int:
        """Its lines."""
        try:
            return os.get_terminal_size(self._wire.fd).lines or 24
        except OSError:
            return 24

    def draw(self, lines: Sequence[str], anew: bool = False) -> None:
        """Show these, from the top, over what is there; nothing where that is the same."""
        frame = "\r\n".join(line + _TO_END_OF_LINE for line in lines)
        if anew or frame != self._shown:
            self._wire.write(_TOP + frame + _TO_END)
            self._shown = frame

    def stop(self) -> None:
        """Stop as shells have it for Ctrl-Z; once it goes on, the screen is there again."""
        self._wire.write(_LEAVE)
        before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, before)
        self._wire.write(_ENTER)


class Looks(Generic[T]):
    """Looks at something again and again, in a thread of its own.

    Its pipe stays open: a look that goes on after the end may still tell what it found.
    """

    def __init__(self, look: Callable[[], T], every_s: float) -> None:
        self._look, self._every_s = look, every_s
        self._found: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()
        self._enough = threading.Event()
        self.fd, self._in = os.pipe()
        self._thread = threading.Thread(target=self._go, name="looks", daemon=True)

    def __enter__(self) -> Looks[T]:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._enough.set()
        self._thread.join(_LAST_S)

    def found(self) -> Iterator[T]:
        """What was found since this was asked for. Raises what a look has raised."""
        while not self._found.empty():
            os.read(self.fd, 1)
            value, error = self._found.get()
            if error is not None:
                raise error
            yield value  # type: ignore[misc]

    def _go(self) -> None:
        while not self._enough.is_set():
            try:
                self._tell(self._look(), None)
            except BaseException as error:
                return self._tell(None, error)
            self._enough.wait(self._every_s)
        return None

    def _tell(self, value: T | None, error: BaseException | None) -> None:
        self._found.put((value, error))
        os.write(self._in, b".")


class _Sheet(io.StringIO):
    """Takes what is printed, as if it were the stream in whose place it is."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream

    @property
    def encoding(self) -> str | None:  # type: ignore[override]
        encoding: str | None = self._stream.encoding
        return encoding

    def isatty(self) -> bool:
        return bool(self._stream.isatty())


def printed(show: Callable[[], object]) -> str:
    """What is printed on standard output by this, which is not printed now."""
    with contextlib.redirect_stdout(_Sheet(sys.stdout)) as sheet:
        show()
    return sheet.getvalue()


def is_drawn() -> bool:
    """Whether standard output is a terminal on which something can be drawn in place."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
