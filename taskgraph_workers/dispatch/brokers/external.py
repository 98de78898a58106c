"""Any broker outside of the ledger: what is received is recorded, and then acknowledged."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

from taskgraph_workers.dispatch.brokers.base import Broker, BrokerDown, Delivery
from taskgraph_workers.dispatch.brokers.embedded import Embedded
from taskgraph_workers.dispatch.brokers.transport import (
    MOST_FAILURES,
    Judge,
    again_after,
    failure_of,
    given_up,
)
from taskgraph_workers.dispatch.failpoints import reach
from taskgraph_workers.dispatch.ledger import outbox, receipt
from taskgraph_workers.dispatch.ledger.errors import LedgerError
from taskgraph_workers.dispatch.ledger.receipt import Verdict
from taskgraph_workers.dispatch.ledger.values import POSTPONED, End, Recorded
from taskgraph_workers.dispatch.log import where
from taskgraph_workers.dispatch.means import Means
from taskgraph_workers.dispatch.message import digest_of

# How many messages are remembered that failed.
_MOST_FAILED = 1000


@dataclass(frozen=True)
class External:
    """Messages of a broker, and those that were put back into the ledger's own queue.

    ``failed`` counts messages whose handling failed, by their content: few brokers count, and none
    knows why a message came again.
    """

    means: Means
    broker: Broker
    failed: dict[str, int] = field(default_factory=dict)

    @property
    def listens(self) -> bool:
        """Yes: only the broker knows when a message comes."""
        return True

    def record_next(self, judge: Judge, wait_s: float = 0.0) -> Recorded | None:
        """Commit, then acknowledge: what is lost between comes again, as a duplicate.

        Raises LedgerError and BrokerDown.
        """
        own = Embedded(self.means.ledger, self.means.clock).record_next(judge)
        if own is not None:
            return own
        delivery = self.broker.receive(wait_s)
        if delivery is None:
            return None
        reach("after-receive")
        try:
            recorded = self._handled(delivery, judge)
        except LedgerError:
            # It need not wait for the end of its lease when the ledger works again.
            with contextlib.suppress(BrokerDown):
                self.broker.release(delivery, 0.0)
            raise
        if recorded.result == POSTPONED:
            failures = self.failed[digest_of(delivery.body)]
            self.broker.release(delivery, again_after(failures))
        else:
            self._acknowledge(delivery, recorded)
        return recorded

    def relay(self, limit: int) -> int:
        """Lease what is due, publish each, and mark it: a crash between has it published again.

        Raises LedgerError.
        """
        means = self.means
        taken = means.ledger.do(outbox.take, means.clock(), means.pace.own_s, limit)
        for at, end in enumerate(taken):
            try:
                self.broker.publish(end.body, end.message_id)
            except BrokerDown as error:
                means.say.warn("end messages wait", broker=self.broker.name, reason=str(error))
                # Nor would the broker take the others.
                for each in taken[at:]:
                    self._again(each)
                return at
            except Exception as error:
                about = str(end.body["requestId"])
                means.say.error("its end message could not be sent", about, error=where(error))
                self._again(end)
                continue
            reach("after-publish")
            means.ledger.do(outbox.sent, end, means.clock())
        return len(taken)

    def is_idle(self) -> bool:
        """Whether the broker has no message; not while it can't be asked."""
        try:
            return self.broker.is_empty()
        except BrokerDown:
            return False
        except Exception as error:
            self.means.unforeseen("the broker could not say whether it is empty", error)
            return False

    def _handled(self, delivery: Delivery, judge: Judge) -> Recorded:
        try:
            return self._record(delivery, judge(delivery.body))
        except LedgerError:
            raise
        except Exception as error:
            reason = failure_of(error)
        if self._count(delivery) < MOST_FAILURES:
            return Recorded(POSTPONED, reason=reason)
        return self._record(delivery, given_up(delivery.body, reason))

    def _record(self, delivery: Delivery, verdict: Verdict) -> Recorded:
        now = self.means.clock()
        recorded = self.means.ledger.do(receipt.record, delivery.body, verdict, now)
        reach("after-commit")
        return recorded

    def _count(self, delivery: Delivery) -> int:
        digest = digest_of(delivery.body)
        self.failed[digest] = self.failed.pop(digest, 0) + 1
        while len(self.failed) > _MOST_FAILED:
            del self.failed[next(iter(self.failed))]
        return self.failed[digest]

    def _acknowledge(self, delivery: Delivery, recorded: Recorded) -> None:
        """Take it off the queue. Where that fails it comes again, and is known then."""
        say = self.means.say
        try:
            if not self.broker.acknowledge(delivery):
                say.warn("the lease was over: it comes again", recorded.request_id)
        except BrokerDown as error:
            why = "it could not be acknowledged: it comes again"
            say.warn(why, recorded.request_id, broker=self.broker.name, reason=str(error))
        reach("after-acknowledge")

    def _again(self, end: End) -> None:
        self.means.ledger.do(outbox.failed, end, self.means.later(end.tries))
