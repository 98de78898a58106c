"""Batch schedulers, one file each, found by name.

Each file holds one object, ``SCHEDULER``. Others add theirs by an entry point of the group
``taskgraph_workers.schedulers`` that leads to an object with all of
:class:`~taskgraph_workers.schedulers.base.Scheduler`; it is looked up only for a name that is none
of ours.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Callable

from taskgraph_workers.offered import load, offered

if TYPE_CHECKING:
    from taskgraph_workers.schedulers.base import Answer, Command, Scheduler

#: Our own, in the order in which :func:`native` asks for them.
NAMES = ("slurm", "lsf", "pbs", "flux")

#: Where others register theirs.
GROUP = "taskgraph_workers.schedulers"

#: What tells that a machine has a scheduler: a command, and what its answer looks like. Names alone
#: won't do: Grid Engine has a ``qsub`` too, Flux machines have wrappers named ``sbatch`` and
#: ``bsub``, and Slurm's clients may be installed without a cluster (then ``sbatch`` fails).
PROBES = {
    "slurm": (("sbatch", "--version"), r"^slurm\S* \d"),
    "lsf": (("bsub", "-V"), "LSF"),
    "pbs": (("qsub", "--version"), "pbs_version"),
    "flux": (("flux", "getattr", "size"), r"^\d"),
}
_PROBE_TIMEOUT_S = 3.0


def find(name: str) -> Scheduler:
    """The scheduler of this name.

    :raises SchedulerError: where nobody has one, with what there is.
    """
    if name in NAMES:
        scheduler: Scheduler = importlib.import_module(f"{__name__}.{name}").SCHEDULER
        return scheduler
    return _foreign(name)


def names() -> tuple[str, ...]:
    """Every name that leads to a scheduler, whether it can be loaded or not: ours, then others'."""
    return tuple(dict.fromkeys((*NAMES, *(point.name for point in offered(GROUP)))))


def _foreign(name: str) -> Scheduler:
    from taskgraph_workers.errors import Problem, did_you_mean
    from taskgraph_workers.schedulers.base import SchedulerError

    points = {point.name: point for point in offered(GROUP)}
    if name not in points:
        hint = did_you_mean(name, (*NAMES, *points))
        raise SchedulerError(Problem(f"there is no scheduler {name!r}", hint=hint))
    scheduler: Scheduler = load("scheduler", points[name], error=SchedulerError)
    return scheduler


def native(
    environ: Mapping[str, str] | None = None,
    ask: Callable[[Command], Answer] | None = None,
) -> str | None:
    """The name of the scheduler that this machine has, or None.

    Inside a Flux instance (``FLUX_URI``) that is Flux, whatever it was started by. Otherwise the
    first of :data:`NAMES` whose command is there and gives the answer it should, which takes some
    milliseconds. Slurm comes before PBS: Debian's ``slurm-wlm-torque`` puts a ``qsub`` on Slurm
    machines. ``ask`` runs a command; a test may give its own.
    """
    environ = os.environ if environ is None else environ
    path = environ.get("PATH")
    if environ.get("FLUX_URI") and shutil.which("flux", path=path):
        return "flux"
    for name in NAMES:
        argv, pattern = PROBES[name]
        program = shutil.which(argv[0], path=path)
        if program and _says((program, *argv[1:]), pattern, ask or _ask(environ)):
            return name
    return None


def _ask(environ: Mapping[str, str]) -> Callable[[Command], Answer]:
    from taskgraph_workers.schedulers.run import run

    return lambda command: run(command, _PROBE_TIMEOUT_S, environ)


def _says(argv: tuple[str, ...], pattern: str, ask: Callable[[Command], Answer]) -> bool:
    from taskgraph_workers.schedulers.base import Command

    answer = ask(Command(argv))
    said = answer.stdout + answer.stderr
    return answer.exit_code == 0 and re.search(pattern, said, re.MULTILINE) is not None
