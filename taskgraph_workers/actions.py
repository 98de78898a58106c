"""For a project's own actions: the profiles as JSON Schema, so that no project lists them twice.

::

    @register_callback_action(
        ...,
        schema=lambda graph_config: {
            "type": "object",
            "properties": {"workers": profiles_schema(graph_config)},
        },
    )
"""

from __future__ import annotations

from taskgraph_workers.graph.profiles import profiles_schema

__all__ = ["profiles_schema"]
