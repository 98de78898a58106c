"""What this project adds to Taskgraph, besides :mod:`taskgraph_workers`."""

from __future__ import annotations

from typing import Any

import taskgraph_workers


def register(graph_config: Any) -> None:
    """Do what ``taskgraph.register`` in config.yml is for, for the plugin and for this project."""
    from training_taskgraph import local, publish, training

    taskgraph_workers.register(graph_config)
    local.register()
    publish.register()
    training.register()
