"""From worker groups to an allocation: how many nodes, by every way to count."""

from taskgraph_workers.launch.size.sizing import size

__all__ = ["size"]
