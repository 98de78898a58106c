"""What other installed packages offer, by entry points."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def offered(group: str) -> list[EntryPoint]:
    """The entry points of a group, none of them loaded."""
    from importlib.metadata import entry_points

    if sys.version_info >= (3, 10):
        return list(entry_points(group=group))
    return list(entry_points().get(group, ()))
