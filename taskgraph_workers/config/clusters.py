"""``workers-config.clusters``: where workers are launched, and how many of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Callable

from taskgraph_workers import units
from taskgraph_workers.config.faults import Fault, said
from taskgraph_workers.config.forms import Either, Shape, about, formed, takes
from taskgraph_workers.config.shapes import (
    count,
    duration,
    line,
    list_of,
    section,
    size,
    some_of,
    table,
)
from taskgraph_workers.errors import Path, did_you_mean

#: The schedulers that a cluster may have.
SCHEDULERS = ("slurm", "flux", "lsf", "pbs")

_POOL = re.compile(r"[^\s/]+/[^\s/]+")


@dataclass(frozen=True)
class Node:
    """What one node has; None where that is not said. Memory is in MiB."""

    cores: int | None = None
    gpus: int | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Group:
    """Identical workers to launch, and what each of them needs; memory is in MiB.

    ``number`` is None for ``auto``. ``command`` is a line for a shell, or the words of one.
    """

    name: str
    command: str | tuple[str, ...]
    path: Path = ()
    pool: str | None = None
    number: int | None = 1
    cores: int | None = None
    gpus: int | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Cluster:
    """A scheduler with nodes, what a job's header says there, and what workers to launch.

    ``setup`` are shell lines to run first, ``directives`` the site's own header lines, verbatim.
    """

    name: str
    scheduler: str
    path: Path = ()
    node: Node | None = None
    queue: str | None = None
    bank: str | None = None
    walltime_s: int | None = None
    setup: tuple[str, ...] = ()
    directives: tuple[str, ...] = ()
    groups: Mapping[str, Group] = field(default_factory=dict)


def clusters() -> Shape:
    """The shape of ``clusters``: a mapping from names to :class:`Cluster`."""
    node = section(_machine("What a node has", units.mib_floor))
    cluster = section(
        {
            "scheduler": about("The batch scheduler.", _scheduler),
            "node": about("One node.", formed(lambda raw: Node(**node(raw)), Either((node,)))),
            "queue": about("The queue or partition for the job.", line),
            "bank": about("The account that the job is charged to.", line),
            "walltime": about("How long the job may run, such as 90m or 1-00:00:00.", duration),
            "setup": about("Shell lines to run first.", list_of(line)),
            "directives": about("Header lines of the scheduler's own, as they are.", list_of(line)),
            "groups": about("Identical workers to launch, by name.", table(_group(), line)),
        },
        needs=("scheduler",),
        others="a header line of the scheduler's own goes into directives, as it is",
    )
    return table(cluster, line)


def _group() -> Shape:
    return section(
        {
            **_machine("What each worker needs", units.mib_ceil),
            "pool": about("The pool that they claim from: provisioner/worker-type.", pool),
            "number": about("How many, or auto.", _number),
            "command": about("What starts one: a shell line, or its words.", _command),
        },
        needs=("command",),
    )


def _machine(whose: str, to_mib: Callable[[str], int]) -> dict[str, Shape]:
    return {
        "cores": about(f"{whose}: CPU cores.", count()),
        "gpus": about(f"{whose}: GPUs.", count()),
        "memory": about(f"{whose}: memory, such as 64GiB.", size(to_mib)),
    }


def build(name: str, value: Mapping[str, Any], path: Path) -> Cluster:
    """A cluster out of what the shape read at this path."""
    rest = dict(value)
    groups = {
        each: Group(each, path=(*path, "groups", each), **said)
        for each, said in rest.pop("groups", {}).items()
    }
    walltime = rest.pop("walltime", None)
    cluster = Cluster(name, path=path, walltime_s=walltime, **rest)
    return replace(cluster, groups=groups)


@takes(type="string", pattern=r"^[^\s/]+/[^\s/]+$")
def pool(raw: Any) -> str:
    """A pool, ``provisioner/worker-type``."""
    value = line(raw)
    if not _POOL.fullmatch(value):
        raise Fault(f"{value!r} is no pool", "write provisioner/worker-type")
    return value


@takes(enum=list(SCHEDULERS))
def _scheduler(raw: Any) -> str:
    value = line(raw)
    if value not in SCHEDULERS:
        raise Fault(f"there is no scheduler {value!r}", did_you_mean(value, SCHEDULERS))
    return value


@takes(anyOf=[{"type": "integer", "minimum": 1}, {"const": "auto"}])
def _number(raw: Any) -> int | None:
    if raw == "auto":
        return None
    if isinstance(raw, str):
        raise Fault(f"must be a number of workers or auto, not {said(raw)}")
    return int(count(1)(raw))


_words = some_of(line, "must be a command, not an empty list")
_command = formed(
    lambda raw: line(raw) if isinstance(raw, str) else _words(raw), Either((line, _words))
)
