"""What runs an attempt, as the loop sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from taskgraph_workers.dispatch.model import Job, Progress, Status


class Unreachable(Exception):
    """Nobody could be asked: what was wanted may or may not have happened. Try again later.

    The message says what was tried, without secrets.
    """


class Impossible(Exception):
    """This job can never run here (malformed, refused for good): the reason, as a sentence."""


class Executor(Protocol):
    """Runs jobs, each key once. Other packages add theirs by the entry-point group
    ``taskgraph_workers.executors``.
    """

    @property
    def name(self) -> str:
        """``local``: what ``--executor`` says."""

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
        """All that the trainer, and the machine, told so far; the ledger drops what it knows."""
