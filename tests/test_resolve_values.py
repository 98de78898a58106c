"""Keyed values, templates, origins and refusals: what lies below the rules of placement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from placing import config, layer, plain, profile
from test_resolve import ALIASES, CONTEXT, POOL, place, refusal

from taskgraph_workers.errors import INCOMPLETE, NO_BRANCH, PlacementError, Problem
from taskgraph_workers.keyed import pick
from taskgraph_workers.model import Choice, Config, Context, Keyed, Value
from taskgraph_workers.resolve import is_known, lineage, resolve, task_env

# --- Keyed values ---------------------------------------------------------------------------


def keyed(by: str, **choices: Any) -> Keyed:
    return Keyed(by, choices)


@pytest.mark.parametrize(
    ("value", "picked", "path"),
    [
        ("plain", "plain", ()),
        (Keyed("level", {"1": "a", "3": "b"}), "a", ("by-level", "1")),
        (Keyed("kind", {"tr.*": "a", "default": "b"}), "a", ("by-kind", "tr.*")),
        (Keyed("project", {"x": "a", "default": "b"}), "b", ("by-project", "default")),
        (Keyed("tasks-for", {".*": "a", "default": "b"}), "b", ("by-tasks-for", "default")),
        (Keyed("profile", {"child": "a", "default": "b"}), "b", ("by-profile", "default")),
        (
            Keyed("level", {"1": Keyed("kind", {"train": "a"}), "default": "b"}),
            "a",
            ("by-level", "1", "by-kind", "train"),
        ),
    ],
)
def test_the_branch_that_holds_is_picked(value: Any, picked: str, path: tuple[str, ...]):
    """Exactly, then by pattern, then `default`, also for what is unknown; keyed values nest."""
    assert pick(value, CONTEXT, ("at",)) == (picked, ("at", *path))


@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        (keyed("level", **{"3": 1}), "no branch for level '1', and no default", "there is: 3"),
        (keyed("tasks-for", x=1), "no branch for unknown tasks-for, and no default", "there is: x"),
        (
            Keyed("kind", {"t.*": 1, ".*n": 2}),
            "'t.*' and '.*n' both match 'train'",
            "write the name itself as a key",
        ),
    ],
)
def test_a_value_without_a_branch_is_refused(value: Keyed, message: str, hint: str):
    """No branch, or two patterns, is an error that says where and what there is."""
    with pytest.raises(PlacementError) as caught:
        pick(value, CONTEXT, ("at",))
    assert caught.value.problems == (Problem(message, ("at", f"by-{value.by}"), hint),)


@pytest.mark.parametrize(
    "entry",
    [
        keyed("profile", child={"to": "gpu", "env": {"X": "1"}}),
        {"to": keyed("profile", child="gpu"), "env": keyed("profile", child={"X": "1"})},
        {"to": "gpu", "env": {"X": keyed("level", **{"1": keyed("profile", child="1")})}},
    ],
)
def test_a_value_may_be_keyed_anywhere(entry: Any):
    """An entry, a part of it, or one value in it may be keyed, and by the chosen profile too."""
    placed = place("a", parent={"a": entry})
    assert (placed.chain, plain(placed.env)) == (("a", "gpu"), {"X": "1"})


def test_values_inside_a_worker_may_be_keyed():
    """A `worker` is laid over a payload of any depth, so a value may be keyed at any depth."""
    by_level = keyed("level", **{"1": 60, "3": 3600})
    said = {"limits": {"max": by_level}, "mounts": [{"size": by_level}, "plain"]}
    placed = place("gpu", child={"gpu": {"worker": said}})
    assert plain(placed.worker) == {"limits": {"max": 60}, "mounts": [{"size": 60}, "plain"]}
    assert said["limits"]["max"] is by_level
    problem = refusal("gpu", child={"gpu": {"worker": {"a": [keyed("level", **{"3": 1})]}}})
    assert problem.path == ("profiles", "child", "workers", "gpu", "worker", "a", 0, "by-level")


def test_an_entry_keyed_to_nothing_is_a_null_entry():
    """A branch of null drops a parent's entry, or says nothing of a machine."""
    nothing = keyed("kind", train=None, default={"to": "gpu-4"})
    assert place("gpu", child={"gpu": nothing}, parent={"gpu": "gpu-4"}).chain == ("gpu",)
    machine = keyed("kind", align={"env": {"X": "1"}}, default=None)
    assert place("gpu", workers={"gpu": machine}).silent


