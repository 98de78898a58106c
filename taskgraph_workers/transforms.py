"""The public transform, for a kind.yml or a project's own transform sequence.

``register()`` already reaches every kind that ends in Taskgraph's ``run`` and ``task`` transforms.
A kind that does not can name ``taskgraph_workers.transforms:transforms`` in its ``transforms``.
Both may be used together: a task that was placed is placed the same way again.
"""

from __future__ import annotations

from taskgraph_workers.graph.transforms import place as transforms

__all__ = ["transforms"]
