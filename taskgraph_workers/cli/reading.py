"""The configuration that a command is about, read without Taskgraph."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import options

if TYPE_CHECKING:
    from taskgraph_workers.config.load import Read
    from taskgraph_workers.model import Config


@dataclass(frozen=True)
class Project:
    """A file that was read, and what of it placement needs besides the configuration.

    ``kinds`` are None where there is no Taskgraph project around it.
    """

    read: Read
    trust_domain: str
    kinds: tuple[str, ...] | None

    @property
    def config(self) -> Config:
        """The configuration. Raises WorkersError with every problem where it has errors."""
        from taskgraph_workers.errors import ConfigError

        if self.read.config is None:
            raise ConfigError(*self.read.problems)
        return self.read.config


def project(args: argparse.Namespace) -> Project:
    """What ``--config``, else ``--root``, names. Raises WorkersError where it can't be read."""
    from taskgraph_workers.config.load import read_file, without_key
    from taskgraph_workers.errors import ConfigError

    alone = getattr(args, "config", None)
    if alone is not None:
        read = read_file(alone)
        if not read.found:
            raise ConfigError(without_key(read))
        return Project(read, _trust_domain(read.data), None)
    root = options.root_of(args)
    kinds = _kinds(os.path.join(root, "kinds"))
    read = read_file(os.path.join(root, "config.yml"), kinds)
    return Project(read, _trust_domain(read.data), kinds)


def _trust_domain(data: Mapping[Any, Any]) -> str:
    said = data.get("trust-domain")
    return said if isinstance(said, str) else "{trust-domain}"


def _kinds(folder: str) -> tuple[str, ...]:
    """As :func:`taskgraph_workers.graph.run.kinds_of`, which wants a project loaded."""
    try:
        names = os.listdir(folder)
    except OSError:
        return ()
    return tuple(n for n in sorted(names) if os.path.exists(os.path.join(folder, n, "kind.yml")))