@pytest.mark.parametrize("where", ["workers", "child"])
def test_an_entry_without_a_branch_says_which_it_is(where: str):
    """The path of a refused branch leads through the entry that is keyed."""
    problem = refusal("gpu", **{where: {"g.*": keyed("level", **{"3": {"env": {}}})}})
    assert problem.message == "no branch for level '1', and no default"
    assert problem.path[-2:] == ("g.*", "by-level")
    assert (problem.code, problem.names) == (NO_BRANCH, ("level",))


def test_a_field_keyed_to_nothing_is_not_said():
    """An alias field can't be removed: null leaves what is weaker."""
    placed = place("gpu", child={"gpu": {"worker-type": keyed("kind", train=None)}})
    assert placed.pool == "t-1/gpu"


# --- Templates ------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["provisioner", "worker-type"])
def test_a_pool_is_filled_in(field: str):
    """`{alias}` is the last name of the chain; `{level}` and `{trust-domain}` are the context's."""
    placed = place("a", child={"a": {"to": "gpu", field: "{alias}-{level}-{trust-domain}"}})
    assert placed.fields[field].value == "gpu-1-t"
    said = config({"a": {**ALIASES["gpu"], field: "{level}-{trust-domain}"}})
    other = Context(level="3", trust_domain="u")
    assert resolve(said, "a", Choice(), other).fields[field].value == "3-u"


@pytest.mark.parametrize("field", ["implementation", "os"])
def test_other_fields_are_taken_as_they_are(field: str):
    """Taskgraph fills in the pool alone, whatever the branches of its keyed values are called."""
    assert place("gpu", child={"gpu": {field: "{x"}}).fields[field].value == "{x"
    by_project = keyed("project", trains="{x", default="y")
    assert place("gpu", child={"gpu": {field: by_project}}).fields[field].value == "{x"
    context = replace(CONTEXT, kind=field)
    said = config(
        {**ALIASES, "gpu": {**ALIASES["gpu"], "worker-type": Keyed("kind", {field: "{alias}"})}}
    )
    assert resolve(said, "gpu", Choice(), context).pool == "t-1/gpu"


@pytest.mark.parametrize(
    "template",
    ["{", "}", "{}", "{0}", "{kind}", "{alias.x}", "{alias[x]}", "{alias:d}", "{alias!x}"],
)
def test_a_brace_that_is_no_field_is_refused(template: str):
    """A brace that can't be filled in is an error at its key, never a traceback."""
    problem = refusal("gpu", child={"gpu": {"worker-type": template}})
    assert problem.message == f"{template!r} can't be filled in"
    assert problem.path == ("profiles", "child", "workers", "gpu", "worker-type")
    assert "{alias}, {level} and {trust-domain}" in problem.hint


@pytest.mark.parametrize(
    "pool", [{"worker-type": Keyed("level", {"3": "x"})}, {"provisioner": "{"}]
)
def test_an_alias_that_cannot_be_used_here_may_be_left(pool: dict[str, Any]):
    """An alias for other levels, or with a bad template, is no error if its name is sent on."""
    aliases = {**ALIASES, "old": {**ALIASES["gpu"], **pool}}
    placed = resolve(config(aliases, child={"old": "gpu"}), "old", Choice("child"), CONTEXT)
    assert (placed.pool, placed.moved) == ("t-1/gpu", True)
    with pytest.raises(PlacementError):
        resolve(config(aliases), "old", Choice("child"), CONTEXT)


# --- Where values come from -----------------------------------------------------------------


