"""What holds of every placement, whatever the configuration."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from placing import change, layer, plain, profile

from taskgraph_workers.errors import PlacementError
from taskgraph_workers.model import (
    ALIAS_FIELDS,
    Choice,
    Config,
    Context,
    Keyed,
    Layer,
    Placement,
    Requirement,
    Value,
)
from taskgraph_workers.resolve import layers_of, resolve, task_env, unmet

# --- Any configuration, over few names, so that its parts meet -------------------------------

NAMES = ("a", "b", "c", "d", "succeed")
KEYS = (*NAMES, "[ab]", "[b-d]", ".*", "default")
ENV_NAMES = ("X", "Y", "Z")
POOLS = ("lab/{alias}", "t-{level}/x", "{trust-domain}/y", "t/{", "t/{alias.x}")


def maybe_keyed(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly the value itself, at times keyed, also where no branch or two of them hold."""
    branches = st.dictionaries(st.sampled_from(("1", "[13]", ".", "default")), values, min_size=1)
    keyed = st.builds(Keyed, st.sampled_from(("level", "kind")), branches)
    return st.integers(0, 7).flatmap(lambda die: values if die else keyed)


def part(names: tuple[str, ...]) -> st.SearchStrategy[Any]:
    values = maybe_keyed(st.sampled_from(("1", "2", None)))
    return maybe_keyed(st.dictionaries(st.sampled_from(names), values, max_size=2))


FIELDS = {
    "provisioner": maybe_keyed(st.sampled_from(("p", "{trust-domain}"))),
    "worker-type": maybe_keyed(st.sampled_from(("w", "{alias}"))),
    "implementation": st.sampled_from(("docker-worker", "generic-worker", "scriptworker-signing")),
    "os": st.just("linux"),
}
MACHINES = st.fixed_dictionaries(
    {}, optional={"env": part(ENV_NAMES), "resources": part(("gpus",))}
)
CHANGES = st.sampled_from(NAMES) | st.fixed_dictionaries(
    {},
    optional={
        "to": maybe_keyed(st.sampled_from((*NAMES, None))),
        "env": part(ENV_NAMES),
        "resources": part(("gpus",)),
        "worker": part(("m",)),
        **FIELDS,
    },
)
ENTRIES = CHANGES | CHANGES | st.sampled_from(POOLS) | st.none() | maybe_keyed(CHANGES)
TABLES = st.dictionaries(st.sampled_from(KEYS), ENTRIES, max_size=4)
ALIASES = st.dictionaries(st.sampled_from(KEYS), st.fixed_dictionaries(FIELDS), max_size=2)
GPU = dict(zip(ALIAS_FIELDS, ("p", "{alias}", "docker-worker", "linux")))
PROTECTED = st.lists(st.sampled_from(KEYS), max_size=1).map(tuple)
REQUIRED = st.builds(
    Requirement,
    st.just(()),
    st.sampled_from(KEYS).map(lambda key: (key,)),
    st.sampled_from(ENV_NAMES).map(lambda name: (name,)),
)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Two aliases at least; three profiles, each of which may extend one before it."""
    parents = {"p": (None,), "q": (None, "p"), "r": (None, "p", "q")}
    aliases = {"a": GPU, "b": GPU, **draw(ALIASES)}
    return Config(
        aliases={name: change(said, "aliases", name) for name, said in aliases.items()},
        workers=layer(
            "workers", draw(st.dictionaries(st.sampled_from(KEYS), MACHINES, max_size=3))
        ),
        profiles={
            name: profile(name, draw(TABLES), extends=draw(st.sampled_from(above)))
            for name, above in parents.items()
        },
        require=tuple(draw(st.lists(REQUIRED, max_size=2))),
        protected_workers=draw(PROTECTED),
        protected_kinds=draw(PROTECTED),
    )


OVERRIDES = st.lists(TABLES, max_size=2).map(
    lambda tables: tuple(layer(f"run {at}", said) for at, said in enumerate(tables))
)
CHOICES = st.builds(Choice, st.sampled_from((None, "p", "q", "r")), st.just("test"), OVERRIDES)
CONTEXTS = st.builds(
    Context,
    st.sampled_from(("1", "3")),
    kind=st.sampled_from(("", "a", "1")),
    trust_domain=st.just("t"),
)
ASKED = st.sampled_from(NAMES)
SAID = (configs(), ASKED, CHOICES, CONTEXTS)


def placed(config: Config, asked: str, choice: Choice, context: Context) -> Placement | str:
    """The placement, or the refusal as text; no other error is let through."""
    try:
        return resolve(config, asked, choice, context)
    except PlacementError as refusal:
        return str(refusal)


def outcome(placement: Placement | str) -> Any:
    """All that a task gets to see of a placement."""
    if isinstance(placement, str):
        return "refused"
    parts = (placement.fields, placement.env, placement.env_override, placement.worker)
    return placement.chain, placement.moved, placement.resources, *map(plain, parts)


# --- Properties -----------------------------------------------------------------------------

many = settings(max_examples=60)


@many
@given(*SAID)
def test_placing_is_pure(config: Config, asked: str, choice: Choice, context: Context):
    """Placed or refused, never another error; the same again, and nothing given is changed."""
    before = copy.deepcopy((config, choice, context))
    first = placed(config, asked, choice, context)
    if isinstance(first, Placement):
        task_env(first, {"X": "own"})
    assert placed(config, asked, choice, context) == first
    assert (config, choice, context) == before


@many
@given(*SAID, ASKED)
def test_another_placement_in_between_changes_nothing(
    config: Config, asked: str, choice: Choice, context: Context, other: str
):
    """To another profile and back: the placement is the same."""
    first = placed(config, asked, choice, context)
    for profile_name in (None, "p", "q", "r"):
        placed(config, other, replace(choice, profile=profile_name), context)
    assert placed(config, asked, choice, context) == first


@many
@given(*SAID)
def test_a_chain_leads_on_from_each_of_its_names(
    config: Config, asked: str, choice: Choice, context: Context
):
    """A chain starts at the asked name, has no name twice, and is the same from any name on."""
    placement = placed(config, asked, choice, context)
    assume(isinstance(placement, Placement))
    assert placement.asked == asked
    assert len(set(placement.chain)) == len(placement.chain)
    for at, name in enumerate(placement.chain):
        rest = placed(config, name, choice, context)
        assert isinstance(rest, str) or rest.chain == placement.chain[at:]


@many
@given(*SAID, st.dictionaries(st.sampled_from((*ENV_NAMES, "OWN")), st.just("own")))
def test_a_tasks_own_env_is_never_lost(
    config: Config, asked: str, choice: Choice, context: Context, own: dict[str, str]
):
    """Only a run's override changes what a task says; no null is left, and every value is told."""
    placement = placed(config, asked, choice, context)
    assume(isinstance(placement, Placement))
    env, said = task_env(placement, own)
    for name in own:
        if name not in placement.env_override:
            assert env[name] == "own"
    assert set(env) == {name for name, value in said.items() if value.value is not None}
    assert all(env[name] == said[name].value for name in env)
    missing = {name for each in placement.require for name in each.env} - set(env)
    assert bool(unmet(placement, env)) == bool(missing)


