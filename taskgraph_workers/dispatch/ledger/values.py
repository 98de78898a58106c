"""What the ledger takes and gives. All frozen: a value is what was true when it was read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from taskgraph_workers.dispatch.message import key_of
from taskgraph_workers.dispatch.model import FINAL, Job, Message, Placed, Progress, Start

#: What became of a message, as :class:`Recorded` says.
ACCEPTED, REOPENED, DUPLICATE = "accepted", "reopened", "duplicate"
CONFLICT, REJECTED, DEAD, POSTPONED = "conflict", "rejected", "dead", "postponed"


@dataclass(frozen=True)
class Accepted:
    """A message that is to run: what and where, and by which executor."""

    message: Message
    placed: Placed
    executor: str

    def job(self, attempt: int) -> Job:
        """The job of the attempt with this number."""
        key = key_of(self.message.request_id, attempt)
        return Job(key=key, attempt=attempt, **vars(self.placed))


@dataclass(frozen=True)
class Recorded:
    """What became of a message.

    ``accepted`` and ``reopened`` (after a rejection) start an attempt; ``duplicate`` changed
    nothing; ``conflict``, ``rejected`` and ``dead`` (refused, without an id) are dead letters.
    ``postponed``: handling it failed, and it is taken again later. ``letter`` is the number of the
    dead letter, where it became one.
    """

    result: str
    request_id: str | None = None
    attempt: int | None = None
    reason: str = ""
    letter: int | None = None


@dataclass(frozen=True)
class Attempt:
    """One attempt at a request. ``owner`` is the token that its owner's writes are checked by.

    ``run`` counts starts from 0, ``tries`` calls that led nowhere since the last that did,
    ``failures``, since then, too, those that failed in a way nobody knows. What it holds at its
    executor is let go of after its end, at ``released_at``.
    """

    request_id: str
    attempt: int
    key: str
    executor: str
    job: Job
    handle: str | None
    state: str
    reason: str
    exit_code: int | None
    cancel_asked_at: float | None
    tries: int
    failures: int
    next_look: float
    owner: str | None
    owned_until: float
    run: int
    machine: str | None
    unheard_since: float | None
    created_at: float
    started_at: float | None
    ended_at: float | None
    released_at: float | None

    @property
    def is_final(self) -> bool:
        """Whether it has ended."""
        return self.state in FINAL


@dataclass(frozen=True)
class Request:
    """A request as it is shown. ``machine``, ``run`` and the rest are its newest attempt's."""

    request_id: str
    state: str
    reason: str
    sku: str | None
    image: str | None
    attempt: int
    received_at: float
    ended_at: float | None
    executor: str | None
    key: str | None
    handle: str | None
    run: int | None
    machine: str | None
    cancel_asked_at: float | None
    unheard_since: float | None
    started_at: float | None
    exit_code: int | None


@dataclass(frozen=True)
class Fact:
    """Progress as it is kept: of which attempt."""

    request_id: str
    attempt: int
    progress: Progress


@dataclass(frozen=True)
class Letter:
    """A dead letter. ``body`` is cut where the message was too large to be read: see ``size``."""

    id: int
    queue: str
    body: bytes
    size: int
    code: str
    reason: str
    request_id: str | None
    first_at: float
    last_at: float
    times: int

    @property
    def is_whole(self) -> bool:
        """Whether all of it is kept, so that it can be put back."""
        return len(self.body) == self.size


@dataclass(frozen=True)
class Machine:
    """A machine that attempts ran on. ``ephemeral``: made for them, and gone after them."""

    id: str
    pool: str
    ephemeral: bool
    created_at: float | None
    stop_asked_at: float | None
    gone_at: float | None


@dataclass(frozen=True)
class End:
    """An end message in the outbox. ``lease`` is the token of whoever is sending it."""

    number: int
    message_id: str
    body: Mapping[str, Any]
    created_at: float
    tries: int = 0
    sent_at: float | None = None
    lease: str | None = field(default=None, compare=False)


def job_to_text(job: Job) -> str:
    """A job as JSON: the same text for the same job."""
    value = {**vars(job), "start": None if job.start is None else vars(job.start)}
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def job_from_text(text: str) -> Job:
    """The job that a text was made from. Those of before there was a start have none."""
    value = json.loads(text)
    start = value.get("start")
    if start is not None:
        words = {name: tuple(start[name]) for name in ("options", "command")}
        start = Start(**{**start, **words})
    return Job(**{**value, "scopes": tuple(value["scopes"]), "start": start})
