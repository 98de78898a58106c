"""The values of the door ``dispatch``: requests, attempts, and what becomes of them. All frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: States of a request, which only move forward in this order. The last four are final.
ACCEPTED, SUBMITTED, RUNNING = "accepted", "submitted", "running"
SUCCEEDED, FAILED, CANCELED, REJECTED = "succeeded", "failed", "canceled", "rejected"
STATES = (ACCEPTED, SUBMITTED, RUNNING, SUCCEEDED, FAILED, CANCELED, REJECTED)
FINAL = frozenset({SUCCEEDED, FAILED, CANCELED, REJECTED})

#: Names of progress as they are on the wire. The spelling of the third is the originating issue's;
#: the right one is taken too.
VM_CREATED = "trainingVmCreated"
IMAGES_DOWNLOADED = "imagesDownloaded"
SUCCEEDED_WITH_IMAGES = "trainingSuceededWithImages"
VM_DESTROYED = "trainingVmDestroyed"
REJECTED_ROW = "trainingRejected"
FAILED_ROW = "trainingFailed"
CANCELED_ROW = "trainingCanceled"
VM_STOPPING = "trainingVmStopping"
VM_RELEASED = "trainingVmReleased"

#: How each end is told in the table of progress. Only the ledger writes these, one per attempt.
END_ROWS = {
    SUCCEEDED: SUCCEEDED_WITH_IMAGES,
    FAILED: FAILED_ROW,
    CANCELED: CANCELED_ROW,
    REJECTED: REJECTED_ROW,
}

#: What is told of machines: never a trainer's to say.
MACHINE_ROWS = frozenset({VM_CREATED, VM_STOPPING, VM_RELEASED, VM_DESTROYED})

#: Those of them that can't be before the end of the run that they are of.
LEFT_ROWS = frozenset({VM_RELEASED, VM_DESTROYED})

#: How many facts of one attempt are kept, and the one that says that there were more.
MOST_FACTS = 100_000
DROPPED = "progressFactsDropped"

#: Other spellings of names of progress that are taken, and how they are kept.
SPELLINGS = {"trainingSucceededWithImages": SUCCEEDED_WITH_IMAGES}


#: The last time that facts may tell of, in seconds since the epoch: what shows times knows no year
#: after 9999, in any time zone.
LATEST = 253402214400.0


@dataclass(frozen=True)
class Message:
    """A start message that is well formed.

    ``digest`` is the SHA-256, in hex, of its canonical JSON (sorted keys, no blanks, UTF-8), so
    that the same request is told from another one with the same id. ``body`` is all that was sent.
    """

    request_id: str
    sku: str
    image: str
    images_container: str
    base_model: str | None
    digest: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Refused:
    """A message that can never work: why, in one sentence without any value that may be secret.

    ``digest`` tells it from others: as a :class:`Message`'s, or of the bytes where these are none.
    ``request_id`` is its id where one could be read. ``code`` is for programs: ``not-json``,
    ``not-an-object``, ``too-large``, ``missing-field``, ``wrong-type``, ``bad-value``,
    ``unknown-sku``, ``image-not-allowed``, ``no-placement``, ``conflict``, ``handler-failed``.
    ``sku`` and ``image`` are what it asks for, to look at: None where that is not fit to be shown.
    """

    code: str
    reason: str
    digest: str
    request_id: str | None = None
    sku: str | None = field(default=None, compare=False)
    image: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Start:
    """How an image is started on the dispatchers' own machine, as ``dispatch.local`` said.

    It comes from the configuration that the request was accepted with, and never from a message.
    ``engine`` and ``options`` are as there, ``command`` is the image's, empty for none.
    """

    engine: str | None = None
    options: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Placed:
    """What runs for a request, and where: the same for every attempt at it.

    ``env`` is complete: the trainer's contract, placement's env, the task's; but for what only the
    machine knows, which is in ``detect`` as in YAML (see :mod:`taskgraph_workers.detect`), and for
    what the executor adds (TRAINING_ATTEMPT, TRAINING_RUN, TRAINING_PROGRESS_FILE).
    ``max_run_time_s`` is a limit that the executor keeps. ``retries`` counts starts anew after a
    machine was lost, never after a failed training. ``start`` is for any dispatcher that comes to
    start it, whose own configuration may know nothing of the image; None goes by that.
    """

    request_id: str
    image: str
    sku: str
    worker: str
    pool: str
    env: Mapping[str, str] = field(default_factory=dict)
    detect: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    max_run_time_s: int | None = None
    retries: int = 0
    scopes: tuple[str, ...] = ()
    profile: str | None = None
    start: Start | None = None


@dataclass(frozen=True)
class Numbered:
    """Which attempt it is, counted from 1.

    ``key`` is derived from the request's id and that number: lower-case letters and digits, 26 of
    them; it names the job wherever it runs.
    """

    key: str
    attempt: int


# Fields of the base that is named last come first: those without a default have to.
@dataclass(frozen=True)
class Job(Placed, Numbered):
    """One attempt, as an executor is given it. It is stored before the first call, and replayed."""


@dataclass(frozen=True)
class Status:
    """How a job is, as its executor says.

    ``phase``: ``queued``, ``running``, ``succeeded``, ``failed``, ``canceled``, ``lost`` (surely
    not there any more) or ``unknown`` (nobody could be asked: never a failure). ``run`` counts from
    0, one more for every start anew. ``machine`` is the trainingVmId, None before anything claimed
    it.
    """

    phase: str
    run: int = 0
    machine: str | None = None
    reason: str = ""
    exit_code: int | None = None


@dataclass(frozen=True)
class Progress:
    """One fact about a request: append-only, keyed by (request, attempt, run, name, seq).

    ``at`` is seconds since the epoch, as whoever reports it says; ``data`` is small JSON.
    """

    name: str
    at: float
    run: int = 0
    seq: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)
