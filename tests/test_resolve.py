"""The rules of placement, rule by rule, with the numbers of docs/concepts/placement.md."""

from __future__ import annotations

from typing import Any

import pytest
from placing import config, layer, plain, profile, story

from taskgraph_workers.errors import AMBIGUOUS, DEAD_END, LOOP, UNMET, PlacementError, Problem
from taskgraph_workers.model import (
    ALIAS_FIELDS,
    Choice,
    Config,
    Context,
    Keyed,
    Placement,
    Requirement,
    Selection,
)
from taskgraph_workers.resolve import choose, level_problem, resolve, task_env, unmet

# --- A small project: four aliases, and the profile `child`, which extends `parent` ----------

POOL = {"provisioner": "{trust-domain}-{level}", "worker-type": "{alias}", "os": "linux"}
ALIASES = {
    "gpu": {**POOL, "implementation": "docker-worker"},
    "gpu-4": {**POOL, "implementation": "docker-worker"},
    "phone-.*": {**POOL, "implementation": "generic-worker", "os": "macosx"},
    "signing": {**POOL, "implementation": "scriptworker-signing"},
}
CONTEXT = Context(level="1", project="trains", kind="train", trust_domain="t")


def place(asked: str, run: dict[str, Any] | None = None, **said: Any) -> Placement:
    """Place a name under `child`. Entries as in config.yml: of the `run`, `child=`, `parent=`."""
    overrides = (layer("run", run, "run"),) if run else ()
    return resolve(config(ALIASES, **said), asked, Choice("child", "a test", overrides), CONTEXT)


def refusal(asked: str, **said: Any) -> Problem:
    """The one problem for which a name is not placed."""
    with pytest.raises(PlacementError) as caught:
        place(asked, **said)
    (problem,) = caught.value.problems
    return problem


# --- Rule 1: the chain ----------------------------------------------------------------------


def test_a_name_that_nothing_sends_on_is_its_own_alias():
    """A name sent nowhere ends the chain at once."""
    placed = place("gpu")
    assert placed.chain == ("gpu",)
    assert (placed.pool, placed.implementation, placed.os) == ("t-1/gpu", "docker-worker", "linux")


def test_layers_are_asked_anew_at_each_name():
    """A chain may cross the layers up and down; its last name is the alias."""
    placed = place("a", run={"c": "gpu"}, child={"a": "b"}, parent={"b": "c"})
    assert placed.chain == ("a", "b", "c", "gpu")
    assert (placed.asked, placed.alias, placed.pool) == ("a", "gpu", "t-1/gpu")


@pytest.mark.parametrize(
    ("said", "alias"),
    [
        ({"parent": {"a": "gpu"}}, "gpu"),
        ({"parent": {"a": "gpu"}, "child": {"a": "gpu-4"}}, "gpu-4"),
        ({"parent": {"a": "gpu"}, "child": {"a": "gpu-4"}, "run": {"a": "phone-1"}}, "phone-1"),
        ({"parent": {"a": "gpu"}, "child": {"a": {"env": {"X": "1"}}}}, "gpu"),
        ({"parent": {"a": "gpu"}, "child": {"a": {"to": Keyed("kind", {"train": None})}}}, "gpu"),
    ],
)
def test_the_nearest_layer_that_sends_the_name_on_decides(said: dict[str, Any], alias: str):
    """The run's overrides, the profile, what it extends; a layer that does not send is passed."""
    assert place("a", **said).chain == ("a", alias)


@pytest.mark.parametrize(
    ("asked", "who"), [("gpu", "exact"), ("gpu-4", "pattern"), ("phone-1", "default")]
)
def test_in_a_layer_the_exact_name_comes_first(asked: str, who: str):
    """Keys match as everywhere in config.yml: exactly, then as a pattern, then `default`."""
    keys = {"default": "default", "gpu.*": "pattern", "gpu": "exact"}
    placed = place(asked, child={key: {"env": {"WHO": said}} for key, said in keys.items()})
    assert plain(placed.env) == {"WHO": who}


def test_each_layer_is_matched_on_its_own():
    """A pattern of a nearer layer beats the exact name of a farther one, and clashes with none."""
    assert place("a1", child={"a.": "gpu-4"}, parent={"a1": "gpu"}).alias == "gpu-4"
    assert place("a1", child={"a.": "gpu-4"}, parent={".1": "gpu"}).alias == "gpu-4"


def test_two_patterns_of_a_layer_are_an_error():
    """Where two patterns of one layer match, neither is better: both are named."""
    problem = refusal("a1", child={"a.": "gpu", ".1": "gpu-4"})
    assert (problem.message, problem.code) == ("'a.' and '.1' both match 'a1'", AMBIGUOUS)


