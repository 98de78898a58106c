"""Which steps each group of workers really runs, and which groups Merlin never starts.

Merlin's workers serve queues, not steps (``study/celeryadapter.py``): a group takes the tasks of
every step whose queue is that of one of its own steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from taskgraph_workers.errors import Path
from taskgraph_workers.launch.merlin.args import WorkerArgs, parse
from taskgraph_workers.launch.merlin.model import Spec, Step, Worker
from taskgraph_workers.launch.merlin.notes import WORKERS, Notes

#: The group that Merlin adds for steps that no worker names.
DEFAULT = "default_worker"


class Group(NamedTuple):
    """One entry of ``workers`` and what it comes to.

    ``args`` are the worker's, read. ``named`` are the steps that it names, ``queues`` theirs
    (without Merlin's prefix), and ``steps`` all whose tasks it takes. ``implied`` tells that Merlin
    adds it.
    """

    worker: Worker
    args: WorkerArgs
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


def groups(spec: Spec, environ: Mapping[str, str], notes: Notes) -> tuple[Group, ...]:
    """Every group of a spec, in the order in which Merlin starts them.

    ``environ`` is what ``$NAME`` stands for where arguments need a number.
    """
    return tuple(_group(spec, worker, environ) for worker in _workers(spec, notes))


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


def _group(spec: Spec, worker: Worker, environ: Mapping[str, str]) -> Group:
    everything = "all" in worker.steps
    named = tuple(step for step in spec.steps if everything or step.name in worker.steps)
    queues = tuple(dict.fromkeys(step.queue for step in named))
    steps = tuple(step for step in spec.steps if step.queue in queues)
    implied = spec.workers is None or worker not in spec.workers
    return Group(worker, parse(worker.args, environ), named, queues, steps, implied)


class Clash(NamedTuple):
    """A group that takes from queues of one before it; ``starts`` tells whether it does start."""

    group: Group
    first: Group
    queues: tuple[str, ...]
    starts: bool


def starting(
    all_groups: Sequence[Group], overlap: bool
) -> tuple[tuple[Group, ...], tuple[Clash, ...]]:
    """The groups that start, and those that share a queue with one before them.

    Without ``overlap`` Merlin means to leave out a group that does, if both may be on one machine
    (``celeryadapter.start_celery_workers``). Measured on 1.13.0, its check compares quoted texts
    (``'[merlin]_a`` is not ``'[merlin]_a'``): it is sure to leave out a group with the same queues
    as another, and starts most of those that share only a part. So a group that has a queue which
    nobody else serves starts here, too: without it the study would wait for ever.
    """
    started: list[Group] = []
    clashes: list[Clash] = []
    for group in all_groups:
        before = [] if overlap else [one for one in started if _meet(one, group)]
        served = {queue for one in before for queue in one.queues}
        starts = not served.issuperset(group.queues)
        if before:
            shared = tuple(queue for queue in group.queues if queue in before[0].queues)
            clashes.append(Clash(group, before[0], shared, starts))
        if starts or not before:
            started.append(group)
    return tuple(started), tuple(clashes)


def _meet(one: Group, other: Group) -> bool:
    """Whether two groups would take from one queue on one machine."""
    places = one.worker.machines, other.worker.machines
    apart = all(places) and set(places[0]).isdisjoint(places[1])
    return not apart and not set(one.queues).isdisjoint(other.queues)


def unserved(spec: Spec, started: Iterable[Group]) -> tuple[Step, ...]:
    """The steps whose queue no group serves."""
    served = {queue for group in started for queue in group.queues}
    return tuple(step for step in spec.steps if step.queue not in served)
