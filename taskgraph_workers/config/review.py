"""What a valid configuration may not mean: nothing here stops a run, and each is worth a look.

The loader refuses what is wrong. Here the rules are run for every name under every profile, and
what comes out is compared with what a reader of the file would expect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from taskgraph_workers import match
from taskgraph_workers.config.contexts import contexts
from taskgraph_workers.config.entries import changes, targets
from taskgraph_workers.config.names import LEVELS, fits, is_plain
from taskgraph_workers.config.selection import names_of
from taskgraph_workers.config.tables import translated
from taskgraph_workers.detect import Detect
from taskgraph_workers.errors import (
    ALIASES,
    TOP,
    Path,
    PlacementError,
    Problem,
    did_you_mean,
    listed,
)
from taskgraph_workers.keyed import pick
from taskgraph_workers.model import (
    Change,
    Choice,
    Config,
    Context,
    Keyed,
    Layer,
    Placement,
    Profile,
    Value,
)
from taskgraph_workers.resolve import changes_for, layers_of, limited_by, lineage, resolve

#: The env that names GPUs by their indices.
GPUS = "GPUS"

_POOL = ("provisioner", "worker-type")
_ALIAS_TABLE = "workers.aliases"


def review(
    config: Config, trust_domain: str = "{trust-domain}", graph: bool = True
) -> list[Problem]:
    """What is worth a look in a configuration without errors, each with its place.

    ``graph``: whether tasks of a graph run by it, and not only what is launched or dispatched.
    """
    found = [
        *_hidden_env(config),
        *_hidden_aliases(config),
        *_unmatched(config),
        *_idle(config),
        *(_shared_aliases(config, trust_domain) if graph else ()),
        *_placed(config, trust_domain),
    ]
    found = [translated(problem, config) for problem in dict.fromkeys(found)]
    return found if config.trace is None else config.trace.locate(found)


# --- Every name under every profile ---------------------------------------------------------


def _placed(config: Config, trust_domain: str) -> Iterator[Problem]:
    every = [replace(each, trust_domain=trust_domain) for each in contexts(config)]
    names = names_of(config)
    kept: dict[object, Problem] = {}
    for profile in [None, *config.profiles]:
        choice = Choice(profile, "")
        levels = levels_of(config, profile)
        for context in every:
            level = context.level if context.level in levels else levels[0]
            here = replace(context, level=level).under(choice)
            for name in names:
                placement = placed(config, name, choice, here)
                if placement is not None:
                    for problem in _of_another(config, placement, here):
                        kept.setdefault((problem.path, problem.hint), problem)
                    yield from wrong_count(placement, placement.env)
                    if context is every[0] and len(levels) > 1:
                        yield from _shared_pool(config, placement, here, levels)
    yield from kept.values()


def placed(config: Config, name: str, choice: Choice, context: Context) -> Placement | None:
    """Where a name runs; None where it can't be placed, which the loader judges."""
    try:
        return resolve(config, name, choice, context)
    except PlacementError:
        return None


def levels_of(config: Config, profile: str | None) -> tuple[str, ...]:
    """The levels that a profile may be used at."""
    limiting = limited_by(config, profile)
    levels = None if limiting is None else limiting.levels
    return LEVELS if levels is None else tuple(sorted(levels))


# --- Required env that was given for another machine ----------------------------------------


def _of_another(config: Config, placement: Placement, context: Context) -> Iterator[Problem]:
    """Required env that still says what it said of the pool that a profile moves away from."""
    needed = {name for required in placement.require for name in required.env}
    kept: dict[tuple[str, str], list[str]] = {}
    for name in sorted(needed & placement.env.keys()):
        value = placement.env[name]
        if value.value is None or isinstance(value.value, Detect):
            continue
        owner, pool = _given_for(config, placement, value, context)
        if pool:
            kept.setdefault((owner, pool), []).append(name)
    for (owner, pool), names in kept.items():
        yield _kept_problem(config, placement, context, (owner, pool, names))


def _given_for(
    config: Config, placement: Placement, value: Value, context: Context
) -> tuple[str, str]:
    """The name that an entry with this value is for, and its pool there; empty if unknown."""
    path, profile = value.path, None
    entries: Mapping[str, Any] = config.workers.entries
    if path[:2] == (*TOP, "profiles"):
        profile = str(path[2])
        entries, path = config.profiles[profile].layer.entries, path[2:]
    elif path[:2] != (*TOP, "workers"):
        return "", ""
    pools = {}
    for name in reversed(placement.chain):
        if match.find(entries, name) == (path[2],):
            there = placed(config, name, Choice(profile, ""), context)
            if there is not None:
                pools[there.pool] = name
    if not pools or placement.pool in pools:
        return "", ""
    pool, name = next(iter(pools.items()))
    return name, pool


