"""``workers-config``: from YAML to a frozen :class:`~taskgraph_workers.model.Config`, once.

A part is loaded when it is asked for: who reads another kind of YAML needs a few of them only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taskgraph_workers.config.load import check, load_file, located, read_file
    from taskgraph_workers.config.selection import read_selection

__all__ = ["check", "load_file", "located", "read_file", "read_selection"]


def __getattr__(name: str) -> Any:
    """What is in ``__all__``, from the part that has it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from taskgraph_workers.config import load, selection

    return getattr(selection if name == "read_selection" else load, name)
