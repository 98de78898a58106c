"""What every step of the loop works with."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Protocol

from taskgraph_workers.dispatch.backoff import Chance, delay, look_after
from taskgraph_workers.dispatch.executors.base import Executor
from taskgraph_workers.dispatch.ledger.attempts import Owner
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.ledger.values import Attempt
from taskgraph_workers.dispatch.log import Log, where


@dataclass(frozen=True)
class Pace:
    """How much at once, and how often.

    ``own_s``: for how long an attempt is this dispatcher's; then others take it over. ``turn_s``:
    after this time of starting jobs the loop looks at everything else first. ``first_s`` and
    ``most_s``: what waiting after failures begins with, and its limit. ``soon_s`` and ``look_s``:
    how soon a young job is looked at, and how often an old one. ``nap_s``: how long a new message
    may wait until it is seen. ``machines_s``: how often machines are looked at that should be gone,
    ``overdue_s``: after how long one should be. ``rest_s``: the longest rest.
    """

    batch: int = 50
    messages: int = 100
    own_s: float = 60.0
    turn_s: float = 2.0
    first_s: float = 1.0
    most_s: float = 300.0
    soon_s: float = 0.2
    look_s: float = 15.0
    nap_s: float = 0.05
    machines_s: float = 60.0
    overdue_s: float = 7200.0
    rest_s: float = 5.0


class Known(Protocol):
    """Executors by name."""

    def get(self, name: str, /) -> Executor | None:
        """The executor of this name; None where there is none."""


@dataclass
class Trouble:
    """Something that failed: how often in a row, and until when it is left alone."""

    times: int = 0
    until: float = 0.0


#: Of how many jobs it is remembered up to where they were told.
_MOST_TOLD = 10_000


@dataclass(frozen=True)
class Means:
    """The ledger, the executors by name, and this dispatcher's own clock, chance and log."""

    ledger: Ledger
    executors: Known
    say: Log
    name: str
    pace: Pace = Pace()
    clock: Callable[[], float] = time.time
    chance: Chance = random.random
    stopped: Callable[[], bool] = lambda: False
    down: dict[str, Trouble] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    missed: set[str] = field(default_factory=set)

    def owner(self) -> Owner:
        """Who owns the attempts that are worked on here."""
        return Owner(self.name, self.pace.own_s, self.pace.batch)

    def later(self, tries: int, most_s: float | None = None) -> float:
        """When to try again what led nowhere so often."""
        most_s = self.pace.most_s if most_s is None else most_s
        return self.clock() + delay(tries, self.chance, self.pace.first_s, most_s)

    def leave_alone(
        self, troubles: dict[str, Trouble], name: str, most_s: float | None = None
    ) -> Trouble:
        """Note that something failed once more; it is left alone for a while, longer each time."""
        trouble = troubles.setdefault(name, Trouble())
        trouble.until = self.later(trouble.times, most_s)
        trouble.times += 1
        return trouble

    def next_look(self, mine: Attempt) -> float:
        """When to look again at a job that goes on."""
        now = self.clock()
        age_s = now - (mine.started_at or mine.created_at)
        if mine.cancel_asked_at is not None:
            age_s = now - mine.cancel_asked_at
        return now + look_after(age_s, self.chance, self.pace.soon_s, self.pace.look_s)

    def executor(self, mine: Attempt) -> Executor | None:
        """What runs an attempt; None, and once a line in the log, where nobody here knows it."""
        found = self.executors.get(mine.executor)
        if found is None and mine.executor not in self.missed:
            self.missed.add(mine.executor)
            self.say.error(
                "its executor is not configured here", mine.request_id, executor=mine.executor
            )
        return found

    def not_here(self, mine: Attempt) -> float:
        """When to look again at what this dispatcher can't: soon, as another may well know how."""
        return self.later(mine.tries, self.pace.rest_s)

    def unforeseen(self, what: str, error: BaseException, mine: Attempt | None = None) -> None:
        """Say that something failed in a way that nobody foresaw."""
        self.say.error(what, mine.request_id if mine else None, error=where(error))

    def heard(self, key: str, mark: Any) -> None:
        """Remember up to where the ledger was told of a job.

        The oldest is forgotten, and told again.
        """
        self.told.pop(key, None)
        self.told[key] = mark
        while len(self.told) > _MOST_TOLD:
            del self.told[next(iter(self.told))]

    def failed_reaching(self, name: str) -> None:
        """An executor could not be reached: it is left alone for a while."""
        self.leave_alone(self.down, name)

    def reached(self, name: str) -> None:
        """An executor answered."""
        self.down.pop(name, None)
