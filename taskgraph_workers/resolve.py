"""The rules of placement: from (configuration, worker name, choice, context) to one placement.

Pure: no file, no environment, no Taskgraph. Start at :func:`resolve`. The rules are numbered as the
sections of docs/concepts/placement.md:

1. the chain                     :func:`chain_of`
2. what applies, weakest first   :func:`resolve`, :func:`task_env`
3. the choice                    :func:`choose`, :func:`layers_of`
4. the guards                    :func:`changes_for`, :func:`level_problem`, :func:`unmet`
7. what nothing is said about    :attr:`~taskgraph_workers.model.Placement.silent`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from taskgraph_workers import match
from taskgraph_workers.errors import (
    ALIASES,
    TOP,
    UNMET,
    Path,
    PlacementError,
    Problem,
    did_you_mean,
    listed,
)
from taskgraph_workers.implementations import has_env
from taskgraph_workers.keyed import one, pick, refused
from taskgraph_workers.model import (
    ALIAS_FIELDS,
    BUILT_IN,
    POOL_FIELDS,
    Change,
    Choice,
    Config,
    Context,
    Layer,
    Placement,
    Profile,
    Selection,
    Value,
)
from taskgraph_workers.overlay import Overlay, over
from taskgraph_workers.refusals import by_way_of, dead_end, extends_loop, name_loop

# --- Rule 1: the chain ----------------------------------------------------------------------


def chain_of(
    config: Config, asked: str, layers: Sequence[Layer], context: Context
) -> tuple[str, ...]:
    """The names from the asked one to the alias.

    At each name the nearest layer that sends it on decides. A name sent to itself, or nowhere,
    ends the chain. Raises :class:`PlacementError`, with the chain, where it runs in a loop.
    """
    names = [asked]
    while True:
        to, where = _sent_on(config, names[-1], layers, context)
        if to is None or to == names[-1]:
            return tuple(names)
        if to in names:
            raise name_loop(config, [*names, to], where)
        names.append(to)


def _sent_on(
    config: Config, name: str, layers: Sequence[Layer], context: Context
) -> tuple[str | None, Path]:
    """Where the nearest layer that sends this name on sends it, and what says so."""
    for _, change in changes_for(config, name, layers, context):
        to, where = pick(change.to, context, (*change.path, "to"))
        if to is not None:
            return to, where
    return None, ()


# --- Rule 2: what applies -------------------------------------------------------------------


def resolve(config: Config, asked: str, choice: Choice, context: Context) -> Placement:
    """Where a task that asks for this worker name runs, and what it is told.

    Weakest first: the alias; ``workers`` for each name of the chain, alias first; the profiles,
    parents before children, alias before asked name; (the task's own env;) the run's overrides.
    What ``workers`` says of aliases that the chain leaves is weaker than of the one it reaches:
    those are other machines. A layer that sends a name on is not overruled by where weaker layers
    would have sent that name.

    Raises :class:`PlacementError` for loops, dead ends, patterns that clash, and values keyed by
    something that has no branch here.
    """
    context = context.under(choice)
    chain = chain_of(config, asked, layers_of(config, choice), context)
    weak, strong = _apply(config, chain, choice, context)
    fields = over(weak.fields, strong.fields)
    if any(name not in fields for name in ALIAS_FIELDS):
        sender = chain[-2] if len(chain) > 1 else asked
        _, where = _sent_on(config, sender, layers_of(config, choice), context)
        raise dead_end(config, chain, lineage(config, choice.profile), where, fields)
    fields = _filled_in(fields, chain[-1], context)
    require = (r for r in config.require if any(match.any_matches(r.workers, n) for n in chain))
    env_here = has_env(fields["implementation"].value)
    return Placement(
        chain=chain,
        choice=choice,
        fields=fields,
        moved=_moved(config, asked, fields, context),
        env=weak.env if env_here else {},
        env_override=strong.env if env_here else {},
        resources=over(weak.resources, strong.resources),
        worker=over(weak.worker, strong.worker),
        require=tuple(require) if env_here else (),
    )


def _apply(
    config: Config, chain: tuple[str, ...], choice: Choice, context: Context
) -> tuple[Overlay, Overlay]:
    """What applies to a chain: what is weaker than a task's own, and what is stronger.

    A profile sends ``big`` on to ``gpu``, and the run says which GPUs:

    >>> fields = dict(zip(ALIAS_FIELDS, ("gcp", "{alias}", "docker-worker", "linux")))
    >>> lab = {"big": Change((), to="gpu", env={"GPUS": "0 1"}), "gpu": Change((), env={"A": "b"})}
    >>> config = Config(
    ...     aliases={"gpu": Change((), fields=fields)},
    ...     workers=Layer("workers", {"gpu": Change((), env={"GPUS": "0", "A": "a"})}),
    ...     profiles={"lab": Profile("lab", (), Layer("profile lab", lab))},
    ... )
    >>> run = Layer("a run", {"big": Change((), env={"GPUS": "1"})})
    >>> weak, strong = _apply(config, ("big", "gpu"), Choice("lab", "", (run,)), Context())
    >>> {name: (said.value, said.overrode.value) for name, said in weak.env.items()}
    {'GPUS': ('0 1', '0'), 'A': ('b', 'a')}
    >>> {name: said.value for name, said in strong.env.items()}
    {'GPUS': '1'}
    """
    layers = layers_of(config, choice)
    weak, strong = Overlay(context), Overlay(context)
    weak.fields = _alias(config, chain[-1], context)
    table, path = config.workers.entries, (*TOP, "workers")
    for name in _machines(config, chain):
        key = one(table, name, path)
        machine = None if key is None else pick(table[key], context, (*path, key))[0]
        if machine is not None:
            weak.lay(config.workers.source, machine)
    said = [each for n in reversed(chain) for each in _deciding(config, n, layers, context)]
    profiles = layers[len(choice.overrides) :]
    for onto, group in ((weak, profiles), (strong, choice.overrides)):
        for layer in reversed(group):
            for of, change in said:
                if of is layer:
                    onto.lay(layer.source, change)
    return weak, strong


def _machines(config: Config, chain: tuple[str, ...]) -> list[str]:
    """The names that ``workers`` is asked about, weakest first."""
    left = [name for name in chain[:-1] if match.find(config.aliases, name)]
    return [*left, chain[-1], *(name for name in reversed(chain[:-1]) if name not in left)]


def _deciding(
    config: Config, name: str, layers: Sequence[Layer], context: Context
) -> list[tuple[Layer, Change]]:
    """What each layer says of a name, nearest first; the place only up to where one sends it on.

    The child sends ``a`` on, so where the parent has it counts no more, and its env still does:

    >>> child = Layer("child", {"a": Change((), to="b", env={"X": "1"})})
    >>> parent = Layer("parent", {"a": Change((), fields={"os": "mac"}, env={"X": "2"})})
    >>> said = _deciding(Config(), "a", (child, parent), Context())
    >>> [(layer.source, change.fields, change.env) for layer, change in said]
    [('child', {}, {'X': '1'}), ('parent', {}, {'X': '2'})]
    """
    found, sent = [], False
    for layer, change in changes_for(config, name, layers, context):
        found.append((layer, replace(change, fields={}) if sent else change))
        sent = sent or pick(change.to, context, (*change.path, "to"))[0] is not None
    return found


def _alias(config: Config, name: str, context: Context) -> dict[str, Value]:
    """The fields of the alias of this name, if it is one (built-in types included)."""
    if name in BUILT_IN:
        provisioner = "built-in" if name == "succeed" else "invalid"
        built_in = dict(zip(ALIAS_FIELDS, (provisioner, name, name, "")))
        return {field: Value(said, "Taskgraph", ()) for field, said in built_in.items()}
    key = one(config.aliases, name, ALIASES)
    laid = Overlay(context)
    if key is not None:
        laid.lay("workers.aliases", config.aliases[key])
    return laid.fields


def _filled_in(fields: Mapping[str, Value], alias: str, context: Context) -> dict[str, Value]:
    """Alias fields with ``{alias}``, ``{level}`` and ``{trust-domain}`` replaced in the pool."""
    names = {"alias": alias, "level": context.level, "trust-domain": context.trust_domain}
    filled = dict(fields)
    for name, said in fields.items():
        if name in POOL_FIELDS:
            try:
                filled[name] = replace(said, value=str(said.value).format(**names))
            except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                hint = "it may hold {alias}, {level} and {trust-domain}, and no other brace"
                raise refused(f"{said.value!r} can't be filled in", said.path, hint) from None
    return filled


def _moved(config: Config, asked: str, fields: Mapping[str, Value], context: Context) -> bool:
    """Whether the fields are others than without ``workers-config``.

    An alias that can't be used here (one for other levels) is no error if its name is sent on.
    """
    try:
        own = _filled_in(_alias(config, asked, context), asked, context)
    except PlacementError:
        return True
    return any(name not in own or own[name].value != said.value for name, said in fields.items())


def task_env(
    placement: Placement, own: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Value]]:
    """The env of a task with this env of its own, and the value behind each name.

    The worker's env, the task's own over it, the run's overrides over both; a value of None
    removes the name. Values that are left to the machine to find out are in both as they are.
    """
    said = over(placement.env, {n: Value(v, "task", ("env", n)) for n, v in own.items()})
    said = over(said, placement.env_override)
    return {n: v.value for n, v in said.items() if v.value is not None}, said


# --- Rule 3: the choice ---------------------------------------------------------------------


def choose(selections: Iterable[Selection], kind: str) -> Choice:
    """What the sources, strongest first, pick for a kind.

    The first source that speaks of a profile for the kind wins, its entry for the kind before its
    ``default``. Overrides of that source, and of stronger ones that named no profile, apply.
    """
    overrides: list[Layer] = []
    for said in selections:
        if said.overrides is not None:
            overrides.append(said.overrides)
        profile = said.profiles.get(kind, said.profiles.get("default"))
        if profile is not None:
            return Choice(profile, said.source, tuple(overrides))
    return Choice(None, "", tuple(overrides))


def layers_of(config: Config, choice: Choice) -> tuple[Layer, ...]:
    """The layers that may move a name, nearest first: the run's overrides, then the profiles.

    Raises :class:`PlacementError` as :func:`lineage` does.
    """
    return choice.overrides + tuple(each.layer for each in lineage(config, choice.profile))


def lineage(config: Config, profile: str | None) -> tuple[Profile, ...]:
    """A profile, what it ``extends``, and so on up; empty for None.

    Raises :class:`PlacementError` where there is no such profile, or they extend in a loop.
    """
    found: list[Profile] = []
    while profile is not None:
        if profile not in config.profiles:
            raise refused(
                f"there is no profile {profile!r}",
                found[-1].path if found else (),
                did_you_mean(profile, set(config.profiles).difference(each.name for each in found)),
            )
        if any(profile == seen.name for seen in found):
            way = [*(seen.name for seen in found), profile]
            raise PlacementError(extends_loop(way, found[0].path))
        found.append(config.profiles[profile])
        profile = found[-1].extends
    return tuple(found)


# --- Rule 4: the guards ---------------------------------------------------------------------


def changes_for(
    config: Config, name: str, layers: Sequence[Layer], context: Context
) -> Iterator[tuple[Layer, Change]]:
    """What each layer says of one name, nearest first, and nothing that a guard forbids.

    What is protected is never moved; neither is what Taskgraph builds in. An alias whose
    implementation has no env is moved only by an entry that names it exactly. An entry of None
    drops what the layers above it say.

    Raises :class:`PlacementError` where patterns of a layer clash, or a keyed entry has no branch
    here.
    """
    if name in BUILT_IN or match.any_matches(config.protected_workers, name):
        return
    if match.any_matches(config.protected_kinds, context.kind):
        return
    alias = one(config.aliases, name, ALIASES)
    by_name_only = alias is not None and not has_env(config.aliases[alias].fields["implementation"])
    for layer in layers:
        key = one(layer.entries, name, (layer.source,))
        if key is None or (by_name_only and key != name):
            continue
        change, _ = pick(layer.entries[key], context, (layer.source, key))
        if change is None:
            return
        yield layer, change


def level_problem(config: Config, choice: Choice, level: str) -> Problem | None:
    """A problem where the profile chosen is not meant for this level, else None.

    Raises :class:`PlacementError` as :func:`lineage` does.
    """
    limiting = limited_by(config, choice.profile)
    if limiting is None or limiting.levels is None or level in limiting.levels:
        return None
    return Problem(
        f"profile {choice.profile!r} is for level {listed(limiting.levels)}, "
        f"and this is level {level} (chosen by {choice.source})",
        (*limiting.path, "levels"),
        "choose another profile, or add the level here",
    )


def limited_by(config: Config, profile: str | None) -> Profile | None:
    """The profile whose ``levels`` hold for this one: the nearest it extends that has some."""
    return next((each for each in lineage(config, profile) if each.levels is not None), None)


def unmet(placement: Placement, names: Iterable[str]) -> list[Problem]:
    """A problem for each requirement that a task with env of these names does not meet."""
    present = set(names)
    return [
        Problem(
            f"{name} is required on {placement.asked!r} and is not set{by_way_of(placement.chain)}",
            required.path,
            f"give {name} in workers-config.workers, in the profile, or in the task's env",
            profiles=(placement.choice.profile,) if placement.choice.profile else (),
            code=UNMET,
            names=(name,),
        )
        for required in placement.require
        for name in required.env
        if name not in present
    ]


# --- Which names there are ------------------------------------------------------------------


def is_known(config: Config, name: str, overrides: Sequence[Layer] = ()) -> bool:
    """Whether a task may ask for the name: it is an alias, or an entry anywhere speaks of it.

    A pattern of ``workers`` makes no name known: it says what machines are, not what leads to
    them. Something with a ``/`` has to be a key itself: a pattern such as ``.*gpu.*`` would match
    the very pool that its entry sends names to.
    """
    layers = [*overrides, *(profile.layer for profile in config.profiles.values())]
    tables: list[Mapping[str, object]] = [config.aliases, *(layer.entries for layer in layers)]
    if name in BUILT_IN or any(name in table for table in (config.workers.entries, *tables)):
        return True
    return "/" not in name and any(match.find(table, name) for table in tables)
