"""The public decision hook, for a project to name or to call.

::

    taskgraph:
        decision-parameters: taskgraph_workers.parameters:decision_parameters
"""

from __future__ import annotations

from taskgraph_workers.graph.parameters import decision_parameters

__all__ = ["decision_parameters"]
