"""What the loop sees of messages, whatever carries them."""

from __future__ import annotations

from typing import Callable, Protocol

from taskgraph_workers.dispatch.ledger.receipt import Verdict
from taskgraph_workers.dispatch.ledger.values import Recorded
from taskgraph_workers.dispatch.message import digest_of
from taskgraph_workers.dispatch.model import Refused

#: Makes of a message what is to be recorded. It changes nothing, and may be asked again.
Judge = Callable[[bytes], Verdict]

#: How often handling a message may fail in an unknown way before it is a dead letter.
MOST_FAILURES = 5

# How long a message waits that failed so: first, and twice as long each time.
_AGAIN_S = 1.0


class Transport(Protocol):
    """Start messages into the ledger, end messages out of it."""

    @property
    def listens(self) -> bool:
        """Whether one waits for a message by recording it; else the ledger tells when one came."""

    def record_next(self, judge: Judge, wait_s: float = 0.0) -> Recorded | None:
        """Record the next message, so that it is acknowledged when it is recorded.

        None if there is none; where it listens, within ``wait_s``. A message whose handling fails
        in an unknown way is left for later, and after five times a dead letter (result ``dead``).
        Raises LedgerError, and BrokerDown where messages can't be had now.
        """

    def relay(self, limit: int) -> int:
        """Send end messages that are due, at most so many; how many. What could not be sent is
        tried again later. Raises LedgerError.
        """

    def is_idle(self) -> bool:
        """Whether no message is left outside of the ledger, as far as that can be told."""


def failure_of(error: BaseException) -> str:
    """Why a message could not be handled: the type alone, as the text might hold anything."""
    return f"handling it failed: {type(error).__name__}"


def again_after(failures: int) -> float:
    """How many seconds a message waits that failed so often: 1, 2, 4, 8.

    >>> [again_after(failures) for failures in (1, 2, 3)]
    [1.0, 2.0, 4.0]
    """
    return float(_AGAIN_S * 2 ** (failures - 1))


def given_up(body: bytes, reason: str) -> Refused:
    """The end of a message that nobody knows how to handle."""
    return Refused("handler-failed", reason, digest_of(body))
