"""The shape of a choice: in ``select.default``, in a parameter, in the environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import voluptuous as vol

from taskgraph_workers import match
from taskgraph_workers.config.contexts import selections
from taskgraph_workers.config.entries import Entries, changes, placed_all, targets
from taskgraph_workers.config.faults import (
    KEY,
    Fault,
    faults_of,
    misread,
    path_of,
    problem_of,
    stop_at,
)
from taskgraph_workers.config.forms import Either, Shape, Table, about, formed, takes
from taskgraph_workers.config.locate import find
from taskgraph_workers.config.names import NOTHING, Known, fits, is_name_key, is_plain, with_placed
from taskgraph_workers.config.shapes import NAME, a_name, section, table
from taskgraph_workers.config.unread import too_deep
from taskgraph_workers.errors import ConfigError, Path, Problem, did_you_mean, said
from taskgraph_workers.model import BUILT_IN, KEYED_BY, Config, Keyed, Layer, Selection


def selection(known: Known) -> Shape:
    """A shape: a profile, ``{default: ..., <kind>: ...}``, or ``{profile: ..., workers: ...}``."""

    def read(raw: Any) -> Selection:
        if not is_whole(raw):
            return Selection("", (), by_kind(known)(raw))
        value = whole(raw.get("workers"))(raw)
        layer = Layer("", value["workers"]) if "workers" in value else None
        return Selection("", (), value.get("profile", {}), layer)

    def whole(named: Any) -> Shape:
        entries = Entries(with_names(known, named))
        return section(
            {
                "profile": about("A profile, or one by kind.", by_kind(known)),
                "workers": about(
                    "Changes to single worker names, stronger than any profile and than a task's "
                    "own env.",
                    entries.table(),
                ),
            },
            others=f"a profile by kind is written profile: {{{KEY}: ...}}",
        )

    return formed(read, lambda: Either((by_kind(known, ("profile",)), whole(None))))


def is_whole(raw: Any) -> bool:
    """Whether a choice is given as ``{profile: ..., workers: ...}``, not by kind."""
    if not isinstance(raw, Mapping):
        return False
    return "profile" in raw or ("workers" in raw and not isinstance(raw["workers"], str))


def by_kind(known: Known, never: Sequence[str] = ()) -> Shape:
    """A shape: a profile, or a profile by kind, as a mapping from kinds (or ``default``).

    ``never`` are keys that make another shape of it.
    """

    @takes(type="string", pattern=NAME)
    def profile(raw: Any) -> str:
        if raw is None or isinstance(raw, (Mapping, list, tuple)):
            raise Fault(f"must be the name of a profile, not {said(raw)}")
        if not isinstance(raw, str):
            raise misread("must be the name of a profile", raw, f"{KEY}: ")
        return str(profile_name(known)(raw))

    def read(raw: Any) -> dict[str, str]:
        if isinstance(raw, Mapping):
            value: dict[str, str] = table(profile, kind)(raw)
            return value
        if not isinstance(raw, str):
            raise misread("must be a profile, or a mapping from kinds to profiles", raw)
        return {"default": profile(raw)}

    @takes(type="string", pattern=NAME)
    def kind(raw: Any) -> str:
        name = a_name(raw)
        if known.kinds is None or name == "default" or name in known.kinds:
            return name
        raise Fault(f"there is no kind {name!r}", did_you_mean(name, known.kinds))

    keyed_by = [f"by-{by}" for by in KEYED_BY]
    return formed(read, lambda: Either((profile, Table(profile, kind, (*keyed_by, *never)))))


def profile_name(known: Known) -> Shape:
    """A shape: the name of a profile that there is."""

    @takes(type="string", pattern=NAME)
    def read(raw: Any) -> str:
        name = a_name(raw)
        if name in known.profiles:
            return name
        hint = did_you_mean(name, known.profiles) or "there are no profiles"
        raise Fault(f"there is no profile {name!r}", hint, lookup=True)

    return read


def with_names(known: Known, entries: Any) -> Known:
    """What is known once a run's own entries are."""
    names = entries if isinstance(entries, Mapping) else {}
    known = replace(known, names=known.names.union(filter(is_name_key, names)))
    return with_placed(known, [names])


