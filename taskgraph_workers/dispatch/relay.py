"""End messages go out, each until its broker has it; again where nobody knows whether it has."""

from __future__ import annotations

from taskgraph_workers.dispatch.brokers.base import Broker, BrokerDown
from taskgraph_workers.dispatch.brokers.sql import SqlBroker
from taskgraph_workers.dispatch.failpoints import reach
from taskgraph_workers.dispatch.ledger import outbox
from taskgraph_workers.dispatch.ledger.errors import LedgerError
from taskgraph_workers.dispatch.ledger.values import End
from taskgraph_workers.dispatch.log import where
from taskgraph_workers.dispatch.means import Means


def relay(means: Means, broker: Broker) -> int:
    """Send what is due; how many. What could not be sent is tried again later."""
    if isinstance(broker, SqlBroker):
        return broker.relay(means.pace.messages)
    taken = means.ledger.do(outbox.take, means.clock(), means.pace.own_s, means.pace.messages)
    for at, end in enumerate(taken):
        try:
            broker.publish(end.body, end.message_id)
        except BrokerDown as error:
            means.say.warn("end messages wait", broker=broker.name, reason=str(error))
            # Nor would the broker take the others.
            for each in taken[at:]:
                _failed(means, each)
            return at
        except LedgerError:
            raise
        except Exception as error:
            about = str(end.body["requestId"])
            means.say.error("its end message could not be sent", about, error=where(error))
            _failed(means, end)
            continue
        reach("after-publish")
        means.ledger.do(outbox.sent, end, means.clock())
    return len(taken)


def _failed(means: Means, end: End) -> None:
    means.ledger.do(outbox.failed, end, means.later(end.tries))