def _kept_problem(
    config: Config, placement: Placement, context: Context, kept: tuple[str, str, list[str]]
) -> Problem:
    owner, pool, names = kept
    at = _moved_by(config, placement, owner, context)
    others = {n for required in placement.require for n in required.env} - set(names)
    thought_of = any(_is_below(placement.env[n].path, at) for n in others & placement.env.keys())
    said = ", ".join(f'{name}: "{placement.env[name].value}"' for name in names)
    return Problem(
        f"this places {placement.asked!r} on {placement.pool}, where {listed(names)} "
        f"{'are' if len(names) > 1 else 'is'} still what {owner!r} has on {pool}",
        at,
        f"if that is right there too, say it here: env: {{{said}}}",
        "info" if thought_of else "warning",
    )


def _is_below(path: Path, field: Path) -> bool:
    """Whether a path belongs to the entry that a field, or the entry itself, stands for."""
    entry = field[:-1] if field[-1] in _POOL else field
    return path[: len(entry)] == entry


def _moved_by(config: Config, placement: Placement, owner: str, context: Context) -> Path:
    """What says that the pool is not the one of ``owner``."""
    for name in ("worker-type", "provisioner"):
        if placement.fields[name].source != _ALIAS_TABLE:
            return placement.fields[name].path
    layers = layers_of(config, placement.choice)
    for _, change in changes_for(config, owner, layers, context):
        if pick(change.to, context, ())[0] is not None:
            return change.path
    return placement.fields["worker-type"].path


# --- GPUs that are named, and GPUs that there are -------------------------------------------


def wrong_count(placement: Placement, env: Mapping[str, Value]) -> Iterator[Problem]:
    """A problem where ``GPUS`` names more or fewer GPUs than ``resources`` says there are."""
    said, have = env.get(GPUS), placement.resources.get("gpus")
    if said is None or have is None or not isinstance(said.value, str) or have.value is None:
        return
    count = len(set(re.split(r"[\s,]+", said.value.strip()))) if said.value.strip() else 0
    if count != have.value:
        yield Problem(
            f"{GPUS} {said.value!r} names {count} GPU{'' if count == 1 else 's'}, "
            f"and resources.gpus of {placement.alias!r} is {have.value}",
            said.path,
            'it lists indices, such as "0 1 2 3"; or mend resources',
            "warning",
        )


# --- One pool for several levels ------------------------------------------------------------


def _shared_pool(
    config: Config, placement: Placement, context: Context, levels: Sequence[str]
) -> Iterator[Problem]:
    """A pool that an entry sets, and that is the same at several levels."""
    fields = [placement.fields[name] for name in _POOL]
    ours = [value for value in fields if value.source not in (_ALIAS_TABLE, "Taskgraph")]
    if not ours:
        return
    there = [
        placed(config, placement.asked, placement.choice, replace(context, level=level))
        for level in levels
    ]
    if all(each is not None and each.pool == placement.pool for each in there):
        yield _same_at(placement.pool, levels, ours[-1].path, "warning")


def _same_at(pool: str, levels: Sequence[str], path: Path, severity: str) -> Problem:
    return Problem(
        f"tasks of levels {', '.join(levels)} share the pool {pool}",
        path,
        "put {level} into it, or give the profile the levels that may use it"
        if severity == "warning"
        else "put {level} into it, if a task of level 1 must not reach what one of level 3 uses",
        severity,
    )


def _shared_aliases(config: Config, trust_domain: str) -> Iterator[Problem]:
    """An alias of Taskgraph's own without ``{level}``: not ours to judge, but good to know."""
    for name, alias in config.aliases.items():
        fields = [alias.fields[field] for field in _POOL]
        if not any(isinstance(value, Keyed) or "{level}" in str(value) for value in fields):
            pool = "/".join(map(str, fields)).replace("{alias}", name)
            pool = pool.replace("{trust-domain}", trust_domain)
            yield _same_at(pool, LEVELS, (*ALIASES, name), "info")


# --- Keys that hide others ------------------------------------------------------------------


def _hidden_env(config: Config) -> Iterator[Problem]:
    """A name that is written out takes nothing from a pattern that matches it, too."""
    tables = [config.workers, *(each.layer for each in config.profiles.values())]
    for layer in tables:
        patterns = [key for key in layer.entries if not is_plain(key) and key != "default"]
        for key, entry in layer.entries.items():
            if is_plain(key) and entry is not None:
                yield from _hides(layer, key, [each for each in patterns if fits(each, key)])