def test_a_name_sent_to_itself_ends_the_chain():
    """So a child takes back what its parent sends on, and a pattern may match its own target."""
    assert place("gpu", child={"gpu": "gpu"}, parent={"gpu": "gpu-4"}).chain == ("gpu",)
    assert place("gpu-4", child={"gpu.*": "gpu"}).chain == ("gpu-4", "gpu")


def test_a_loop_is_shown():
    """Names that lead to each other are an error with the chain, at the entry that closes it."""
    problem = refusal("a", child={"a": "b", "c": "b"}, parent={"b": "c"})
    assert problem.message == "worker names lead to each other in a loop: a -> b -> c -> b"
    assert problem.path == ("profiles", "child", "workers", "c", "to")
    assert (problem.code, problem.names) == (LOOP, ("b", "c"))


def test_a_dead_end_is_shown():
    """A chain that ends at no alias is an error with the chain, its last entry, and a near name."""
    problem = refusal("a", child={"a": "b"}, parent={"b": "gpu_4"})
    assert problem.message == (
        "'gpu_4' leads nowhere under profile 'child' (chain: a -> b -> gpu_4): "
        "it is no alias in workers.aliases"
    )
    assert problem.hint == "did you mean 'gpu-4'?"
    assert problem.path == ("profiles", "parent", "workers", "b", "to")
    assert (problem.code, problem.names) == (DEAD_END, ("a", "b", "gpu_4"))


LAB = {"provisioner": "lab", "worker-type": "x", "implementation": "generic-worker", "os": "linux"}


def test_an_entry_can_stand_for_an_alias():
    """A name that is no alias and leads to none is placed by an entry with all four fields."""
    placed = place("lab", child={"lab": {"worker-type": "{alias}-9"}}, parent={"lab": LAB})
    assert (placed.pool, placed.implementation) == ("lab/lab-9", "generic-worker")
    assert place("a", child={"a": "lab"}, parent={"lab": LAB}).pool == "lab/x"


# --- Rule 2: what applies, weakest first ----------------------------------------------------

# Who may speak, weakest first, of the names of the chain "a" -> "gpu".
ORDER = [
    *("workers gpu", "workers a"),
    *("parent gpu", "parent a", "child gpu", "child a"),
    "task",
    *("run gpu", "run a"),
]


def everyone(*keys: str) -> dict[str, Any]:
    """Entries in which everyone says who speaks, at the key that some keys lead to."""
    said: dict[str, Any] = {}
    for who in ORDER:
        place, _, name = who.partition(" ")
        entry: Any = who
        for key in reversed(keys):
            entry = {key: entry}
        said.setdefault(place, {})[name] = entry
    del said["task"]
    said["parent"]["a"]["to"] = "gpu"
    return said


def test_env_applies_in_order():
    """Weakest first: workers, alias before asked name; profiles, parents first; task; the run."""
    env, said = task_env(place("a", **everyone("env", "X")), {"X": "task"})
    assert env == {"X": "run a"}
    assert story(said["X"]) == ORDER[::-1]


@pytest.mark.parametrize("part", ["resources", "worker"])
def test_resources_and_worker_apply_in_the_same_order(part: str):
    """They know the same order as env, without the task."""
    placed = place("a", **everyone(part, "x"))
    assert story(getattr(placed, part)["x"]) == [who for who in ORDER[::-1] if who != "task"]


@pytest.mark.parametrize("key", ALIAS_FIELDS)
def test_fields_apply_over_the_alias(key: str):
    """The alias is weakest; the profiles and the run replace its fields one by one."""
    told = story(place("a", **{**everyone(key), "workers": {}}).fields[key])
    assert told == [*ORDER[:6:-1], *ORDER[5:1:-1], ALIASES["gpu"][key]]


def test_a_pool_goes_over_what_a_parent_sends_on():
    """A child that gives a pool keeps all else of the alias that its parent sends the name to."""
    placed = place(
        "a", child={"a": "lab/x"}, parent={"a": "gpu"}, workers={"gpu": {"env": {"G": "0"}}}
    )
    assert (placed.chain, placed.pool, plain(placed.env)) == (("a", "gpu"), "lab/x", {"G": "0"})


@pytest.mark.parametrize("part", ["env", "resources", "worker"])
def test_parts_merge_key_by_key(part: str):
    """Each key is replaced on its own, and a value is replaced as a whole."""
    placed = place(
        "gpu",
        child={"gpu": {part: {"x": "2", "y": {"b": 1}}}},
        parent={"gpu": {part: {"x": "1", "y": {"a": 1}, "z": "1"}}},
    )
    assert plain(getattr(placed, part)) == {"x": "2", "y": {"b": 1}, "z": "1"}


