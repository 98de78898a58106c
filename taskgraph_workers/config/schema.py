"""The whole of ``workers-config``: its shape, and the :class:`Config` that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import voluptuous as vol

from taskgraph_workers.config import clusters
from taskgraph_workers.config.decision import decision
from taskgraph_workers.config.dispatch import dispatch
from taskgraph_workers.config.entries import Entries, env_name, placed_all
from taskgraph_workers.config.faults import Fault, faults_of, path_of
from taskgraph_workers.config.forms import Either, Shape, about, formed, null, takes
from taskgraph_workers.config.keyed import keyed
from taskgraph_workers.config.names import Known, fits, is_name_key, with_placed
from taskgraph_workers.config.selection import placed_selection, profile_name, selection
from taskgraph_workers.config.shapes import (
    NAME,
    a_name,
    line,
    list_of,
    list_or_one,
    optional,
    pattern,
    section,
    some_levels,
    table,
    template,
)
from taskgraph_workers.errors import ALIASES, TOP, Path, did_you_mean
from taskgraph_workers.keyed import keyed_in
from taskgraph_workers.model import (
    ALIAS_FIELDS,
    KEYED_BY,
    POOL_FIELDS,
    Change,
    Config,
    Decision,
    Layer,
    Profile,
    Requirement,
    Select,
)


def known_in(raw: Mapping[Any, Any], aliases: Any, kinds: Iterable[str] | None) -> Known:
    """The names that a configuration speaks of, however faulty it is otherwise."""
    profiles = _mapping(raw.get("profiles"))
    entries = [_mapping(_mapping(each).get("workers")) for each in profiles.values()]
    known = Known(
        tuple(key for key in _mapping(aliases) if isinstance(key, str)),
        frozenset(n for each in (_mapping(aliases), *entries) for n in each if is_name_key(n)),
        frozenset(name for name in profiles if isinstance(name, str)),
        None if kinds is None else frozenset(kinds),
    )
    return with_placed(known, entries)


def shape(known: Known) -> Shape:
    """The shape of ``workers-config``, all its files put together."""
    entries = Entries(known)
    return section(
        {
            # What is included is put together with the rest before anything is read.
            "include": about(
                "Files with more of what stands here, relative to this one.",
                formed(lambda raw: raw, Either((null, line, list_of(line)))),
            ),
            "workers": about(
                "What the machines behind a worker name are. Keys match exactly, else as regular "
                "expressions.",
                table(entries.machine),
            ),
            "profiles": about(
                "Named sets of changes: for each worker name, where it goes.",
                _profiles(known, entries),
            ),
            "select": about("Which profile applies where a run names none.", _select(known)),
            "require": about(
                "Env that tasks must end up with, checked before anything runs.",
                _or_nothing(list_of(_require())),
            ),
            "protect": about("What no profile and no override moves.", _protect(known)),
            "decision": about("What decision tasks write down, and the action.", decision()),
            "clusters": about("Where workers are launched, by name.", clusters.clusters()),
            "dispatch": about("What a start-training message may ask for.", dispatch(known)),
        }
    )


def _profiles(known: Known, entries: Entries) -> Shape:
    """All profiles. To one that extends a name that nobody knows, its own is not offered."""
    profiles = table(_a_profile(known, entries), a_name)

    def read(raw: Any) -> Any:
        try:
            return profiles(raw)
        except vol.Invalid as error:
            for fault in faults_of(error):
                if fault.lookup and path_of(fault)[1:] == ("extends",):
                    name = fault.path[0]
                    others = known.profiles - {name}
                    hint = did_you_mean(str(raw[name]["extends"]), others)
                    fault.hint = hint or "there is no other profile"
            raise

    return formed(read, Either((profiles,)))


def _a_profile(known: Known, entries: Entries) -> Shape:
    return section(
        {
            "extends": about(
                "Another profile, whose entries apply where this one says nothing nearer.",
                profile_name(known),
            ),
            "levels": about("The levels it may be used at; all, if absent.", _levels),
            "workers": about(
                "By worker name: another name, a pool (provisioner/worker-type), changes, or null "
                "to drop the entry of the extended profile.",
                entries.table(),
            ),
        }
    )


def _select(known: Known) -> Shape:
    by = tuple(each for each in KEYED_BY if each != "profile")
    return section(
        {
            "default": about(
                "The choice where nothing else speaks: a profile, one by kind, or overrides too.",
                keyed(optional(selection(known)), known, by),
            ),
            "parameter": about(
                "The dotted path of a parameter that holds a run's choice.", _parameter
            ),
        }
    )


def _require() -> Shape:
    return section(
        {
            "workers": about(
                "Patterns; any name that a task's worker name leads to counts.",
                list_or_one(pattern, "names no worker, so nothing is required"),
            ),
            "env": about(
                "The variables.", list_or_one(env_name, "names no variable, so nothing is required")
            ),
        },
        needs=("workers", "env"),
    )


_IDLE = ("is empty, so this protects nothing", "leave it out")


def _protect(known: Known) -> Shape:
    return section(
        {
            "workers": about("Patterns of worker names.", list_or_one(pattern, *_IDLE)),
            "kinds": about("Kinds, or patterns of them.", list_or_one(_kind(known), *_IDLE)),
        }
    )


def build(value: Mapping[str, Any], aliases: Any, trace: Any) -> Config:
    """The configuration out of what :func:`shape` read."""
    workers = placed_all(value.get("workers", {}), (*TOP, "workers"))
    select = dict(value.get("select", {}))
    at = (*TOP, "select", "default")
    if "default" in select:
        select["default"] = placed_selection(select["default"], "select.default", at)
    protect = value.get("protect", {})
    return Config(
        aliases=read_aliases(aliases),
        workers=Layer("workers", workers),
        profiles={n: _profile(n, each) for n, each in value.get("profiles", {}).items()},
        select=Select(**select),
        require=tuple(
            Requirement((*TOP, "require", index), **each)
            for index, each in enumerate(value.get("require") or ())
        ),
        protected_workers=protect.get("workers", ()),
        protected_kinds=protect.get("kinds", ()),
        decision=value.get("decision", Decision()),
        clusters={
            name: clusters.build(name, each, (*TOP, "clusters", name))
            for name, each in value.get("clusters", {}).items()
        },
        dispatch=value.get("dispatch"),
        trace=trace,
    )


def read_aliases(raw: Any) -> dict[str, Change]:
    """Taskgraph's table of aliases, which Taskgraph itself has validated."""
    return {
        str(name): Change(
            (*ALIASES, name),
            fields={
                key: keyed_in(_mapping(fields).get(key), ("level",), _a_text)
                for key in ALIAS_FIELDS
            },
        )
        for name, fields in _mapping(raw).items()
    }


