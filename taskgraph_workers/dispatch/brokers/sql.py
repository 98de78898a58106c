"""A queue in a database of its own, apart from the ledger: messages are taken with a lease.

It is a file of this machine's, in the ledger's own format, and holds start and end messages alone.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from taskgraph_workers.dispatch.brokers.base import BrokerDown, Delivery
from taskgraph_workers.dispatch.ledger import outbox, queue
from taskgraph_workers.dispatch.ledger.database import Ledger, Settings, open_ledger
from taskgraph_workers.dispatch.ledger.errors import LedgerError, LedgerUnavailable
from taskgraph_workers.dispatch.ledger.files import QUEUE
from taskgraph_workers.dispatch.ledger.recall import recall

T = TypeVar("T")

# How long to wait between looks at an empty queue, and for another's transaction: the loop has
# other things to do.
_LOOK_S, _BUSY_S = 0.05, 0.5


@dataclass
class SqlBroker:
    """The queue in a folder. It is there when somebody has sent a message; it is never made here,
    so that nothing is told to a disk that is not mounted.

    A message that is received is another's when ``lease_s`` is over. ``clock`` is seconds since the
    epoch; ``sleep`` waits for some.
    """

    folder: Path
    clock: Callable[[], float] = time.time
    lease_s: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    name: str = "sqlite"
    _opened: Ledger | None = field(default=None, repr=False)

    def check(self) -> None:
        """Raise LedgerError where what is there can't ever be used."""
        if (self.folder / QUEUE.name).exists():
            with contextlib.suppress(LedgerUnavailable):
                self._open()

    def receive(self, wait_s: float) -> Delivery | None:
        """The next message, leased, or None after ``wait_s`` without one. Raises BrokerDown."""
        for left in reversed(range(1 + math.ceil(wait_s / _LOOK_S))):
            found = self._reached(self._take)
            if found is not None or not left:
                return found
            self.sleep(_LOOK_S)
        raise AssertionError("the last look returns")

    def acknowledge(self, delivery: Delivery) -> bool:
        """Take it off the queue; False if it is no longer ours. Raises BrokerDown."""
        return self._do(queue.acknowledge, delivery)

    def release(self, delivery: Delivery, delay_s: float) -> None:
        """Give it back, to be delivered again after a while. Raises BrokerDown."""
        self._do(queue.release, delivery, self.clock(), delay_s)

    def publish(self, body: Mapping[str, Any], message_id: str) -> None:
        """Put an end message there, unless one with this id is. Raises BrokerDown."""
        self._do(outbox.publish, message_id, body, self.clock())

    def is_empty(self) -> bool:
        """Whether no start message is left, also none that somebody holds. Raises BrokerDown."""
        return self._reached(lambda opened: opened.see(queue.first_at, queue.START)) is None

    def _take(self, opened: Ledger) -> Delivery | None:
        # Looking takes no lock, so that waiting stops nobody from writing.
        now = self.clock()
        first = opened.see(queue.first_at, queue.START)
        if first is None:
            return None
        furthest = now + 2 * self.lease_s
        if first > furthest:
            # Nothing is put off so far: a clock was wrong, and was set back.
            opened.do(recall, furthest)
        elif first > now:
            return None
        return opened.do(queue.take, queue.START, now, self.lease_s)

    def _do(self, operation: Callable[..., T], *args: Any) -> T:
        return self._reached(lambda opened: opened.do(operation, *args))

    def _reached(self, call: Callable[[Ledger], T]) -> T:
        """All that fails may pass here: a file that was moved comes back, or is made anew."""
        try:
            return call(self._open())
        except LedgerError as error:
            raise BrokerDown(error.problems[0].text) from error

    def _open(self) -> Ledger:
        if self._opened is not None and not self._opened.is_there():
            self._opened.close()
            self._opened = None
        if self._opened is None:
            settings = Settings(create=False, busy_s=_BUSY_S, kind=QUEUE)
            self._opened = open_ledger(self.folder, settings)
        return self._opened
