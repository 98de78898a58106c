"""What a Merlin spec says, with variables replaced and every number read. All of it is frozen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from taskgraph_workers.errors import Problem
from taskgraph_workers.launch.model import Demand
from taskgraph_workers.machines import Header

#: The types of a ``batch`` block that Merlin knows, and the scheduler that each stands for.
SCHEDULERS: Mapping[str, str | None] = {
    "local": None,
    "slurm": "slurm",
    "flux": "flux",
    "lsf": "lsf",
    "lsf-srun": "lsf",
    "pbs": "pbs",
}


class Batch(NamedTuple):
    """A ``batch`` block: that of the spec, or a worker's own, which replaces it whole.

    ``line`` is 0 where there is none. ``other`` are keys that Merlin doesn't know, as written.
    """

    type: str = "local"
    header: Header = Header()
    shell: str | None = None
    flux_path: str | None = None
    flux_start_opts: str | None = None
    launch_pre: str | None = None
    launch_args: str | None = None
    worker_launch: str | None = None
    other: Mapping[str, object] = {}
    line: int = 0

    @property
    def scheduler(self) -> str | None:
        """The scheduler that the type stands for, if any."""
        return SCHEDULERS.get(self.type)


#: What makes a dependency one on all tasks of a step (maestrowf, ALL_COMBOS).
_ALL = re.compile(r"_\*|\*")


def dependency(written: str) -> tuple[str, bool]:
    """The step that an entry of ``depends`` names, and whether it stands for all of its tasks.

    >>> dependency("step_1"), dependency("step_1_*")
    (('step_1', False), ('step_1', True))
    """
    return _ALL.sub("", written), "*" in written


class Step(NamedTuple):
    """A step of ``study``. ``demand`` is None where it could not be read (``notes`` names why).

    ``depends`` is as written (``step_1``, ``step_1_*``). ``parameters`` are the global parameters
    that the step uses, its own or those of steps that it depends on without ``_*``;
    ``samples`` tells whether it runs once for each sample. ``line`` is that of its name.
    """

    name: str
    demand: Demand | None
    queue: str
    depends: tuple[str, ...] = ()
    parameters: frozenset[str] = frozenset()
    samples: bool = False
    line: int = 0
    queue_line: int = 0


class Worker(NamedTuple):
    """An entry of ``merlin.resources.workers``, as written. ``lines`` are those of its keys."""

    name: str
    args: str = ""
    steps: tuple[str, ...] = ("all",)
    nodes: int | None = None
    number: int | None = None
    batch: Batch | None = None
    machines: tuple[str, ...] = ()
    line: int = 0
    lines: Mapping[str, int] = {}


class Spec(NamedTuple):
    """A whole spec.

    ``values`` are the global parameters, each with its ``rows`` values. ``samples`` is how many
    there are: None where the spec doesn't tell, 0 where it has none. ``workers`` are None where
    the spec names none. ``workers_line`` is that of the key ``workers``, or 0.
    """

    file: str
    text: str
    name: str
    batch: Batch
    steps: tuple[Step, ...]
    workers: tuple[Worker, ...] | None
    overlap: bool = False
    values: Mapping[str, tuple[str, ...]] = {}
    samples: int | None = 0
    notes: tuple[Problem, ...] = ()
    workers_line: int = 0

    @property
    def rows(self) -> int:
        """How many combinations of global parameters there are; 1 where there are none."""
        return max(map(len, self.values.values()), default=1)
