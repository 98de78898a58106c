"""What is new of what was told of jobs, in portions.

Each is written in one transaction, and few of them in a row. So no trainer, however much it tells,
keeps others from writing for long; and a look costs what is new.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from taskgraph_workers.dispatch.executors.base import Executor, Follows, Portion
from taskgraph_workers.dispatch.model import Progress

#: How many facts one portion has, more or less: what SQLite writes in two hundredths of a second.
MOST = 500

#: After so many facts of all jobs others have a turn, for so long.
MOST_AT_ONCE, TURN_S = 1000, 0.05


@dataclass
class Hearing:
    """Takes portions, until there were many; then there are none, but more."""

    left: int = MOST_AT_ONCE

    def portion(self, executor: Executor, handle: str, mark: Any) -> Portion:
        """What was told of a job behind a mark; None: since ever. Raises Unreachable."""
        if self.left <= 0:
            return Portion((), mark, True)
        if isinstance(executor, Follows):
            found = executor.follow(handle, mark, MOST)
        else:
            found = _portion(tuple(executor.progress(handle)), mark)
        self.left -= len(found.facts)
        return found


@dataclass(frozen=True)
class _Mark:
    """Of an executor that always tells all: how many were told, and which these were."""

    count: int
    which: int


def _portion(facts: tuple[Progress, ...], mark: Any) -> Portion:
    told = 0
    if isinstance(mark, _Mark) and _which(facts[: mark.count]) == mark.which:
        told = mark.count
    upto = min(len(facts), told + MOST)
    return Portion(facts[told:upto], _Mark(upto, _which(facts[:upto])), upto < len(facts))


def _which(facts: Iterable[Progress]) -> int:
    """Which facts these are. When each was may be told anew with every look."""
    return hash(tuple((fact.run, fact.name, fact.seq) for fact in facts))
