"""Say once where training runs: the graph, the cluster and the queue obey.

:func:`register` is what a Taskgraph project names in its ``config.yml``::

    taskgraph:
        register: taskgraph_workers:register

A project with a register function of its own calls this one from it.
"""

from __future__ import annotations

from typing import Any

from taskgraph_workers.version import VERSION as __version__

__all__ = ["__version__", "register"]


def register(graph_config: Any) -> None:
    """Put the placement of tasks into Taskgraph (a ``taskgraph.config.GraphConfig`` is given).

    Ends the run with every fault of ``workers-config``, each with its place, if there is any.
    Without a ``workers-config`` nothing changes. Calling it again is harmless.
    """
    from taskgraph_workers.graph.register import register as register_graph

    register_graph(graph_config)