def placed_selection(value: Any, source: str, path: Path) -> Any:
    """A selection, or a keyed one, that knows who it is from and where it stands."""
    if isinstance(value, Keyed):
        by = f"by-{value.by}"
        choices = {
            key: placed_selection(each, source, (*path, by, key))
            for key, each in value.choices.items()
        }
        return Keyed(value.by, choices)
    if value is None:
        return None
    layer = value.overrides
    if layer is not None:
        layer = Layer(source, placed_all(layer.entries, (*path, "workers")))
    return replace(value, source=source, path=path, overrides=layer)


def known_of(config: Config, kinds: Iterable[str] | None) -> Known:
    """The names that a configuration, once read, can speak of."""
    tables = [config.aliases, *(each.layer.entries for each in config.profiles.values())]
    names = {name for table in tables for name in table if is_plain(name)}
    return Known(
        tuple(config.aliases),
        frozenset(names),
        frozenset(config.profiles),
        None if kinds is None else frozenset(kinds),
        frozenset(filter(is_plain, _placed(tables[1:]))),
    )


def _placed(tables: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for entries in tables:
        for name, entry in entries.items():
            if any(change.to is not None or change.fields for change in changes([entry])):
                yield name


def names_of(config: Config, known: Known = NOTHING, run: Iterable[str] = ()) -> list[str]:
    """Every name that tasks can ask for or be sent on to: aliases first, in their order.

    Whatever is written out as an alias, or in a profile, or in overrides (those of
    ``select.default``, and those of a ``run``); and what entries lead to. What machines are makes
    no name: an exact key of ``workers`` counts where one of the others, a pattern, matches it.
    ``known`` has, besides, the names that stand where something is wrong.
    """
    layers = [each.layer.entries for each in config.profiles.values()]
    layers += [said.overrides.entries for said in selections(config) if said.overrides]
    keys = [key for table in (config.aliases, *layers, run) for key in table]
    aliases = list(filter(is_plain, config.aliases))
    names = {*known.names, *filter(is_plain, keys)}
    names.update(to for table in layers for each in table.values() for to in targets(each))
    patterns = [key for key in keys if not is_plain(key) and key != "default"]
    machines = filter(is_plain, config.workers.entries)
    names.update(key for key in machines if any(fits(pattern, key) for pattern in patterns))
    return [*aliases, *sorted(names.difference(aliases, BUILT_IN))]


def read_selection(
    raw: object, source: str, path: Path, config: Config, kinds: Iterable[str] | None = None
) -> Selection:
    """A choice given at run time, such as by a parameter; None chooses nothing.

    ``source`` names who gave it. Raises :class:`ConfigError` with every fault in it.
    """
    if raw is None:
        return Selection(source, path)
    if too_deep(raw):
        raise ConfigError(Problem("nests too deep to be a choice", file=source))
    try:
        value: Selection = placed_selection(selection(known_of(config, kinds))(raw), source, path)
        stop_at(_clashes(value, config))
    except vol.Invalid as error:
        shown = path[1:] if path[:1] == (source,) else path
        places = ((each, find(None, (*shown, *path_of(each)))) for each in faults_of(error))
        found = [problem_of(fault, place).at(source, 0, 0) for fault, place in places]
        raise ConfigError(*found) from None
    return value


def _clashes(value: Selection, config: Config) -> list[Fault]:
    """Patterns of the overrides that match one known name."""
    entries = {} if value.overrides is None else value.overrides.entries
    faults: dict[tuple[str, ...], Fault] = {}
    for name in sorted(names_of(config, run=entries)):
        found = match.find(entries, name)
        if len(found) > 1:
            what = str(match.Ambiguous(name, found))
            fault = Fault(what, "write the name itself as a key", ["workers", found[-1]])
            faults.setdefault(found, fault)
    return list(faults.values())