def _hides(layer: Layer, key: str, patterns: Iterable[str]) -> Iterator[Problem]:
    own = _env_names(layer, key)
    for pattern in patterns:
        hidden = _env_names(layer, pattern) - own
        if hidden:
            yield Problem(
                f"{key!r} is written out, so it gets nothing from {pattern!r}, which gives "
                f"{listed(hidden)}",
                next(iter(changes([layer.entries[key]]))).path[: _entry_length(layer)],
                "a name beats a pattern; give it here too, or leave this entry out",
                "warning",
            )


def _entry_length(layer: Layer) -> int:
    """How long the path of an entry is, without the branch of a keyed one."""
    return 3 if layer.source == "workers" else 5


def _env_names(layer: Layer, key: str) -> set[str]:
    said = changes([layer.entries[key]])
    return {name for change in said for name in _names_in(change.env)}


def _names_in(env: Any) -> Iterator[str]:
    if isinstance(env, Keyed):
        for each in env.choices.values():
            yield from _names_in(each)
    else:
        yield from env or ()


def _hidden_aliases(config: Config) -> Iterator[Problem]:
    """Aliases that a pattern of a profile sends on, so that nothing reaches them."""
    aliases = [name for name in config.aliases if is_plain(name)]
    for profile in config.profiles.values():
        targets = _targets(lineage(config, profile.name))
        hidden: dict[tuple[str, Path], list[str]] = {}
        for name in aliases:
            for key, change in _caught(config, profile, name):
                hidden.setdefault((key, change.path), []).append(name)
        for (key, path), names in hidden.items():
            yield from _hidden(key, path, names, targets)


def _caught(config: Config, profile: Profile, name: str) -> Iterator[tuple[str, Change]]:
    """The pattern of a profile's own that sends a name on to another one, with what it says."""
    found = match.find(profile.layer.entries, name)
    if len(found) != 1 or found[0] == name:
        return
    context = Context(profile=profile.name)
    try:
        for _, change in changes_for(config, name, [profile.layer], context):
            said = change.to if isinstance(change.to, Keyed) else pick(change.to, context, ())[0]
            if said not in (None, name):
                yield found[0], change
    except PlacementError:
        return


def _targets(profiles: Iterable[Profile]) -> dict[str, str]:
    """The names that profiles send others to by a name that is written out, and one of these."""
    found: dict[str, str] = {}
    for profile in profiles:
        for key, entry in profile.layer.entries.items():
            for to in targets(entry):
                if key != to:
                    found.setdefault(to, key)
    return found


def _hidden(
    key: str, path: Path, names: Sequence[str], targets: Mapping[str, str]
) -> Iterator[Problem]:
    meant = [name for name in names if name in targets and targets[name] != key]
    if meant:
        senders = dict.fromkeys(targets[name] for name in meant)
        keep = ", ".join(f"{name}: {name}" for name in meant[:2])
        yield Problem(
            f"{key!r} catches {listed(meant)} too, so what {listed(senders)} "
            f"{'send' if len(senders) > 1 else 'sends'} there does not stay there",
            path,
            f"write {keep} to keep {'it' if len(meant) == 1 else 'them'}, or a pattern that "
            "does not match so much",
            "warning",
        )
    rest = [name for name in names if name not in meant]
    if rest:
        what = f"{key!r} sends on whatever asks for {listed(rest)}: under this profile nothing"
        word = "these aliases" if len(rest) > 1 else "this alias"
        yield Problem(f"{what} reaches {word}", path, severity="info")


# --- Entries for nothing --------------------------------------------------------------------


def _idle(config: Config) -> Iterator[Problem]:
    """A name to protect that is like none there is. What looks misspelled the loader tells."""
    names = names_of(config)
    for index, key in enumerate(config.protected_workers):
        misspelled = did_you_mean(key, names, "")
        if not misspelled and not any(fits(key, name) for name in names):
            yield Problem(
                f"no worker name is matched by {key!r}, so this protects nothing",
                (*TOP, "protect", "workers", index),
                "fine if an alias of that name is yet to come; else leave it out",
                "warning",
            )


def _unmatched(config: Config) -> Iterator[Problem]:
    """A pattern of a profile that no known name matches."""
    names = names_of(config)
    for profile in config.profiles.values():
        for key in profile.layer.entries:
            if is_plain(key) or key == "default" or any(fits(key, name) for name in names):
                continue
            yield Problem(
                f"no worker name is matched by {key!r}, so this is never used",
                (*profile.path, "workers", key),
                did_you_mean(key, names),
                "warning",
            )
