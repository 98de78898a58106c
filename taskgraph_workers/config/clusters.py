"""``workers-config.clusters``: where workers are launched, and how many of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from taskgraph_workers import units
from taskgraph_workers.config.faults import Fault, said
from taskgraph_workers.config.shapes import (
    Shape,
    count,
    duration,
    line,
    list_of,
    section,
    size,
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
    size_up = {"cores": count(), "gpus": count()}
    node = section({**size_up, "memory": size(units.mib_floor)})
    group = section(
        {
            **size_up,
            "memory": size(units.mib_ceil),
            "pool": pool,
            "number": _number,
            "command": _command,
        },
        needs=("command",),
    )
    cluster = section(
        {
            "scheduler": _scheduler,
            "node": lambda raw: Node(**node(raw)),
            "queue": line,
            "bank": line,
            "walltime": duration,
            "setup": list_of(line),
            "directives": list_of(line),
            "groups": table(group, line),
        },
        needs=("scheduler",),
        others="a header line of the scheduler's own goes into directives, as it is",
    )
    return table(cluster, line)


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


def pool(raw: Any) -> str:
    """A pool, ``provisioner/worker-type``."""
    value = line(raw)
    if not _POOL.fullmatch(value):
        raise Fault(f"{value!r} is no pool", "write provisioner/worker-type")
    return value


def _scheduler(raw: Any) -> str:
    value = line(raw)
    if value not in SCHEDULERS:
        raise Fault(f"there is no scheduler {value!r}", did_you_mean(value, SCHEDULERS))
    return value


def _number(raw: Any) -> int | None:
    if raw == "auto":
        return None
    if isinstance(raw, str):
        raise Fault(f"must be a number of workers or auto, not {said(raw)}")
    return int(count(1)(raw))


def _command(raw: Any) -> str | tuple[str, ...]:
    if isinstance(raw, str):
        return line(raw)
    words: tuple[str, ...] = list_of(line)(raw)
    if not words:
        raise Fault("must be a command, not an empty list")
    return words
