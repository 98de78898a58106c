"""What is done with each start message, by our dispatcher and by Celery's worker alike.

``python -m benchmarks.dispatch_work FOLDER`` is our dispatcher: it records all that waits in the
ledger of a folder, one transaction each, and ends.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from functools import cache

from sqlalchemy import Connection

from taskgraph_workers.config import check
from taskgraph_workers.dispatch import message, place
from taskgraph_workers.dispatch.brokers.embedded import Embedded
from taskgraph_workers.dispatch.ledger import queue, receipt
from taskgraph_workers.dispatch.ledger.database import Ledger, open_ledger
from taskgraph_workers.dispatch.ledger.values import Accepted
from taskgraph_workers.dispatch.model import Refused
from taskgraph_workers.model import Choice, Config

SETTINGS = {
    "workers": {
        "aliases": {
            "b-gpu-4": {
                "provisioner": "{trust-domain}-{level}",
                "implementation": "docker-worker",
                "os": "linux",
                "worker-type": "{alias}",
            }
        }
    },
    "workers-config": {
        "workers": {"b-gpu-4": {"env": {"GPUS": "0 1 2 3", "WORKSPACE": "12000"}}},
        "dispatch": {"skus": {"ND6": "b-gpu-4"}, "images": ["cwolff/.*"]},
    },
}


def request_id(number: int) -> str:
    """An id as they are in the field: in no order."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))


def body(number: int) -> bytes:
    """A start message."""
    fields = {
        "requestId": request_id(number),
        "trainingVmSku": "ND6",
        "trainingImage": "cwolff/my_keras_model",
        "trainingImagesContainer": "images-3-15-2018",
        "trainingBaseModelBlobId": "models/model-3-14-2018",
    }
    return json.dumps(fields).encode()


def judge(content: bytes) -> Accepted | Refused:
    """Read a message and place what it asks for."""
    found = message.read(content)
    if isinstance(found, Refused):
        return found
    config, choice = _configured()
    placed = place.place(config, found, choice)
    return placed if isinstance(placed, Refused) else Accepted(found, placed, "local")


@cache
def _configured() -> tuple[Config, Choice]:
    config, problems = check(SETTINGS)
    assert config is not None, problems
    return config, place.choice_of(config, environ={})


def put(ledger: Ledger, count: int, first: int = 0) -> None:
    """Have start messages wait in the embedded queue."""

    def puts(conn: Connection) -> None:
        for number in range(first, first + count):
            queue.put(conn, queue.START, body(number), time.time())

    ledger.do(puts)


def record(ledger: Ledger, content: bytes) -> str:
    """Record a message that another broker holds, in one transaction; what became of it."""
    return ledger.do(receipt.record, content, judge(content), time.time()).result


def drain(folder: str) -> None:
    """Record all that waits in the embedded queue."""
    with open_ledger(folder) as ledger:
        broker = Embedded(ledger)
        while broker.record_next(judge) is not None:
            pass


if __name__ == "__main__":
    drain(sys.argv[1])
