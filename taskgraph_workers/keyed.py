"""Values that differ by context, and look-ups in tables whose keys are patterns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Callable

from taskgraph_workers import match
from taskgraph_workers.errors import AMBIGUOUS, NO_BRANCH, Path, PlacementError, Problem, listed
from taskgraph_workers.model import KEYED_BY, Context, Keyed


def refused(
    message: str, path: Path, hint: str = "", code: str = "", names: Iterable[str] = ()
) -> PlacementError:
    """An error with one problem."""
    return PlacementError(Problem(message, path, hint, code=code, names=tuple(names)))


def keyed_in(
    raw: Any, by: Collection[str] = KEYED_BY, read: Callable[[Any], Any] = lambda leaf: leaf
) -> Any:
    """A value as Taskgraph's own YAML says it, keyed where it is keyed by one of ``by``.

    ``read`` makes a value of what is not keyed. Our own YAML is held to more: see
    :mod:`taskgraph_workers.config.keyed`.

    >>> keyed_in({"by-level": {3: "a", "default": "b"}})
    Keyed(by='level', choices={'3': 'a', 'default': 'b'})
    """
    key, table = next(iter(raw.items())) if isinstance(raw, Mapping) and len(raw) == 1 else ("", 0)
    if isinstance(table, Mapping) and isinstance(key, str) and key[:3] == "by-" and key[3:] in by:
        return Keyed(key[3:], {str(k): keyed_in(each, by, read) for k, each in table.items()})
    return read(raw)


def pick(value: Any, context: Context, path: Path) -> tuple[Any, Path]:
    """The branch of a keyed value that holds here, and its path.

    As ``taskgraph.util.keyed_by``: exact, else one pattern, else ``default``; keyed values nest.
    Raises :class:`PlacementError` where no branch, or more than one pattern, matches.
    """
    while isinstance(value, Keyed):
        name = context.get(value.by)
        path = (*path, f"by-{value.by}")
        key = "default" if name is None else one(value.choices, name, path)
        if key is None or key not in value.choices:
            what = f"{value.by} {name!r}" if name is not None else f"unknown {value.by}"
            hint = f"there is: {listed(value.choices)}"
            what = f"no branch for {what}, and no default"
            raise refused(what, path, hint, NO_BRANCH, [value.by])
        value, path = value.choices[key], (*path, key)
    return value, path


def pick_within(value: Any, context: Context, path: Path) -> tuple[Any, Path]:
    """As :func:`pick`, and likewise for each value inside, at whatever depth."""
    value, path = pick(value, context, path)
    if isinstance(value, Mapping):
        return {k: pick_within(v, context, (*path, k))[0] for k, v in value.items()}, path
    if isinstance(value, list):
        return [pick_within(v, context, (*path, i))[0] for i, v in enumerate(value)], path
    return value, path


def one(table: Mapping[str, object], name: str, path: Path) -> str | None:
    """The key of a table that matches a name, or None.

    Raises :class:`PlacementError`, which points at ``path``, where several patterns do.
    """
    try:
        return match.one(table, name)
    except match.Ambiguous as clash:
        hint = "write the name itself as a key"
        raise refused(str(clash), path, hint, AMBIGUOUS, clash.keys) from None
