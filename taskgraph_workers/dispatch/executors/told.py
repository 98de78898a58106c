"""What was told of a job on this machine, run by run, in portions: of machines, and by trainers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from taskgraph_workers.dispatch.executors import progress_file
from taskgraph_workers.dispatch.executors.base import Portion
from taskgraph_workers.dispatch.executors.progress_file import IGNORED
from taskgraph_workers.dispatch.model import (
    DROPPED,
    MOST_FACTS,
    VM_CREATED,
    VM_DESTROYED,
    Progress,
)


@dataclass(frozen=True)
class Run:
    """A run of a job: on which machine, from when until when, and the file of its trainer."""

    machine: str
    began: float
    ended: float | None
    file: str


@dataclass(frozen=True)
class Mark:
    """How much was told: of all runs before ``run``, and of this one so much of its file.

    ``facts`` counts what trainers told in all runs. ``began``: it was told that the run began.
    """

    run: int = 0
    began: bool = False
    file: progress_file.Mark = progress_file.BEGINNING
    facts: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it was told that no more is taken."""
        return self.facts > MOST_FACTS


def portion(runs: Sequence[Run], mark: Mark, most: int, now: float) -> Portion:
    """What was told of these runs behind a mark: ``most`` facts, or a few more.

    ``now`` is the time of facts that tell none. Raises OSError where a file can't be read.
    """
    facts: list[Progress] = []
    while mark.run < len(runs):
        if len(facts) >= most:
            return Portion(tuple(facts), mark, True)
        run = runs[mark.run]
        if not mark.began:
            facts.append(_of_machine(VM_CREATED, run.began, mark, run))
            mark = replace(mark, began=True)
        mark, more = _tell(facts, run, mark, max(1, most - len(facts)), now)
        if more:
            return Portion(tuple(facts), mark, True)
        if run.ended is None:
            break
        if mark.file.ignored:
            facts.append(Progress(IGNORED, now, mark.run, 1, {"lines": mark.file.ignored}))
        facts.append(_of_machine(VM_DESTROYED, run.ended, mark, run))
        mark = Mark(mark.run + 1, facts=mark.facts)
    return Portion(tuple(facts), mark)


def _tell(facts: list[Progress], run: Run, mark: Mark, most: int, now: float) -> tuple[Mark, bool]:
    """Add what the trainer of a run tells; whether there is more."""
    if mark.is_full:
        return mark, False
    known, ended = Progress("", now, mark.run), run.ended is not None
    # One more than are taken is read, since that there is one is told.
    room = MOST_FACTS - mark.facts
    told = progress_file.read(run.file, mark.file, known, min(most, room + 1), ended)
    facts += told.facts[:room]
    if told.mark.ignored and not mark.file.ignored:
        facts.append(Progress(IGNORED, now, mark.run, 0, {"first": told.mark.first}))
    mark = replace(mark, file=told.mark, facts=mark.facts + len(told.facts))
    if mark.is_full:
        facts.append(Progress(DROPPED, now, mark.run, 0, {"after": MOST_FACTS}))
    return mark, told.more and not mark.is_full


def _of_machine(name: str, at: float, mark: Mark, run: Run) -> Progress:
    return Progress(name, at, mark.run, 0, {"trainingVmId": run.machine})
