"""Submitting, without an end in between.

The command of a scheduler goes on whatever becomes of the process that has started it, and a job
whose id nobody has kept would be nobody's.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undisturbed() -> Iterator[None]:
    """Whoever wants this process to end waits until the block is done, unless he says it twice."""
    came: list[int] = []

    def note(number: int, _: object) -> None:
        came.append(number)
        if len(came) > 1:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    kept = (signal.SIG_IGN, None)
    before = {
        each: signal.signal(each, note) for each in ends if signal.getsignal(each) not in kept
    }
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        if len(came) == 1:
            signal.raise_signal(came[0])
