"""The names that a configuration can speak of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from taskgraph_workers import match
from taskgraph_workers.model import BUILT_IN, POOL_FIELDS

#: SCM levels of Taskcluster.
LEVELS = ("1", "2", "3")

_REGEX_CHARACTERS = set("\\*+?[](){}|^$")


@dataclass(frozen=True)
class Known:
    """The names that a configuration can speak of.

    ``aliases`` may be patterns; ``names`` are names only, those of aliases among them. ``placed``
    are those of an entry that leads somewhere: the others may be misspelled, and are never offered
    to those who misspell one. ``kinds`` is None where they are unknown.
    """

    aliases: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    profiles: frozenset[str] = frozenset()
    kinds: frozenset[str] | None = None
    placed: frozenset[str] = frozenset()

    @property
    def offered(self) -> frozenset[str]:
        """What somebody may have meant who wrote a name that nobody knows."""
        return self.placed.union(self.aliases)

    def is_name(self, name: str) -> bool:
        """Whether an alias matches the name, or an entry of a profile is for exactly it.

        What an entry sends names on to has to be such a name. That is stricter than
        :func:`taskgraph_workers.resolve.is_known`, which says what tasks may ask for: were the
        patterns of profiles counted here, most misspelled names would be names.
        """
        if name in self.names or name in BUILT_IN:
            return True
        return any(fits(alias, name) for alias in self.aliases)


#: What is known where nothing is.
NOTHING = Known()


def fits(pattern: str, name: str) -> bool:
    """Whether a key matches a name; a key that is no regular expression matches only itself."""
    try:
        return match.matches(pattern, name)
    except (re.error, OverflowError, RecursionError):
        return False


def is_plain(key: object) -> bool:
    """Whether a key of a table is a name, and no pattern and no default."""
    return isinstance(key, str) and key != "default" and not _REGEX_CHARACTERS & set(key)


def with_placed(known: Known, tables: Iterable[Mapping[Any, Any]]) -> Known:
    """What is known, with those names of some raw tables of entries that lead somewhere."""
    placed = (
        name
        for table in tables
        for name, entry in table.items()
        if is_name_key(name) and _leads(entry, known, name)
    )
    return replace(known, placed=known.placed.union(placed))


def is_name_key(key: object) -> bool:
    """Whether a key, as it is written, can be meant as a name: plain, and without blanks."""
    return isinstance(key, str) and is_plain(key) and key != "" and key == key.strip()


def _leads(entry: Any, known: Known, name: str) -> bool:
    """Whether an entry, as it is written, seems to lead to some other name, or to a pool."""
    if isinstance(entry, Mapping):
        below = [each for key, each in entry.items() if str(key)[:3] == "by-" or key == "to"]
        inside = [each for by in below if isinstance(by, Mapping) for each in by.values()]
        return any(field in entry for field in POOL_FIELDS) or any(
            _leads(each, known, name) for each in (*below, *inside)
        )
    return isinstance(entry, str) and entry != name and ("/" in entry or known.is_name(entry))
