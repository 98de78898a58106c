"""The contexts that a configuration tells apart: one for each branch of its keyed values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from taskgraph_workers.config.names import LEVELS
from taskgraph_workers.errors import Path
from taskgraph_workers.model import Config, Context, Keyed, Selection


def contexts(config: Config) -> tuple[Context, ...]:
    """Contexts that together lead into each branch, save for branches that need two at once.

    What no context can tell (a project that no branch names) is left empty.
    """
    branches: dict[str, dict[str, None]] = {}
    for keyed in keyed_values(config):
        branches.setdefault(keyed.by, {}).update(dict.fromkeys(keyed.choices))
    levels = LEVELS if "level" in branches else LEVELS[:1]
    others: list[dict[str, str]] = [{}]
    for by in ("project", "tasks-for", "kind"):
        others += [{by.replace("-", "_"): branch} for branch in branches.get(by, ())]
    return tuple(Context(level=level, **other) for level in levels for other in others)


def keyed_values(config: Config) -> Iterator[Keyed]:
    """Every keyed value that placement may meet."""
    yield from _keyed([config.aliases, config.workers, config.profiles, config.select])


def keyed_below(value: Any, path: Path) -> Iterator[tuple[Path, Keyed]]:
    """A keyed value, and those among its branches, each with the path of its branches."""
    if isinstance(value, Keyed):
        path = (*path, f"by-{value.by}")
        yield path, value
        for key, each in value.choices.items():
            yield from keyed_below(each, (*path, key))


def selections(config: Config) -> tuple[Selection, ...]:
    """What ``select.default`` may come to."""
    return tuple(_selections(config.select.default))


def _selections(value: Any) -> Iterator[Selection]:
    if isinstance(value, Keyed):
        for each in value.choices.values():
            yield from _selections(each)
    elif value is not None:
        yield value


def _keyed(value: Any) -> Iterator[Keyed]:
    """Every keyed value in a value, at whatever depth."""
    if isinstance(value, Keyed):
        yield value
        yield from _keyed(value.choices)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _keyed(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _keyed(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _keyed(each)
