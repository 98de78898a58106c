"""The names that a configuration can speak of."""

from __future__ import annotations

import re
from dataclasses import dataclass

from taskgraph_workers import match
from taskgraph_workers.model import BUILT_IN

#: SCM levels of Taskcluster.
LEVELS = ("1", "2", "3")

_REGEX_CHARACTERS = set("\\*+?[](){}|^$")


@dataclass(frozen=True)
class Known:
    """The names that a configuration can speak of.

    ``aliases`` may be patterns; ``names`` are names only, those of aliases among them. ``kinds`` is
    None where they are unknown.
    """

    aliases: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    profiles: frozenset[str] = frozenset()
    kinds: frozenset[str] | None = None

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
