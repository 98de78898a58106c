"""Where workers are launched: values of :mod:`taskgraph_workers.model` that load by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from taskgraph_workers.errors import Path


@dataclass(frozen=True)
class Node:
    """What one node has; None where that is not said."""

    cores: int | None = None
    gpus: int | None = None
    memory_mib: int | None = None


@dataclass(frozen=True)
class Group:
    """Identical workers to launch, and what each of them needs.

    ``number`` is None for ``auto``. ``command`` is a line for a shell, or the words of one.
    ``env`` is each worker's, in place of what placements in ``pool`` say; None leaves one out.
    """

    name: str
    command: str | tuple[str, ...]
    path: Path = ()
    pool: str | None = None
    number: int | None = 1
    cores: int | None = None
    gpus: int | None = None
    memory_mib: int | None = None
    env: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cluster:
    """A scheduler with nodes, what a job's header says there, and what workers to launch.

    ``setup`` are shell lines to run first, ``directives`` the site's own header lines, verbatim.
    ``margin_s`` before the walltime workers are asked to end; ``requeue`` is how often the job may
    then go back into its queue.
    """

    name: str
    scheduler: str
    path: Path = ()
    node: Node | None = None
    queue: str | None = None
    bank: str | None = None
    walltime_s: int | None = None
    margin_s: int | None = None
    requeue: int = 0
    job_name: str | None = None
    output: str | None = None
    reservation: str | None = None
    qos: str | None = None
    constraint: str | None = None
    setup: tuple[str, ...] = ()
    directives: tuple[str, ...] = ()
    groups: Mapping[str, Group] = field(default_factory=dict)
