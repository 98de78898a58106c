"""What runs an attempt, as the loop sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from taskgraph_workers.dispatch.model import Job, Progress, Status


class Unreachable(Exception):
    """Nobody could be asked: what was wanted may or may not have happened. Try again later.

    The message says what was tried, without secrets.
    """


class NotNow(Unreachable):
    """A job that can't be started at present, where others may be: these need not wait for it."""


class AskedToGo(Unreachable):
    """What an ended job holds was asked to go, and may still be there: ask again later."""


class Impossible(Exception):
    """A job that can never run here (malformed, refused for good): the reason, as a sentence."""


@dataclass(frozen=True)
class Portion:
    """Some of what was told of a job. ``mark`` leads to what follows it; ``more`` is there now."""

    facts: tuple[Progress, ...]
    mark: Any
    more: bool = False


def trainer_env(job: Job) -> dict[str, str]:
    """The env of a job's trainer, as far as it is the same in every run."""
    return {**job.env, "TRAINING_ATTEMPT": str(job.attempt)}


class Executor(Protocol):
    """Runs jobs, each key once. Other packages add theirs by the entry-point group
    ``taskgraph_workers.executors``.
    """

    @property
    def name(self) -> str:
        """``local``: what ``--executor`` says."""

    @property
    def ephemeral(self) -> bool:
        """Whether a job's machine is made for it, and should be gone some time after it."""

    def submit(self, job: Job) -> str:
        """Start a job; its handle. The same key again gives the same handle and starts nothing.

        Durable before it returns. Raises Unreachable, or Impossible.
        """

    def find(self, key: str) -> str | None:
        """The handle of a key's job; None if there surely is none. Raises Unreachable."""

    def poll(self, handles: Iterable[str]) -> Mapping[str, Status]:
        """How jobs are. A handle that could not be asked about has the phase ``unknown``."""

    def cancel(self, handle: str) -> None:
        """Ask for a job to end. No error where it has ended, or is unknown. Raises Unreachable."""

    def progress(self, handle: str) -> Iterable[Progress]:
        """All that the trainer, and the machine, told so far; the ledger drops what it knows.

        Never how the attempt ended. Raises Unreachable.
        """

    def release(self, handle: str) -> None:
        """Let go of what an ended job holds, such as a machine made for it.

        Called once its end is recorded, and again until that succeeds: until then the executor must
        be able to say how it ended. No error where there is nothing. Raises Unreachable, and
        AskedToGo where that much was done.
        """


@runtime_checkable
class Follows(Protocol):
    """An executor whose trainers may tell a lot: only what is new is asked for, some at a time."""

    def follow(self, handle: str, mark: Any, most: int) -> Portion:
        """What was told since ``mark``, which is that of an earlier portion, or None: since ever.

        ``most`` facts, or a few more. The same mark again gives the same facts again, unless what
        they are read from has changed. Raises Unreachable.
        """