@many
@given(*SAID)
def test_a_protected_name_stays(config: Config, asked: str, choice: Choice, context: Context):
    """Whatever profiles and run say, a protected name has the fields it has without them."""
    config = replace(config, protected_workers=(asked,))
    under = placed(config, asked, choice, context)
    bare = placed(config, asked, Choice(), context)
    assume(isinstance(bare, Placement))
    assert under.fields == bare.fields
    assert (under.chain, under.moved, under.env_override) == ((asked,), False, {})


@many
@given(*SAID)
def test_a_profile_without_entries_changes_nothing(
    config: Config, asked: str, choice: Choice, context: Context
):
    """It is as no profile; and as its parent, where it extends one."""
    for parent in (None, "p"):
        empty = profile("empty", {}, extends=parent)
        with_it = replace(config, profiles={**config.profiles, "empty": empty})
        under = placed(with_it, asked, replace(choice, profile="empty"), context)
        above = placed(with_it, asked, replace(choice, profile=parent), context)
        assert outcome(under) == outcome(above)


@many
@given(*SAID)
def test_a_child_can_drop_all_that_its_parent_says(
    config: Config, asked: str, choice: Choice, context: Context
):
    """A child with null for each key of its parent is as no profile at all."""
    nothing = dict.fromkeys(config.profiles["p"].layer.entries)
    child = profile("child", nothing, extends="p")
    config = replace(config, profiles={**config.profiles, "child": child})
    under = placed(config, asked, replace(choice, profile="child"), context)
    # Patterns that clash in the parent clash in such a child, too.
    assume(isinstance(under, Placement) or "both match" not in under)
    assert outcome(under) == outcome(placed(config, asked, replace(choice, profile=None), context))


def strength(layers: tuple[Layer, ...]) -> dict[str, int]:
    """How strong each source is; all others are the weakest."""
    return {each.source: at for at, each in enumerate(reversed(layers), start=2)} | {"workers": 1}


def overridden(value: Value | None) -> list[Value]:
    return [] if value is None else [value, *overridden(value.overrode)]


@many
@given(*SAID)
def test_only_the_weaker_is_overridden(
    config: Config, asked: str, choice: Choice, context: Context
):
    """Back along what a value overrode, sources only ever get weaker, and the alias is last."""
    placement = placed(config, asked, choice, context)
    assume(isinstance(placement, Placement))
    ranks = strength(layers_of(config, choice))
    parts = (placement.fields, placement.env, placement.resources, placement.worker)
    for value in (value for each in parts for value in each.values()):
        sources = [each.source for each in overridden(value)]
        told = [ranks.get(source, 0) for source in sources]
        assert told == sorted(told, reverse=True)
        assert "workers.aliases" not in sources[:-1]


@many
@given(*SAID)
def test_a_silent_placement_is_what_taskgraph_does(
    config: Config, asked: str, choice: Choice, context: Context
):
    """Where nothing is said, the fields are those of the asked alias, and a task keeps its env."""
    placement = placed(config, asked, choice, context)
    assume(isinstance(placement, Placement) and placement.silent)
    alone = placed(Config(aliases=config.aliases), asked, Choice(), context)
    assert plain(placement.fields) == plain(alone.fields)
    assert task_env(placement, {"X": "own"})[0] == {"X": "own"}
    assert unmet(placement, []) == []
