"""What is to be launched, and how large that is: the values between reading, sizing and script.

All of them are frozen. ``merlin/`` and ``cluster.py`` make an :class:`Ask`; ``size/`` makes a
:class:`Sizing` out of it and a :class:`~taskgraph_workers.machines.Node`; ``layout.py`` places it;
``script.py`` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from taskgraph_workers.errors import Problem, WorkersError
from taskgraph_workers.machines import Header

# --- The codes of problems: see errors.Problem --------------------------------------------------

#: Merlin never starts a group of workers, or may leave it out. ``names``: the group.
NEVER_STARTS, MAY_NOT_START = "never-starts", "may-not-start"
#: Steps never run. ``names``: these; none: no step at all.
NEVER_RUNS = "never-runs"
#: Those of problems that keep something from running.
NEVER = frozenset({NEVER_STARTS, MAY_NOT_START, NEVER_RUNS})
#: An option of the command line mends it, with which its hint begins.
OPTION = "option"
#: The message goes on from the key that it is about, as in "must be a list".
OF_KEY = "of-key"


#: No machine has more nodes (Fugaku has 158,976), and so many workers can't be told apart any more.
MOST = 200_000


class LaunchError(WorkersError):
    """What is asked can't be launched as it is said."""


class Demand(NamedTuple):
    """What one task takes while it runs: ``nodes`` different nodes, and the rest on each of them.

    ``launcher`` says that the task itself starts its processes on the nodes (``srun``, ``flux
    run``); without one it runs inside its worker, on one node. ``why`` is how the numbers came
    about, as a sentence. ``written_nodes`` is how many nodes somebody wrote down, launcher or not;
    0 where nobody did. ``says_nodes``: each of its launches has a flag for that, so that none is
    left to what the launcher makes of the others. ``whole``: nothing else may be on its nodes,
    however large these are.
    """

    step: str
    nodes: int = 1
    cores: int = 1
    gpus: int = 0
    memory_mib: int = 0
    launcher: bool = True
    walltime_s: int | None = None
    written_nodes: int = 0
    says_nodes: bool = False
    whole: bool = False
    why: str = ""
    line: int = 0


class WorkerGroup(NamedTuple):
    """Identical workers: ``number`` of them, each of which runs one task at a time.

    ``demands`` are those of every step that they may run, since they serve ``queues``, not steps;
    ``unread`` are the steps of which nobody can tell what they take, so that they have no demand;
    ``named`` are the steps that the user wrote. ``command`` is a line for bash that becomes one
    worker, with ``$WORKER_NAME`` for its unique name. ``why`` is where the number came from.
    ``env`` holds values, as a configuration says them: text, or a ``Detect``. ``tried`` are more
    of the latter, which a worker goes without where the machine doesn't tell them.
    """

    name: str
    number: int
    demands: tuple[Demand, ...]
    command: str
    named: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    env: Mapping[str, object] = {}
    tried: Mapping[str, object] = {}
    why: str = ""
    line: int = 0

    @property
    def holds(self) -> bool:
        """Whether cores and GPUs are bound to each worker, since its tasks run inside of it.

        Where no step of it has a size there is nothing to hold.
        """
        return bool(self.demands) and not any(demand.launcher for demand in self.demands)


class Stage(NamedTuple):
    """Tasks that can exist at the same time: how many of each step, at most.

    None for a step whose tasks nobody can count. A step that is not here has none in this stage;
    one that is in no stage at all may have any number at any time.
    """

    tasks: Mapping[str, int | None]


class Ask(NamedTuple):
    """All that a spec, or a cluster, says of one allocation.

    ``header`` is what it says of the job's; options replace that. ``scheduler`` is the one it
    names, or None. ``others`` names the groups that belong to another
    allocation. ``stages`` are empty where nobody can tell which tasks there will be. ``until`` is a
    shell command that returns once the work is done, if there is one. ``corrected`` is the spec's
    text as it should be, where Merlin would do something else than it says.
    """

    title: str
    groups: tuple[WorkerGroup, ...]
    header: Header = Header()
    scheduler: str | None = None
    setup: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()
    others: tuple[str, ...] = ()
    until: str | None = None
    corrected: str | None = None
    notes: tuple[Problem, ...] = ()
    file: str = ""


#: The ways to size, as ``--mode`` and the JSON output name them.
MODES = ("exclusive", "packed", "certain", "useful")


class Size(NamedTuple):
    """One answer: how many nodes, whether that is the smallest that will do, and why.

    ``unread`` are steps that count for nothing in it, since nobody can tell what they take: with
    them it may take more nodes. ``cut_short``: so was the search for fewer, as ``why`` says.
    """

    nodes: int
    exact: bool = True
    why: tuple[str, ...] = ()
    cut_short: bool = False
    unread: tuple[str, ...] = ()


class Sizing(NamedTuple):
    """Every answer (None where it can't be told), and the one that was taken.

    ``mode`` is one of :data:`MODES`, or ``given`` where the user wrote the nodes himself.
    """

    mode: str
    nodes: int
    sizes: Mapping[str, Size | None]
    notes: tuple[Problem, ...] = ()


class Share(NamedTuple):
    """What one task of one worker uses of one node: which cores and which GPUs, by index."""

    group: str
    worker: int
    step: str
    cores: tuple[int, ...]
    gpus: tuple[int, ...] = ()
    memory_mib: int = 0


class NodeLayout(NamedTuple):
    """One node: the workers that live there (group, index), and the shares of tasks on it."""

    workers: tuple[tuple[str, int], ...] = ()
    shares: tuple[Share, ...] = ()


class Layout(NamedTuple):
    """Where every worker is, and where its largest task would run; node by node.

    ``fits`` is False where the nodes are too few for all tasks at once: shares are those that fit.
    """

    nodes: tuple[NodeLayout, ...]
    fits: bool = True

    def per_node(self, group: str) -> tuple[int, ...]:
        """How many workers of a group are on each node."""
        return tuple(sum(name == group for name, _ in node.workers) for node in self.nodes)
