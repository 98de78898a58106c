"""Ledgers to test with: messages, what is judged of them, and short ways to a state."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, insert, select

from taskgraph_workers.dispatch import message
from taskgraph_workers.dispatch.failpoints import VARIABLE
from taskgraph_workers.dispatch.ledger import attempts, outbox, queue, receipt, tables
from taskgraph_workers.dispatch.ledger.attempts import Owner
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.ledger.values import Accepted, Attempt, End, Recorded, job_to_text
from taskgraph_workers.dispatch.model import Placed, Refused, Status

#: When tests begin. Time goes by only where they say so.
NOW = 1_800_000_000.0

RUNNING = Status("running", machine="vm-1")


def body(request_id: str = "r1", **changes: Any) -> bytes:
    """A start message; a field that is changed to None is left out."""
    fields = {
        "requestId": request_id,
        "trainingVmSku": "ND6",
        "trainingImage": "cwolff/my_keras_model",
        "trainingImagesContainer": "images-3-15-2018",
        **changes,
    }
    said = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(said).encode()


def judge(content: bytes) -> Accepted | Refused:
    """What a dispatcher that knows ND6 alone makes of a message."""
    found = message.read(content)
    if isinstance(found, Refused):
        return found
    if found.sku != "ND6":
        return Refused("unknown-sku", "this SKU is not known", found.digest, found.request_id)
    placed = Placed(found.request_id, found.image, found.sku, "b-gpu", "proj-1/b-gpu")
    return Accepted(found, placed, "local")


def refusal(code: str = "unknown-sku", content: bytes | None = None) -> Refused:
    """What a dispatcher makes of a message that it does not take any more."""
    found = message.read(body() if content is None else content)
    return Refused(code, "it is not taken here", found.digest, found.request_id)


def ask(ledger: Ledger, request_id: str = "r1", now: float = NOW, **changes: Any) -> Recorded:
    """Record a message."""
    content = body(request_id, **changes)
    return ledger.do(receipt.record, content, judge(content), now)


def send(ledger: Ledger, content: bytes, now: float = NOW) -> None:
    """Have a start message wait."""
    ledger.do(queue.put, queue.START, content, now)


def waits(ledger: Ledger) -> bool:
    """Whether a start message is there, with whomever it is."""
    return ledger.see(queue.first_at, queue.START) is not None


def unsent(conn: Connection) -> tuple[End, ...]:
    """End messages that are not sent yet, those to be tried first in front."""
    table = tables.outbox.c
    found = select(table.message_id).where(table.sent_at.is_(None))
    ids = conn.execute(found.order_by(table.next_try, table.id)).scalars().all()
    ends = [outbox.end_of(conn, each) for each in ids]
    return tuple(end for end in ends if end is not None)


def own(ledger: Ledger, now: float = NOW, for_s: float = 60.0, name: str = "me") -> Attempt:
    """Own the attempt that is due first."""
    return ledger.do(attempts.own, Owner(name, for_s, limit=1), now)[0]


def started(ledger: Ledger, request_id: str = "r1", now: float = NOW) -> Attempt:
    """Ask for a request, and own its attempt when it runs."""
    ask(ledger, request_id, now)
    mine = ledger.do(attempts.record_handle, own(ledger, now), f"job-{request_id}")
    assert mine is not None
    running = ledger.do(attempts.change, mine, "running", now, RUNNING)
    assert running is not None
    return running


def fill(conn: Connection, count: int, start: int = 0) -> None:
    """Add requests ``old-0``, ``old-1`` ... that have succeeded, with all that belongs to one."""
    content = body()
    accepted = judge(content)
    assert isinstance(accepted, Accepted)
    ended = {"attempt": 1, "state": "succeeded", "reason": "", "ended_at": NOW}
    request = {**ended, "digest": "x" * 64, "body": content, "sku": "ND6", "image": "a/b"}
    attempt = {**ended, "executor": "local", "job": job_to_text(accepted.job(1)), "handle": "h"}
    attempt.update(tries=0, run=0, next_look=NOW, owned_until=0.0, created_at=NOW)
    attempt.update(released_at=NOW)
    fact = {"attempt": 1, "run": 0, "seq": 0, "at": NOW, "data": "{}"}
    told = {"body": "{}", "created_at": NOW, "next_try": NOW, "tries": 0, "sent_at": NOW}
    rows: dict[Table, list[dict[str, Any]]] = defaultdict(list)
    for each in range(start, start + count):
        id, vm = f"old-{each}", f"vm-{each}"
        at = NOW - 10**7 + each
        rows[tables.requests].append({**request, "request_id": id, "received_at": at})
        rows[tables.attempts].append({**attempt, "request_id": id, "key": id, "machine": vm})
        for name in ("trainingVmCreated", "trainingSuceededWithImages"):
            rows[tables.progress].append({**fact, "request_id": id, "name": name})
        rows[tables.outbox].append({**told, "message_id": f"{id}/1"})
        rows[tables.machines].append({"id": vm, "pool": "p", "ephemeral": True, "gone_at": NOW})
        rows[tables.uses].append({"machine": vm, "request_id": id, "attempt": 1, "run": 0})
    for table, values in rows.items():
        conn.execute(insert(table), values)


def program(code: str, *args: object, failpoint: str = "") -> subprocess.Popen[str]:
    """Run a program that uses this module, and may be killed at a failpoint."""
    root = Path(__file__).resolve().parent
    path = os.pathsep.join([str(root), str(root.parent)])
    env = {**os.environ, "PYTHONPATH": path, VARIABLE: failpoint}
    command = [sys.executable, "-c", code, *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