def test_every_value_says_who_and_where():
    """Each value has a source that people know and the key path at which it stands."""
    placed = place(
        "gpu",
        run={"gpu": {"os": "macosx"}},
        child={"g.*": {"env": {"A": keyed("level", **{"1": "1"})}, "worker": {"x": 1}}},
        workers={"gpu": {"env": keyed("kind", train={"B": "2"}), "resources": {"gpus": 1}}},
    )
    entry, machine = ("profiles", "child", "workers", "g.*"), ("workers-config", "workers", "gpu")
    assert placed.env["A"] == Value("1", "profile child", (*entry, "env", "A", "by-level", "1"))
    assert placed.env["B"] == Value("2", "workers", (*machine, "env", "by-kind", "train", "B"))
    assert placed.worker["x"] == Value(1, "profile child", (*entry, "worker", "x"))
    assert placed.resources["gpus"] == Value(1, "workers", (*machine, "resources", "gpus"))
    alias = Value("linux", "workers.aliases", ("workers", "aliases", "gpu", "os"))
    assert placed.fields["os"] == Value("macosx", "run", ("run", "gpu", "os"), alias)


def test_a_tasks_own_env_has_an_origin():
    """What the task says stands between what it overrides and what overrides it."""
    placed = place("gpu", run={"gpu": {"env": {"A": "3"}}}, workers={"gpu": {"env": {"A": "1"}}})
    _, said = task_env(placed, {"A": "2", "B": "2"})
    assert said["B"] == Value("2", "task", ("env", "B"))
    assert said["A"].source == "run"
    assert said["A"].overrode == Value("2", "task", ("env", "A"), placed.env["A"])


# --- Refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["run", "child", "parent", "workers", "aliases"])
def test_patterns_clash_in_every_table(where: str):
    """Two patterns for one name are refused wherever they stand, with the way out."""
    table: dict[str, Any] = {"x.": {"env": {}}, ".1": {"env": {}}}
    said = config({**ALIASES, "x.": POOL, ".1": POOL} if where == "aliases" else ALIASES)
    if where not in ("aliases", "run"):
        said = config(ALIASES, **{where: table})
    run = (layer("run", table if where == "run" else {}),)
    with pytest.raises(PlacementError, match="both match 'x1'") as caught:
        resolve(said, "x1", Choice("child", "", run), CONTEXT)
    assert caught.value.problems[0].hint == "write the name itself as a key"
    assert caught.value.problems[0].path


def nowhere(said: Config, name: str, choice: Choice) -> Problem:
    with pytest.raises(PlacementError) as caught:
        resolve(said, name, choice, CONTEXT)
    return caught.value.problems[0]


def test_a_name_that_another_profile_knows_says_so():
    """A name that leads nowhere is never suggested to itself; who speaks of it is."""
    said = config(ALIASES, parent={"large": "gpu"})
    problem = nowhere(said, "large", Choice())
    assert problem.message.startswith("'large' leads nowhere and no profile is chosen: ")
    assert problem.hint == "profiles that speak of it: parent"
    problem = nowhere(config(ALIASES, child={"gpv": {"env": {}}}), "gpv", Choice("child"))
    assert problem.hint == "did you mean 'gpu'?"


def test_a_loop_says_where_it_can_end():
    """At the alias in it, if there is one: there what the hint says makes it right."""
    assert refusal("a", child={"a": "b", "b": "a"}).hint == "send one of them on to an alias"
    assert "gpu: gpu" in refusal("a", child={"a": "gpu"}, parent={"gpu": "a"}).hint
    assert place("a", child={"a": "gpu", "gpu": "gpu"}, parent={"gpu": "a"}).alias == "gpu"


def test_an_entry_for_no_alias_must_be_complete():
    """What is missing is named, at what is there."""
    problem = refusal("a", child={"a": "lab", "lab": {"worker-type": "x", "os": "linux"}})
    assert problem.message == (
        "'lab' is no alias (chain: a -> lab), so its entry must give "
        "provisioner, implementation too"
    )
    assert problem.path[:4] == ("profiles", "child", "workers", "lab")
    assert (problem.code, problem.names) == (INCOMPLETE, ("a", "lab"))