def alias_faults(raw: Any) -> list[Fault]:
    """What is wrong with a table of aliases that Taskgraph has not validated."""
    pools = dict.fromkeys(POOL_FIELDS, keyed(template, Known(), ("level",)))
    fields = {**pools, **dict.fromkeys(("implementation", "os"), a_name)}
    try:
        table(section(fields, needs=ALIAS_FIELDS))(raw)
    except vol.Invalid as error:
        return faults_of(error)
    return []


def read(known: Known, raw: Mapping[Any, Any]) -> tuple[Mapping[str, Any], list[Fault]]:
    """What the shape makes of it, and all its faults. What is faulty is left out."""
    faults: list[Fault] = []
    whole = shape(known)
    while True:
        try:
            value: Mapping[str, Any] = whole(raw)
            return value, faults
        except vol.Invalid as error:
            # What is found later comes of what was left out, as a key that is missing now.
            faults = faults or faults_of(error)
            raw = _without(raw, [path_of(each) for each in faults_of(error)])


def _without(raw: Mapping[Any, Any], paths: Sequence[Path]) -> dict[Any, Any]:
    """A mapping without the values at these paths, nor a list that holds one of them."""
    value: dict[Any, Any] = {}
    for key, content in raw.items() if all(paths) else ():
        below = [path[1:] for path in paths if path[0] is key or path[0] == key]
        if not below:
            value[key] = content
        elif all(below) and isinstance(content, Mapping):
            value[key] = _without(content, below)
    return value


def _profile(name: str, value: Mapping[str, Any]) -> Profile:
    path = (*TOP, "profiles", name)
    return Profile(
        name,
        path,
        Layer(f"profile {name}", placed_all(value.get("workers", {}), (*path, "workers"))),
        value.get("extends"),
        value.get("levels"),
    )


def _a_text(raw: Any) -> str | None:
    """A field of an alias; None if it is none."""
    return raw if isinstance(raw, str) else None


def _mapping(raw: Any) -> Mapping[Any, Any]:
    return raw if isinstance(raw, Mapping) else {}


def _or_nothing(inner: Shape) -> Shape:
    return formed(lambda raw: () if raw is None else inner(raw), Either((null, inner)))


_levels = some_levels(
    "names no level, so the profile could never be used", "leave levels out to allow all of them"
)


def _kind(known: Known) -> Shape:
    @takes(type="string", pattern=NAME, format="regex")
    def read_kind(raw: Any) -> str:
        value = pattern(raw)
        if known.kinds is None or any(fits(value, kind) for kind in known.kinds):
            return value
        raise Fault(f"there is no kind {value!r}", did_you_mean(value, known.kinds))

    return read_kind


@takes(
    type="string",
    pattern=r"^[^.\s]([^.]*[^.\s])?(\.[^.\s]([^.]*[^.\s])?)*$",
)
def _parameter(raw: Any) -> str:
    value = line(raw)
    if not all(part and part == part.strip() for part in value.split(".")):
        raise Fault(f"{value!r} is no dotted path", "for example training_config.worker-classes")
    return value
