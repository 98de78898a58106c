"""Which steps each group of workers really runs, and which groups Merlin never starts.

Merlin's workers serve queues, not steps (``study/celeryadapter.py``): a group takes the tasks of
every step whose queue is that of one of its own steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from taskgraph_workers.errors import Path, did_you_mean
from taskgraph_workers.launch.merlin.model import Spec, Step, Worker
from taskgraph_workers.launch.merlin.notes import WORKERS, Notes

#: The group that Merlin adds for steps that no worker names.
DEFAULT = "default_worker"


@dataclass(frozen=True)
class Group:
    """One entry of ``workers`` and what it comes to.

    ``named`` are the steps that it names, ``queues`` theirs (without Merlin's prefix), and
    ``steps`` all whose tasks it takes. ``implied`` tells that Merlin adds it.
    """

    worker: Worker
    named: tuple[Step, ...]
    queues: tuple[str, ...]
    steps: tuple[Step, ...]
    implied: bool = False

    @property
    def name(self) -> str:
        """The worker's name."""
        return self.worker.name

    @property
    def path(self) -> Path:
        """Where it stands in the spec."""
        return (*WORKERS, self.name)


def groups(spec: Spec, notes: Notes) -> tuple[Group, ...]:
    """Every group of a spec that serves a queue, in the order in which Merlin starts them."""
    found = [_group(spec, worker, notes) for worker in _workers(spec, notes)]
    return tuple(group for group in found if group is not None)


def _workers(spec: Spec, notes: Notes) -> Iterable[Worker]:
    """The workers that are written, and ``default_worker`` where Merlin adds it.

    ``spec/specification.py``, process_spec_defaults: it takes what nobody names, and replaces a
    worker of the same name that somebody wrote.
    """
    if spec.workers is None:
        return [Worker(DEFAULT, line=spec.workers_line)]
    named = {step for worker in spec.workers for step in worker.steps}
    left = () if "all" in named else tuple(s.name for s in spec.steps if s.name not in named)
    if not left:
        return spec.workers
    default = Worker(DEFAULT, steps=left, line=spec.workers_line)
    own = [worker for worker in spec.workers if worker.name == DEFAULT]
    if own:
        what = f"Merlin replaces {DEFAULT!r} by its own, which serves {', '.join(left)} alone"
        notes.warn(what, (*WORKERS, DEFAULT), own[0].line, "give it another name")
        return [default if worker.name == DEFAULT else worker for worker in spec.workers]
    return [*spec.workers, default]


def _group(spec: Spec, worker: Worker, notes: Notes) -> Group | None:
    path = (*WORKERS, worker.name)
    line = worker.lines.get("steps", worker.line)
    known = {step.name: step for step in spec.steps}
    everything = worker.steps[:1] == ("all",)
    names = tuple(known) if everything else worker.steps
    for name in names:
        if name == "all":
            what = "Merlin takes 'all' for every step only where it comes first"
            notes.error(what, (*path, "steps"), line, "write steps: [all]")
        elif name not in known:
            hint = did_you_mean(name, known)
            notes.error(f"there is no step {name!r}", (*path, "steps"), line, hint)
    named = tuple(known[name] for name in names if name in known)
    if not worker.steps:
        what = f"{worker.name} names no step: it would serve no queue, and Merlin fails"
        notes.warn(what, (*path, "steps"), line, "name its steps, or leave it out")
        return None
    queues = tuple(dict.fromkeys(step.queue for step in named))
    steps = tuple(step for step in spec.steps if step.queue in queues)
    implied = spec.workers is None or worker not in spec.workers
    return Group(worker, named, queues, steps, implied)


@dataclass(frozen=True)
class Clash:
    """A group that Merlin does not start, the one that serves its queue, and these queues."""

    group: Group
    first: Group
    queues: tuple[str, ...]


def starting(
    all_groups: Sequence[Group], overlap: bool
) -> tuple[tuple[Group, ...], tuple[Clash, ...]]:
    """The groups that start, and those that don't.

    Without ``overlap`` a group that shares a queue with one before it is left out
    (``celeryadapter.start_celery_workers``). That is the rule as Merlin means and documents it.
    Measured on 1.13.0, its check compares quoted texts (``'[merlin]_a`` is not ``'[merlin]_a'``),
    and so lets some groups pass that share a part of their queues.
    """
    started: list[Group] = []
    clashes: list[Clash] = []
    for group in all_groups:
        first = next((one for one in started if set(one.queues) & set(group.queues)), None)
        if overlap or first is None:
            started.append(group)
        else:
            shared = tuple(queue for queue in group.queues if queue in first.queues)
            clashes.append(Clash(group, first, shared))
    return tuple(started), tuple(clashes)


def unserved(spec: Spec, started: Iterable[Group]) -> tuple[Step, ...]:
    """The steps whose queue no group serves."""
    served = {queue for group in started for queue in group.queues}
    return tuple(step for step in spec.steps if step.queue not in served)
