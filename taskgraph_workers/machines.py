"""Where workers are launched: values of :mod:`taskgraph_workers.model` that load by themselves.

Named tuples, as many values of ``launch`` are: such a class is made several times as fast as a
dataclass, and the command makes some seventy of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from taskgraph_workers.errors import Path


class Node(NamedTuple):
    """What one node has; None where that is not said."""

    cores: int | None = None
    gpus: int | None = None
    memory_mib: int | None = None


class Header(NamedTuple):
    """What somebody says of a job's header; None where he doesn't. ``directives`` are verbatim."""

    name: str | None = None
    nodes: int | None = None
    output: str | None = None
    queue: str | None = None
    bank: str | None = None
    walltime_s: int | None = None
    reservation: str | None = None
    qos: str | None = None
    constraint: str | None = None
    directives: tuple[str, ...] = ()


class Group(NamedTuple):
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
    env: Mapping[str, Any] = {}


class Cluster(NamedTuple):
    """A scheduler with nodes, what a job's header says there, and what workers to launch.

    ``setup`` are shell lines to run first. ``margin_s`` before the walltime workers are asked to
    end; ``requeue`` is how often the job may then go back into its queue.
    """

    name: str
    scheduler: str
    path: Path = ()
    node: Node | None = None
    header: Header = Header()
    margin_s: int | None = None
    requeue: int = 0
    setup: tuple[str, ...] = ()
    groups: Mapping[str, Group] = {}