def test_null_removes_a_key():
    """Null takes away what is weaker, and what is stronger may set it again."""
    placed = place(
        "gpu",
        run={"gpu": {"env": {"TASK": None}}},
        child={"gpu": {"env": {"A": None, "B": None}, "worker": {"docker-image": None}}},
        workers={"gpu": {"env": {"A": "1", "B": "1", "C": "1"}}},
    )
    env, said = task_env(placed, {"B": "task", "TASK": "task"})
    assert env == {"B": "task", "C": "1"}
    assert story(said["A"]) == [None, "1"]
    assert story(said["TASK"]) == [None, "task"]
    assert plain(placed.worker) == {"docker-image": None}


def test_a_null_entry_drops_what_is_above_it():
    """`NAME: null` drops a parent's entry whole, not the run's, and not that of another name."""
    parent = {"a": {"to": "gpu", "env": {"X": "1"}}, "gpu": {"env": {"Y": "1"}}}
    said = {"parent": parent, "run": {"a": "gpu-4"}, "child": {"a": None}}
    assert place("a", **said).chain == ("a", "gpu-4")
    said = {"parent": {**parent, "gpu-4": "gpu"}, "child": {"gpu-4": None}}
    assert place("gpu-4", **said).chain == ("gpu-4",)
    assert plain(place("a", **said).env) == {"X": "1", "Y": "1"}


# --- Rule 3: the choice ---------------------------------------------------------------------

RUN, OTHER = layer("run", {"a": "gpu"}), layer("other", {"a": "gpu-4"})


@pytest.mark.parametrize(
    ("selections", "expected"),
    [
        ([], Choice()),
        ([Selection("one", profiles={"default": "p"})], Choice("p", "one")),
        ([Selection("one", profiles={"default": "p", "train": "q"})], Choice("q", "one")),
        (
            [
                Selection("one", profiles={"default": "p"}),
                Selection("two", profiles={"train": "q"}),
            ],
            Choice("p", "one"),
        ),
        (
            [
                Selection("one", profiles={"align": "p"}),
                Selection("two", profiles={"default": "q"}),
            ],
            Choice("q", "two"),
        ),
        ([Selection("one", profiles={"align": "p"})], Choice()),
        ([Selection("one", overrides=RUN)], Choice(None, "", (RUN,))),
        (
            [Selection("one", overrides=RUN), Selection("two", (), {"default": "q"}, OTHER)],
            Choice("q", "two", (RUN, OTHER)),
        ),
        (
            [Selection("one", profiles={"default": "p"}), Selection("two", overrides=OTHER)],
            Choice("p", "one"),
        ),
    ],
)
def test_the_first_source_that_speaks_wins(selections: list[Selection], expected: Choice):
    """Sources in order, the kind before `default`; a source with neither leaves it to the next."""
    assert choose(selections, "train") == expected


# --- Rule 4: the guards ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("child_levels", "parent_levels", "level", "fits"),
    [
        (None, None, "3", True),
        ({"1"}, None, "1", True),
        ({"1"}, None, "3", False),
        (None, {"1"}, "3", False),
        ({"3"}, {"1"}, "3", True),
        ({"1"}, {"3"}, "3", False),
    ],
)
def test_a_profile_is_for_its_levels(child_levels, parent_levels, level: str, fits: bool):
    """A profile without levels has those of the nearest profile it extends that has some."""
    profiles = {
        "child": profile("child", {}, extends="parent", levels=child_levels),
        "parent": profile("parent", {}, levels=parent_levels),
    }
    problem = level_problem(Config(profiles=profiles), Choice("child", "select.default"), level)
    if fits:
        assert problem is None
    else:
        assert "profile 'child' is for level 1" in problem.message
        assert "this is level 3 (chosen by select.default)" in problem.message
        assert problem.path == ("profiles", "child" if child_levels else "parent", "levels")


NEEDS = Requirement(("require", 0), workers=("a.*",), env=("GPUS", "WORKSPACE"))


@pytest.mark.parametrize("asked", ["a", "b"])
def test_a_requirement_counts_for_every_name_of_the_chain(asked: str):
    """Asked for or only passed on the way, a name that it matches makes its env required."""
    placed = place(asked, child={"b": "a", "a": "gpu"}, require=(NEEDS,))
    assert placed.require == (NEEDS,)
    assert unmet(placed, ["WORKSPACE", "GPUS"]) == []
    (problem,) = unmet(placed, ["WORKSPACE"])
    way = " (chain: b -> a -> gpu)" if asked == "b" else " (chain: a -> gpu)"
    expected = f"GPUS is required on {asked!r} and is not set{way} under profile 'child'"
    assert (problem.text, problem.path, problem.code) == (expected, ("require", 0), UNMET)
    assert place("gpu", require=(NEEDS,)).require == ()


