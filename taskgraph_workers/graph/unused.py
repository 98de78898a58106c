"""Entries of a configuration that no task of a graph gets anything from, under any profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from taskgraph_workers import match
from taskgraph_workers.config.names import fits
from taskgraph_workers.config.review import levels_of
from taskgraph_workers.config.selection import names_of
from taskgraph_workers.errors import TOP, Path, PlacementError, Problem, did_you_mean
from taskgraph_workers.graph.checks import INDEX_ALIAS
from taskgraph_workers.graph.recorder import Record
from taskgraph_workers.graph.run import KindRun
from taskgraph_workers.model import Choice, Config, Context, Layer
from taskgraph_workers.resolve import chain_of, changes_for, is_known, layers_of, lineage

# Who chose a profile that is tried by itself.
_EACH = "each profile"


def choices(seen: Record, kind: str) -> Iterator[Choice]:
    """What is chosen for a kind, and every profile by itself."""
    chosen = Choice() if kind not in seen.runs else seen.runs[kind].choice
    yield chosen
    for profile in seen.config.profiles:
        if profile != chosen.profile or chosen.overrides:
            yield Choice(profile, _EACH)


def run_under(seen: Record, kind: str, choice: Choice) -> KindRun:
    """The run of a kind under a choice, at a level that its profile is for."""
    run = seen.runs[kind]
    levels = levels_of(seen.config, choice.profile)
    level = run.context.level if run.context.level in levels else levels[0]
    return KindRun(seen.config, replace(run.context, level=level), choice)


def _asked(seen: Record) -> Iterator[tuple[str, str]]:
    """Each kind, with the names that its tasks ask for under any choice."""
    for each in seen.asked.values():
        for choice in choices(seen, each.kind) if each.keyed is not None else ():
            with suppress(PlacementError):
                yield each.kind, each.under(run_under(seen, each.kind, choice).context).name
        yield each.kind, each.name


def unused(seen: Record) -> Iterator[Problem]:
    """A warning for each entry of ``workers`` and ``profiles`` that nothing is placed by.

    None where a kind could not be loaded: who knows what that asks for. What no name matches at
    all the loader tells already.
    """
    if seen.failed or not seen.runs:
        return
    asked = set(_asked(seen))
    names = {name for _, name in asked}
    asked |= {("", name) for name in _asked_elsewhere(seen.config)}
    used = {path for kind, name in asked for path in _used(seen, kind, name)}
    known = names_of(seen.config)
    astray = [name for name in names if not is_known(seen.config, name)]
    for path, key in _entries(seen.config):
        if path not in used and key != "default" and any(fits(key, name) for name in known):
            yield _for_nothing(path, key, astray)
    yield from _overrides(seen, asked)


def _entries(config: Config) -> Iterator[tuple[Path, str]]:
    for key in config.workers.entries:
        yield (*TOP, "workers", key), key
    for profile in config.profiles.values():
        for key in profile.layer.entries:
            yield (*profile.path, "workers", key), key


def _asked_elsewhere(config: Config) -> set[str]:
    """Names that are asked for by others than the tasks of kinds."""
    skus = config.dispatch.skus if config.dispatch is not None else {}
    return {INDEX_ALIAS, *skus.values()}


def _used(seen: Record, kind: str, name: str) -> Iterator[Path]:
    """The entries that a name of a kind meets, under any profile."""
    run = seen.runs.get(kind) or next(iter(seen.runs.values()))
    for choice in choices(seen, kind):
        context = replace(run.context, kind=kind).under(choice)
        for each in _chain(seen.config, name, choice, context):
            found = match.find(seen.config.workers.entries, each)
            yield from ((*TOP, "workers", key) for key in found)
            yield from _met(seen.config, each, choice, context)


def _chain(config: Config, name: str, choice: Choice, context: Context) -> tuple[str, ...]:
    try:
        return chain_of(config, name, layers_of(config, choice), context)
    except PlacementError:
        return (name,)


def _overrides(seen: Record, asked: Iterable[tuple[str, str]]) -> Iterator[Problem]:
    """A warning for each override of the run that no task is placed by."""
    runs = seen.runs
    layers = {layer.source: layer for run in runs.values() for layer in run.choice.overrides}
    names = {
        each
        for kind, name in (asked if layers else ())
        if kind in runs
        for each in _chain(seen.config, name, runs[kind].choice, runs[kind].context)
    }
    for source, layer in layers.items():
        met = {key for name in names for key in match.find(layer.entries, name)}
        for key in sorted(layer.entries.keys() - met):
            hint = did_you_mean(key, names, "other parameters (-p) may make other tasks")
            what = f"{source} speaks of {key!r}, which no task of this graph asks for"
            yield Problem(what, hint=hint, severity="warning")


def _met(config: Config, name: str, choice: Choice, context: Context) -> Iterator[Path]:
    """The entries of profiles that are for a name, unless a guard keeps them off."""
    for profile in lineage(config, choice.profile):
        keys = match.find(profile.layer.entries, name)
        if len(keys) == 1 and _applies(config, name, profile.layer, keys[0], context):
            yield (*profile.path, "workers", keys[0])


def _applies(config: Config, name: str, layer: Layer, key: str, context: Context) -> bool:
    if layer.entries[key] is None:
        return True
    try:
        return any(True for _ in changes_for(config, name, [layer], context))
    except PlacementError:
        return True


def _for_nothing(path: Path, key: str, names: Iterable[str]) -> Problem:
    return Problem(
        f"no task of this graph gets anything from {key!r}, under any profile",
        path,
        did_you_mean(key, names, "other parameters (-p) may make other tasks"),
        "warning",
    )