def test_a_profile_that_is_not_there_is_refused():
    """With a near name, and at the profile that extends it."""
    with pytest.raises(PlacementError) as caught:
        lineage(config(ALIASES), "chidl")
    assert str(caught.value) == "there is no profile 'chidl'\n    hint: did you mean 'child'?"
    said = Config(profiles={"child": profile("child", {}, extends="x")})
    with pytest.raises(PlacementError) as caught:
        lineage(said, "child")
    assert caught.value.problems[0].path == ("profiles", "child")


def test_profiles_that_extend_each_other_are_refused():
    """The loop is shown."""
    profiles = {name: profile(name, {}, extends=extends) for name, extends in ("ab", "bc", "cb")}
    with pytest.raises(PlacementError, match="extend each other in a loop: a -> b -> c -> b"):
        lineage(Config(profiles=profiles), "a")
    assert [each.name for each in lineage(config(ALIASES), "child")] == ["child", "parent"]
    assert lineage(config(ALIASES), None) == ()


def test_a_string_is_a_name_if_there_is_such_a_name():
    """Aliases and keys of entries are names; a pool is none because some pattern fits it."""
    said = config(ALIASES, workers={"w": {}}, child={"c.": "gpu", ".*/x": "t/x", "lab/x": "gpu"})
    run = (layer("run", {"r": "gpu", "t/named": "gpu"}),)
    for name in ("gpu", "phone-7", "w", "c1", "r", "t/named", "lab/x", "succeed"):
        assert is_known(said, name, run)
    for name in ("t/x", "d"):
        assert not is_known(said, name, run)


# --- Where the letter of a rule would surprise ----------------------------------------------


@pytest.mark.parametrize(
    ("said", "pool"),
    [
        ({"parent": {"gpu": "lab/x"}, "child": {"gpu": "gpu-4"}}, "t-1/gpu-4"),
        ({"parent": {"gpu": "lab/x"}, "child": {"gpu": "gpu"}}, "t-1/gpu"),
        ({"child": {"gpu": "lab/x"}, "run": {"gpu": "gpu-4"}}, "t-1/gpu-4"),
        ({"parent": {"gpu": "gpu-4"}, "child": {"gpu": "lab/x"}}, "lab/x"),
        ({"parent": {"gpu-4": "lab/x"}, "child": {"gpu": "gpu-4"}}, "lab/x"),
    ],
)
def test_a_layer_that_sends_a_name_on_is_not_overruled_by_a_weaker_pool(said: Any, pool: str):
    """A stronger name beats a weaker pool for that name, and a stronger pool a weaker name."""
    assert place("gpu", **said).pool == pool


def test_env_of_a_weaker_layer_stays_when_a_name_is_sent_on():
    """Only where the name goes is decided by the nearer layer; env still merges."""
    placed = place("gpu", parent={"gpu": {"to": "gpu", "env": {"X": "1"}}}, child={"gpu": "gpu-4"})
    assert (placed.pool, plain(placed.env)) == ("t-1/gpu-4", {"X": "1"})


def test_the_machines_that_are_reached_are_described_not_those_that_are_left():
    """Between aliases, `workers` of the last one wins; a name that is no alias may refine it."""
    workers = {"gpu": {"env": {"GPUS": "0", "OLD": "1"}}, "gpu-4": {"env": {"GPUS": "0 1 2 3"}}}
    placed = place("gpu", workers=workers, child={"gpu": "gpu-4"})
    assert plain(placed.env) == {"GPUS": "0 1 2 3", "OLD": "1"}
    workers["a"] = {"env": {"GPUS": "2 3"}}
    assert plain(place("a", workers=workers, child={"a": "gpu", "gpu": "gpu-4"}).env) == {
        "GPUS": "2 3",
        "OLD": "1",
    }


def test_a_pattern_of_workers_makes_no_name_known():
    """`workers` says what machines are: a name that only its patterns match leads nowhere yet."""
    known = config(ALIASES, workers={".*": {"env": {"X": "1"}}, "exact": {"env": {"X": "1"}}})
    assert not is_known(known, "later")
    assert is_known(known, "exact")
    assert is_known(known, "gpu")