@pytest.mark.parametrize("protected", ["workers", "kinds"])
def test_what_is_protected_is_left_alone(protected: str):
    """By name or by kind, protection beats every profile, and even a run's override."""
    protect = {f"protected_{protected}": ("x", {"workers": "g.u", "kinds": "tr.*"}[protected])}
    change_all = {"gpu": {"to": "gpu-4", "worker-type": "x", "env": {"X": "1"}, "worker": {"y": 1}}}
    placed = place("gpu", run=change_all, child=change_all, **protect)
    assert (placed.chain, placed.pool, placed.silent) == (("gpu",), "t-1/gpu", True)


def test_a_protected_name_can_be_a_target():
    """Protection keeps a name from being moved, not other names from being sent to it."""
    said = {"child": {"a": "gpu", "gpu": "gpu-4"}, "workers": {"gpu": {"env": {"GPUS": "0"}}}}
    placed = place("a", **said, protected_workers=("gpu",))
    assert (placed.chain, plain(placed.env)) == (("a", "gpu"), {"GPUS": "0"})


@pytest.mark.parametrize(
    ("key", "pool"), [(".*", "t-1/signing"), ("default", "t-1/signing"), ("signing", "lab/x")]
)
def test_an_implementation_without_env_moves_only_by_name(key: str, pool: str):
    """Scriptworkers and their like are moved by an entry that names them exactly, or not."""
    assert place("signing", child={key: "lab/x"}).pool == pool


def test_an_implementation_without_env_never_gets_env():
    """Neither from its machine nor from profile or run; and so nothing is required of it."""
    entry = {"signing": {"env": {"X": "1"}, "resources": {"cores": 1}}}
    require = (Requirement((), (".*",), ("X",)),)
    placed = place("signing", run=entry, child=entry, workers=entry, require=require)
    assert (placed.env, placed.env_override, placed.require) == ({}, {}, ())
    assert plain(placed.resources) == {"cores": 1}
    assert task_env(placed, {"OWN": "1"})[0] == {"OWN": "1"}


@pytest.mark.parametrize("name", ["always-optimized", "succeed"])
def test_what_is_built_in_is_never_moved(name: str):
    """Taskgraph's own worker types have no machine: nothing moves them or gives them env."""
    said = {name: {"to": "gpu", "env": {"X": "1"}}}
    placed = place(name, run=said, child=said, workers={name: {"env": {"X": "1"}}})
    pool = {"always-optimized": "invalid/always-optimized", "succeed": "built-in/succeed"}[name]
    assert (placed.chain, placed.pool, placed.silent) == ((name,), pool, True)
    assert placed.implementation == name


# --- Rule 6: what is left to the machine ----------------------------------------------------


def test_what_the_machine_finds_out_passes_through():
    """A `detect` is a value like any other: it is overridden, it overrides, and it is content."""
    detect, inherited = {"detect": "gpu-memory", "share": 0.75}, {"detect": "inherited"}
    placed = place(
        "gpu",
        child={"gpu": {"env": {"WORKSPACE": detect, "GPUS": inherited}}},
        workers={"gpu": {"env": {"WORKSPACE": "12000"}}},
        require=(Requirement((), ("gpu",), ("GPUS", "WORKSPACE")),),
    )
    env, said = task_env(placed, {})
    assert env == {"WORKSPACE": detect, "GPUS": inherited}
    assert story(said["WORKSPACE"]) == [detect, "12000"]
    assert unmet(placed, env) == []
    assert task_env(placed, {"GPUS": "2"})[0] == {"WORKSPACE": detect, "GPUS": "2"}


# --- Rule 7: what nothing is said about -----------------------------------------------------


@pytest.mark.parametrize(
    ("said", "silent"),
    [
        ({}, True),
        ({"child": {"gpu-4": "lab/x"}, "run": {"gpu-4": {"env": {"X": "1"}}}}, True),
        ({"child": {"gpu": "gpu"}}, True),
        ({"child": {"gpu": "t-1/gpu"}}, True),
        ({"workers": {"gpu": {"resources": {"gpus": 1}}}}, True),
        ({"child": {"gpu": "gpu-4"}}, False),
        ({"child": {"gpu": {"os": "macosx"}}}, False),
        ({"workers": {"gpu": {"env": {"X": "1"}}}}, False),
        ({"run": {"gpu": {"env": {"X": "1"}}}}, False),
        ({"child": {"gpu": {"worker": {"max-run-time": 60}}}}, False),
        ({"require": (Requirement((), ("gpu",), ("X",)),)}, False),
    ],
)
def test_a_placement_knows_that_nothing_is_said(said: dict[str, Any], silent: bool):
    """Other names, the name itself, the same pool, resources: none of these touches a task."""
    assert place("gpu", **said).silent is silent
