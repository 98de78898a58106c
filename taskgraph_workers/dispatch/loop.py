"""The loop: receive, start, look, let go, tell; then sleep until something is due.

All that is true is in the ledger. A loop can be killed at any step, and any number of them may work
on one ledger: each step is owned for a time, and taken over by another when that is over.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Callable

from taskgraph_workers.dispatch import owners
from taskgraph_workers.dispatch.brokers.base import BrokerDown
from taskgraph_workers.dispatch.ledger import attempts, machines, outbox, queries, steps
from taskgraph_workers.dispatch.ledger.errors import LedgerError, LedgerUnavailable
from taskgraph_workers.dispatch.ledger.recall import recall
from taskgraph_workers.dispatch.ledger.values import Attempt
from taskgraph_workers.dispatch.means import Means, Trouble
from taskgraph_workers.dispatch.meanwhile import Meanwhile
from taskgraph_workers.dispatch.receive import Intake
from taskgraph_workers.dispatch.reconcile import reconcile, release
from taskgraph_workers.dispatch.submit import submit

#: How long a broker of another program is waited for at most, so that all else goes on.
_LISTEN_S = 1.0

#: The part that takes messages, as it is called where it fails.
_RECEIVING = "receiving"

#: What is said to fail where nothing can be written, and how long it is left alone at most.
_LEDGER, _MOST_TROUBLE_S = "the ledger", 30.0

#: A clock that goes back further was set back, and not only corrected.
_STEP_S = 1.0


@dataclass
class Loop:
    """Moves requests forward."""

    means: Means
    intake: Intake
    sleep: Callable[[float], None] = time.sleep
    troubles: dict[str, Trouble] = field(default_factory=dict)
    latest: float = 0.0
    looked_at_machines: float = 0.0
    looked_at_owners: float = 0.0
    reported: set[str] = field(default_factory=set)
    meanwhile: Meanwhile | None = None

    # --- how long it goes on ---

    def run(self, until_idle: bool = False) -> None:
        """Go on until it is stopped, or until nothing is left to do.

        Messages are taken, too, while an executor does not answer. Raises LedgerError for what does
        not pass by itself.
        """
        with Meanwhile(self._receive_one, self.means.pace.nap_s) as self.meanwhile:
            self._run(until_idle)
        self.meanwhile = None

    def _run(self, until_idle: bool) -> None:
        is_new = True
        while not self.means.stopped():
            try:
                if is_new:
                    self._hurry()
                    is_new = False
                did = self.turn()
                idle = until_idle and not did and self.is_idle()
                self._fine(_LEDGER)
                if idle:
                    return
                if not did:
                    self._wait()
            except LedgerUnavailable as error:
                self._in_trouble(_LEDGER, error.problems[0].text)
                self._nap(self.troubles[_LEDGER].until)
                self.looked_at_owners = 0.0  # what was under way is nobody's now

    def once(self) -> None:
        """Take what waits, start it, look once at all that is under way, tell ends.

        Raises LedgerError.
        """
        self._take_over()
        self._hurry()
        while self._part(_RECEIVING, lambda: self.intake.take(self.means.pace.messages)):
            pass
        began = self.means.clock()
        for part, step in (
            ("working", lambda: self._work(began)),
            ("letting go", lambda: release(self.means)),
            ("telling", self._relay),
        ):
            while not self.means.stopped() and self._part(part, step):
                pass

    def _hurry(self) -> None:
        """Wait for nothing that failed before this dispatcher began: that may be mended by now."""
        self.means.ledger.do(attempts.hurry)
        self.means.ledger.do(outbox.hurry)

    def turn(self) -> int:
        """Do what is due, of each kind some; how much that was. Raises LedgerError."""
        self._mind_the_clock()
        self._part("taking over", self._take_over)
        did = self._part(_RECEIVING, lambda: self.intake.take(self.means.pace.messages))
        with contextlib.nullcontext() if self.meanwhile is None else self.meanwhile.away():
            did += self._part("working", lambda: self._work(self.means.clock()))
            did += self._part("letting go", lambda: release(self.means))
        did += self._part("telling", self._relay)
        self._part("looking at machines", self._machines)
        return did

    def is_idle(self) -> bool:
        """Whether nothing is left to do, as far as this dispatcher can see."""
        if self.troubles or not self.means.ledger.see(queries.is_idle):
            return False
        return self.intake.transport.is_idle()

    # --- its parts ---

    def _part(self, name: str, step: Callable[[], int]) -> int:
        """One part. What goes wrong with it stops no other, nor the loop."""
        trouble = self.troubles.get(name)
        if self.means.stopped() or (trouble and trouble.until > self.means.clock()):
            return 0
        try:
            did = step()
        except LedgerError:
            raise
        except BrokerDown as error:
            self._in_trouble(name, str(error))
            return 0
        except Exception as error:
            self.means.unforeseen(f"{name} failed", error)
            self._in_trouble(name, type(error).__name__)
            return 0
        self._fine(name)
        return did

    def _receive_one(self) -> int:
        """Take a message while the loop is away, in another thread. Raises nothing."""
        try:
            return self._part(_RECEIVING, lambda: int(self.intake.take_one()))
        except LedgerError as error:
            # The loop meets it, too, and knows what follows from it.
            self._in_trouble(_RECEIVING, error.problems[0].text if error.problems else "")
            return 0

    def _mind_the_clock(self) -> None:
        """Wait for nothing that was to be done by a clock that has been set back since."""
        now = self.means.clock()
        if now < self.latest - _STEP_S:
            self.means.say.warn("the clock was set back", by_s=round(self.latest - now))
            self.troubles = {name: Trouble(each.times) for name, each in self.troubles.items()}
            for down in self.means.down.values():
                down.until = 0.0
            self.looked_at_machines = self.looked_at_owners = 0.0
            self._recall(now + self.means.pace.own_s)
        self.latest = now

    def _recall(self, after: float) -> None:
        count = self.means.ledger.do(recall, after)
        if count:
            self.means.say.warn("put off by a clock that was wrong; it is due now", count=count)

    def _take_over(self) -> int:
        """Have what dispatchers owned that were killed, what broke off here, and what was lost
        sight of by a wrong clock.
        """
        now, pace = self.means.clock(), self.means.pace
        if now < self.looked_at_owners + pace.rest_s:
            return 0
        self._recall(now + 2 * max(pace.most_s, pace.own_s))
        mine = f"{self.means.name} "
        freed = self.means.ledger.do(
            attempts.free, lambda owner: owner.startswith(mine) or owners.is_gone(owner)
        )
        self.looked_at_owners = now
        if freed:
            self.means.say.info("taken over from a dispatcher that is gone", attempts=freed)
        return freed

    def _work(self, now: float) -> int:
        """Look at what runs, then start what waits, of the attempts that are due."""
        mine = self.means.ledger.do(attempts.own, self.means.owner(), now)
        by_executor = sorted(mine, key=lambda each: each.executor)
        for name, some in groupby(by_executor, key=lambda each: each.executor):
            theirs = tuple(some)
            try:
                self._work_at(theirs)
            except LedgerError:
                raise
            except Exception as error:
                # Its answers make no sense, so nothing is known of its jobs. Others' go on.
                self.means.unforeseen(f"working with {name} failed", error)
                why = f"working with {name} failed: {type(error).__name__}"
                later = [(each, self.means.later(each.tries), why) for each in theirs]
                self.means.ledger.do(steps.unheard, later, self.means.clock())
        return len(mine)

    def _work_at(self, mine: Sequence[Attempt]) -> None:
        executor = self.means.executor(mine[0])
        if executor is None:
            why = f"its executor is not configured here: {mine[0].executor}"
            later = [(each, self.means.not_here(each), why) for each in mine]
            self.means.ledger.do(steps.unheard, later, self.means.clock())
            return
        reconcile(self.means, executor, [each for each in mine if each.handle is not None])
        submit(self.means, executor, [each for each in mine if each.handle is None])

    def _relay(self) -> int:
        return self.intake.transport.relay(self.means.pace.messages)

    def _machines(self) -> int:
        """Tell of machines that should be gone, each once as long as it is there."""
        now, pace = self.means.clock(), self.means.pace
        if now < self.looked_at_machines + pace.machines_s:
            return 0
        self.looked_at_machines = now
        found = {each.id for each in self.means.ledger.see(machines.overdue, now, pace.overdue_s)}
        for id in sorted(found - self.reported):
            self.means.say.error("a machine is still there that nobody needs", machine=id)
        self.reported = found
        return 0

    # --- trouble and rest ---

    def _in_trouble(self, name: str, reason: str) -> None:
        """Leave a part alone for a while, and say so."""
        trouble = self.means.leave_alone(self.troubles, name, _MOST_TROUBLE_S)
        wait_s = round(trouble.until - self.means.clock(), 1)
        self.means.say.warn(f"{name}: {reason}", wait_s=wait_s)

    def _fine(self, name: str) -> None:
        if self.troubles.pop(name, None) is not None:
            self.means.say.info(f"{name}: works again")

    def _wait(self) -> None:
        """Rest until something is due; a new message, or a stop, ends it within a nap."""
        began = self.means.clock()
        end = began + self.means.pace.rest_s
        if self.intake.transport.listens and _RECEIVING not in self.troubles:
            return self._listen(end)
        self.sleep(self.means.pace.nap_s)
        while not self.means.stopped() and began <= self.means.clock() < end:
            due = self.means.ledger.see(queries.next_due)
            if due is not None and due <= self.means.clock():
                return None
            self.sleep(self.means.pace.nap_s)
        return None

    def _listen(self, end: float) -> None:
        """Rest by waiting for a message of a broker outside of the ledger."""
        due = self.means.ledger.see(queries.next_due)
        left_s = (end if due is None else min(end, due)) - self.means.clock()
        listen_s = min(_LISTEN_S, max(self.means.pace.nap_s, left_s))
        self._part(_RECEIVING, lambda: int(self.intake.take_one(listen_s)))

    def _nap(self, until: float) -> None:
        """Rest, but not past a stop."""
        began = self.means.clock()
        while not self.means.stopped() and began <= self.means.clock() < until:
            self.sleep(min(self.means.pace.nap_s, max(0.0, until - self.means.clock())))
