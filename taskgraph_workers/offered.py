"""What other installed packages offer, by entry points."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from taskgraph_workers.errors import Problem, WorkersError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def offered(group: str) -> list[EntryPoint]:
    """The entry points of a group, none of them loaded."""
    from importlib.metadata import entry_points

    if sys.version_info >= (3, 10):
        return list(entry_points(group=group))
    return list(entry_points().get(group, ()))


def load(
    kind: str,
    point: EntryPoint,
    *given: Any,
    error: type[WorkersError] = WorkersError,
    shown: str = "",
) -> Any:
    """What an entry point leads to, called with what is ``given``, if anything is.

    It is somebody else's code: what goes wrong in it is an ``error``, with whose it is. Where it
    was given a secret, ``shown`` is what may be shown of that, and its own words are left out.
    """
    try:
        found = point.load()
        return found(*given) if given else found
    except Exception as broken:
        why = f"{type(broken).__name__}, for {shown}" if shown else broken
        what = f"{kind} {point.name!r} ({point.value}) can't be loaded: {why}"
        raise error(Problem(what)) from broken
