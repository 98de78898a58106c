"""``workers-config``: from YAML to a frozen :class:`~taskgraph_workers.model.Config`, once."""

from __future__ import annotations

from taskgraph_workers.config.load import check, load, load_file, located, read_file
from taskgraph_workers.config.selection import read_selection

__all__ = ["check", "load", "load_file", "located", "read_file", "read_selection"]
