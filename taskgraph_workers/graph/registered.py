"""The configuration as a project's ``register()`` left it, for every graph of a process.

Taskgraph calls ``register()`` once per process, so what a project changes in its configuration
there (aliases, most often) is in the first ``GraphConfig`` alone. A second graph would be another
project's: two graphs to compare, and those of an action, would differ by what nobody chose.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from taskgraph_workers.graph.names import project_aliases

# By root, of which a process has one, as in Taskgraph. Its own object and no copy: the project may
# still change it, after us.
_registered: dict[str, Any] = {}


def remember(graph_config: Any) -> None:
    """Note that this ``GraphConfig`` is the one that ``register()`` was called with."""
    _registered[graph_config.root_dir] = graph_config


def as_registered(graph_config: Any) -> None:
    """Make a ``GraphConfig`` say what the registered one of its root says, if there is one."""
    first = _registered.get(graph_config.root_dir)
    if first is None or first is graph_config:
        return
    said = deepcopy(first._config)
    workers = said.get("workers")
    if workers and workers.get("aliases"):
        workers["aliases"] = project_aliases(workers["aliases"])
    graph_config._config.clear()
    graph_config._config.update(said)
