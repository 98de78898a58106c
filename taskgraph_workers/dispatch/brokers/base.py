"""What carries start messages in and end messages out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Delivery:
    """A message that was received and is not acknowledged yet. ``token``: this delivery's own."""

    id: str
    body: bytes
    token: str = ""


class BrokerDown(Exception):
    """The broker can't be reached now. The message says which, without password."""


class Broker(Protocol):
    """A queue outside of the ledger. Other packages add theirs by the entry-point group
    ``taskgraph_workers.brokers``. Two threads may call it, never both at once.
    """

    @property
    def name(self) -> str:
        """``sqlite``: for logs."""

    def receive(self, wait_s: float) -> Delivery | None:
        """The next message, or None after ``wait_s`` without one. Raises BrokerDown."""

    def acknowledge(self, delivery: Delivery) -> bool:
        """Take it off the queue; False if it is no longer ours. Raises BrokerDown."""

    def release(self, delivery: Delivery, delay_s: float) -> None:
        """Give it back, to be delivered again after a while. Raises BrokerDown."""

    def publish(self, body: Mapping[str, Any], message_id: str) -> None:
        """Send an end message, durably, before it returns. Raises BrokerDown."""

    def is_empty(self) -> bool:
        """Whether no start message is left, with whomever it is, as far as that can be told.

        Raises BrokerDown.
        """
