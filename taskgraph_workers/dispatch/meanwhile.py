"""Receiving goes on while the loop waits for an executor that does not answer.

A call of an executor may take as long as its time-out. Then a second thread does, for the loop,
what holds no executor; never both at once, since a broker may be none for two threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable

#: How long the loop may be away before somebody stands in for it.
AFTER_S = 1.0

# Between two messages others may write, and the loop may come back.
_BREATH_S = 0.001


class Meanwhile:
    """Does something, again and again, while whoever has this is away for longer.

    ``step`` does some of it, and says how much that was; it raises nothing.
    """

    def __init__(self, step: Callable[[], int], nap_s: float, after_s: float = AFTER_S) -> None:
        self._step, self._nap_s, self._after_s = step, nap_s, after_s
        self._since: float | None = None
        self._closed = False
        # Held during a step, so that coming back is waiting for its end.
        self._turn = threading.Condition()
        self._thread = threading.Thread(target=self._go, name="meanwhile", daemon=True)

    def __enter__(self) -> Meanwhile:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._turn:
            self._closed = True
            self._turn.notify()
        self._thread.join()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Be away: with somebody who may not answer."""
        with self._turn:
            self._since = time.monotonic()
            self._turn.notify()
        try:
            yield
        finally:
            self._since = None
            with self._turn:
                pass

    def _go(self) -> None:
        with self._turn:
            while not self._closed:
                since = self._since
                if since is None:
                    self._turn.wait()
                    continue
                left_s = since + self._after_s - time.monotonic()
                if left_s <= 0:
                    left_s = _BREATH_S if self._step() else self._nap_s
                self._turn.wait(left_s)
