"""How many jobs run on this machine at once; the others wait, in order.

A job has a ticket, a file with its time and key in its name, from when it is made until it has
ended. It gets a slot by a rename, before anything is started for it, and keeps that until it has
ended, whoever is killed meanwhile: the slot of a lost run is that of the next one. Only where its
engine could not start it, and it rests until the next try, another one may get its slot; then it
waits for one again, in its old place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from taskgraph_workers.dispatch.executors import folder as files
from taskgraph_workers.dispatch.executors.folder import Folder

_LOCK = "lock"
_SLOT = ".slot"
_TICKET = re.compile(r"(\d{12,}\.\d{6})-([a-z2-7]{26})(\.slot)?")

# Nobody holds the lock for longer than some files take to look at.
_LOCKED_S = 10.0


@dataclass(frozen=True)
class Ticket:
    """A job that has not ended, as far as is known; the name of its file sorts by when it came."""

    at: str
    key: str
    has_slot: bool = False

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.at}-{self.key}{_SLOT if self.has_slot else ''}"


@dataclass(frozen=True)
class Slots:
    """The slots for the jobs in a folder, ``at_once`` of them."""

    jobs: str
    at_once: int

    @property
    def path(self) -> str:
        """The folder of tickets."""
        return os.path.join(self.jobs, ".slots")

    def tickets(self) -> dict[str, Ticket]:
        """Tickets by key, in order. Raises OSError."""
        try:
            names = sorted(os.listdir(self.path))
        except FileNotFoundError:
            return {}
        found = filter(None, map(_TICKET.fullmatch, names))
        return {each[2]: Ticket(each[1], each[2], each[3] is not None) for each in found}

    def join(self, key: str, at: float, has_slot: bool = False) -> None:
        """Have a ticket for a job that came then; the same one if it has one. Raises OSError."""
        ticket = Ticket(f"{at:019.6f}", key, has_slot)
        with self._locked():
            if any(
                os.path.exists(self._at(replace(ticket, has_slot=has))) for has in (True, False)
            ):
                return
            os.close(os.open(self._at(ticket), os.O_WRONLY | os.O_CREAT, 0o600))
            files.sync(self.path)

    def advance(self) -> list[str]:
        """Give the slots that are free to those that came first; the keys of all that have one.

        Tickets of jobs that have ended, or are gone, are taken away. Raises OSError.
        """
        with self._locked():
            tickets = self.tickets().values()
            having = [each for each in tickets if each.has_slot and self._goes_on(each)]
            resting = [each for each in having if self._rests(each)]
            for ticket in tickets:
                if len(having) - len(resting) >= self.at_once:
                    break
                if ticket.has_slot or not self._goes_on(ticket) or self._rests(ticket):
                    continue
                while resting and len(having) >= self.at_once:
                    having.remove(resting[-1])
                    self._set(resting.pop(), has_slot=False)
                having.append(self._set(ticket, has_slot=True))
        return [each.key for each in having]

    def begins(self, key: str) -> bool:
        """Whether a job that rested has a slot; then it rests no more, and nobody takes that away.

        Until then it says that it rests, so that no other supervisor begins it. Raises OSError.
        """
        with self._locked():
            ticket = self.tickets().get(key)
            if ticket is None or not ticket.has_slot:
                return False
            self._job(key).remove(files.RESTING)
            return True

    def _set(self, ticket: Ticket, has_slot: bool) -> Ticket:
        """Give a slot to a ticket, or take it away."""
        changed = replace(ticket, has_slot=has_slot)
        os.rename(self._at(ticket), self._at(changed))
        files.sync(self.path)
        return changed

    def _rests(self, ticket: Ticket) -> bool:
        """Whether a job is not to be started yet; no longer than it said, whoever is killed."""
        try:
            known = self._job(ticket.key).read(files.RESTING)
            return known is not None and 0 <= time.time() - known["at"] < known["rest_s"]
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def _goes_on(self, ticket: Ticket) -> bool:
        """Whether a job has not ended; the ticket of one that has is taken away."""
        job = self._job(ticket.key)
        if job.has(files.JOB) and not job.has(files.EXIT):
            return True
        os.unlink(self._at(ticket))
        return False

    def _job(self, key: str) -> Folder:
        return Folder(os.path.join(self.jobs, key))

    def _at(self, ticket: Ticket) -> str:
        return os.path.join(self.path, ticket.name)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Change tickets alone, of all processes. Raises OSError where that takes too long."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.path, 0o700)
        tickets, until = Folder(self.path), time.monotonic() + _LOCKED_S
        while (handle := tickets.lock(_LOCK)) is None:
            if time.monotonic() > until:
                what = f"another process has held it for {_LOCKED_S:g} s"
                raise BlockingIOError(errno.EWOULDBLOCK, what, tickets.at(_LOCK))
            time.sleep(0.005)
        try:
            yield
        finally:
            os.close(handle)
