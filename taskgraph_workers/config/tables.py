"""The tables of entries in a configuration: where they stand, and quick look-ups in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from taskgraph_workers.config.contexts import selections
from taskgraph_workers.config.names import fits, is_plain
from taskgraph_workers.errors import Path, Problem
from taskgraph_workers.model import Config, Layer


def translated(problem: Problem, config: Config) -> Problem:
    """A problem of a placement, with the path of a table instead of the name of its layer."""
    for table, (path, _) in layer_tables(config).items():
        if problem.path[:1] == (table,):
            return problem._replace(path=(*path, *problem.path[1:]))
    return problem


def layer_tables(config: Config) -> dict[str, tuple[Path, Mapping[str, Any]]]:
    """Every table of entries that may move a name, by the name of its layer."""
    tables: dict[str, tuple[Path, Mapping[str, Any]]] = {
        each.layer.source: ((*each.path, "workers"), each.layer.entries)
        for each in config.profiles.values()
    }
    for said in selections(config):
        if said.overrides is not None:
            tables[said.source] = ((*said.path, "workers"), said.overrides.entries)
    return tables


class Table(dict[str, Any]):
    """A table for quick look-ups: where it is searched, it shows only keys that may be patterns.

    Any other key matches its own name alone, and that is looked up first.
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        super().__init__(table)
        self._patterns = tuple(key for key in table if not is_plain(key) or "." in key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._patterns)


class Keys:
    """The keys of the table at ``path`` that paths lead through: names, and patterns."""

    def __init__(self, path: Path, paths: Iterable[Path]) -> None:
        size = len(path)
        keys = {str(each[size]) for each in paths if len(each) > size and each[:size] == path}
        self._patterns = [key for key in keys if not is_plain(key) or "." in key]
        self._names = keys

    def fit(self, name: str) -> bool:
        """Whether one of the keys matches a name."""
        return name in self._names or any(fits(pattern, name) for pattern in self._patterns)


def quick(config: Config) -> Config:
    """The same configuration, quick to look names up in."""

    def layer(each: Layer) -> Layer:
        return replace(each, entries=Table(each.entries))

    profiles = config.profiles.items()
    return replace(
        config,
        aliases=Table(config.aliases),
        workers=layer(config.workers),
        profiles={name: replace(each, layer=layer(each.layer)) for name, each in profiles},
    )
