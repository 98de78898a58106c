"""A Celery worker on Redis that keeps the same books as our dispatcher, into the same tables.

It acknowledges a message after its transaction, as ours does: with Celery's default, before, a
message would be lost with its worker. ``python -m benchmarks.dispatch_celery COUNT`` sends it
start messages. The environment says where: ``BENCHMARK_BROKER``, ``BENCHMARK_STATE``.
"""

from __future__ import annotations

import os
import sys
from functools import cache

from celery import Celery

from benchmarks import dispatch_work
from taskgraph_workers.dispatch.ledger.database import Ledger, open_ledger

app = Celery("dispatch", broker=os.environ["BENCHMARK_BROKER"])
app.conf.update(
    task_acks_late=True, task_ignore_result=True, broker_connection_retry_on_startup=True
)


@cache
def _ledger() -> Ledger:
    return open_ledger(os.environ["BENCHMARK_STATE"])


@app.task(name="record")
def record(text: str) -> None:
    """Record a start message."""
    dispatch_work.record(_ledger(), text.encode())


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        record.delay(dispatch_work.body(number).decode())
