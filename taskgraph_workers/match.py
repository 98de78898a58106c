"""How a key of a table matches a name: exactly, else as a regular expression, else ``default``.

The rule is Taskgraph's own (``taskgraph.util.attributes.keymatch``), which all of config.yml
follows. It is written again here because ``keymatch`` returns values: which key matched, and so
where a value comes from, could not be told. A property test holds the two together.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping


class Ambiguous(ValueError):
    """Two or more patterns match one name. ``keys`` are the patterns, in the table's order."""

    def __init__(self, name: str, keys: tuple[str, ...]) -> None:
        super().__init__(name, keys)
        self.name = name
        self.keys = keys

    def __str__(self) -> str:
        return f"{' and '.join(map(repr, self.keys))} both match {self.name!r}"


# re keeps 512 patterns and no more; a table that is larger would be compiled anew for every name.
@functools.lru_cache(maxsize=8192)
def _compiled(key: str) -> re.Pattern[str]:
    return re.compile(key + "$")


def matches(pattern: str, name: str) -> bool:
    """Whether one key matches ``name``, exactly or as a regular expression.

    As in Taskgraph the expression is ``pattern`` with ``$`` behind it: whole names, except that in
    ``a|b`` only the last alternative is held to the end.
    """
    return pattern == name or _compiled(pattern).match(name) is not None


def find(keys: Mapping[str, object], name: str) -> tuple[str, ...]:
    """The keys that match ``name``: the exact one, else every pattern, else ``default``.

    >>> find({"gpu": 1, "g.*": 2}, "gpu"), find({"g.*": 2, "default": 3}, "gpx")
    (('gpu',), ('g.*',))
    """
    if name in keys:
        return (name,)
    found = tuple(key for key in keys if _compiled(key).match(name))
    if found:
        return found
    return ("default",) if "default" in keys else ()


def one(keys: Mapping[str, object], name: str) -> str | None:
    """The key that matches ``name``, or None. Raises :class:`Ambiguous` where several do."""
    found = find(keys, name)
    if len(found) > 1:
        raise Ambiguous(name, found)
    return found[0] if found else None


def any_matches(patterns: Iterable[str], name: str) -> bool:
    """Whether any of some patterns matches ``name``."""
    return any(matches(pattern, name) for pattern in patterns)
