"""What a node has, and what a queue allows: said by a person, else asked of the scheduler."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from taskgraph_workers.errors import Problem, counted, did_you_mean
from taskgraph_workers.machines import Node
from taskgraph_workers.units import clock_text, mib_floor, mib_text

if TYPE_CHECKING:
    from taskgraph_workers.launch.model import Demand, WorkerGroup
    from taskgraph_workers.schedulers.base import Kind, Scheduler

#: A scheduler that takes longer to say what nodes it has is gone without.
LOOK_S = 5.0

_KEYS = ("cores", "gpus", "memory")


def parse_node(text: str) -> Node:
    """``--node``. Raises ValueError, with a sentence.

    >>> parse_node("cores=36,gpus=4,memory=1GiB")
    Node(cores=36, gpus=4, memory_mib=1024)
    """
    found: dict[str, int] = {}
    for part in filter(None, text.replace(" ", "").split(",")):
        key, _, value = part.partition("=")
        if key not in _KEYS:
            raise ValueError(f"{part!r} is nothing that a node has; {did_you_mean(key, _KEYS)}")
        if key in found:
            raise ValueError(f"{key} is said twice")
        found[key] = mib_floor(value) if key == "memory" else _count(key, value)
    if not found:
        raise ValueError("say what a node has: cores=36,gpus=4,memory=256GiB")
    return Node(found.get("cores"), found.get("gpus"), found.get("memory"))


def _count(key: str, value: str) -> int:
    if not value.isascii() or not value.isdigit() or len(value) > 9:
        raise ValueError(f"{key} must be a whole number, not {value!r}")
    return int(value)


def node_text(node: Node | None) -> str:
    """What a node has, as people say it.

    >>> node_text(Node(36, 1)), node_text(None)
    ('36 cores, 1 GPU', 'unknown')
    """
    if node is None:
        return "unknown"
    parts = [] if node.cores is None else [counted(node.cores, "core")]
    parts += [] if node.gpus is None else [counted(node.gpus, "GPU")]
    parts += [] if node.memory_mib is None else [f"{mib_text(node.memory_mib)} of memory"]
    return ", ".join(parts)


# --- asked ----------------------------------------------------------------------------------


class Found(NamedTuple):
    """The kinds of node that a job can get, and the name of its queue.

    ``unknown`` is what is wrong with a queue that the scheduler doesn't have.
    """

    kinds: tuple[Kind, ...] = ()
    queue: str = ""
    unknown: tuple[Problem, ...] = ()

    @property
    def where(self) -> str:
        """Whose nodes these are, for a message."""
        return f"queue {self.queue}" if self.queue else "the scheduler"


def look(scheduler: Scheduler, queue: str | None) -> Found:
    """What the scheduler says of its nodes; nothing where it isn't here, or doesn't answer."""
    command = scheduler.look()
    if command is None or shutil.which(scheduler.tool) is None:
        return Found()
    from taskgraph_workers.schedulers.run import run

    kinds = scheduler.kinds(run(command, LOOK_S))
    if queue is not None:
        # Slurm takes several, and starts a job in the first one that has room.
        asked = queue.split(",")
        here = [kind for kind in kinds if kind.queue in asked or not kind.queue]
        if kinds and not here:
            hint = did_you_mean(queue, [kind.queue for kind in kinds])
            return Found(unknown=(Problem(f"{scheduler.name} has no queue {queue!r}", hint=hint),))
    else:
        here = [kind for kind in kinds if kind.default] or list(kinds)
    names = {kind.queue for kind in here}
    return Found(tuple(here), names.pop() if len(names) == 1 else "")


class Chosen(NamedTuple):
    """What one node is taken to have, who says so, and what has to be said about it."""

    node: Node | None
    source: str = ""
    notes: tuple[Problem, ...] = ()


def choose(found: Found, groups: Sequence[WorkerGroup]) -> Chosen:
    """The smallest kind of node on which every task fits, else the smallest."""
    kinds = sorted({_node(kind): kind for kind in found.kinds}.values(), key=_size)
    if not kinds:
        return Chosen(None)
    demands = [demand for group in groups for demand in group.demands]
    fitting = [kind for kind in kinds if all(_fits(demand, kind) for demand in demands)]
    kind = (fitting or kinds)[0]
    notes: tuple[Problem, ...] = ()
    if len(kinds) > 1:
        from taskgraph_workers.launch.model import OPTION

        have = "; ".join(node_text(_node(each)) for each in kinds)
        taken = node_text(_node(kind))
        what = f"nodes of {found.where} differ ({have}): sized for those with {taken}"
        hint = "--node says which are meant"
        notes = (Problem(what, hint=hint, severity="warning", code=OPTION),)
    return Chosen(_node(kind), found.where, notes)


def _node(kind: Kind) -> Node:
    return Node(kind.cores, kind.gpus, kind.memory_mib)


def _size(kind: Kind) -> tuple[int, int, int]:
    return kind.cores, kind.gpus, kind.memory_mib or 0


def _fits(demand: Demand, kind: Kind) -> bool:
    memory = kind.memory_mib is None or demand.memory_mib <= kind.memory_mib
    return demand.cores <= kind.cores and demand.gpus <= kind.gpus and memory


def limits(found: Found, walltime_s: int | None, nodes: int) -> tuple[Problem, ...]:
    """Why a job would wait for ever: Slurm takes those that its queue never starts."""
    return tuple(_limits(found, walltime_s, nodes)) if found.kinds else found.unknown


def _limits(found: Found, walltime_s: int | None, nodes: int) -> Iterable[Problem]:
    most = [kind.limit_s for kind in found.kinds]
    longest = max((each for each in most if each is not None), default=None)
    if walltime_s is not None and None not in most and longest and walltime_s > longest:
        asked = f"a walltime of {clock_text(walltime_s)}"
        what = f"{asked} is over the limit of {found.where}, {clock_text(longest)}"
        yield Problem(f"{what}: the job would never start", hint="--walltime, or another --queue")
    there = sum(kind.nodes for kind in found.kinds)
    if nodes > there:
        what = f"{nodes} nodes are more than {found.where} has, {there}: the job would never start"
        yield Problem(what, hint="--mode packed, fewer workers, or another --queue")
