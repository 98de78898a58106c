"""Generated aliases: inert among a project's own, and never in the way of another thread."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import sleep
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from taskgraph.util.attributes import keymatch
from taskgraph.util.workertypes import get_worker_type, worker_type_implementation

from taskgraph_workers.graph.names import add_alias, asked_name, generated_name, project_aliases
from taskgraph_workers.model import ALIAS_FIELDS, Choice, Placement, Value

ODD = "b.gpu (4×) [a-z]+|{alias}\\d*$^_at_?\n☃"
NAMES = st.text(max_size=12) | st.text("ab._-(+é", max_size=8) | st.just(ODD)


def placement(asked: str, *fields: str) -> Placement:
    said = {
        name: Value(value, "test", ())
        for name, value in zip(ALIAS_FIELDS, fields or ("p", "w", "docker-worker", "linux"))
    }
    return Placement((asked,), Choice(), said, moved=True)


class Graph(dict):
    """What a graph configuration is to what is tested here; hashed as one is."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def graph(aliases: dict[str, Any] | None = None) -> Graph:
    return Graph({"workers": {"aliases": aliases or {}}, "trust-domain": "shop"})


@settings(deadline=None)
@given(NAMES, NAMES)
@example(ODD, "b.gpu")
@example("a.b", "a_2eb")
@example("a", "a_at_0123456789ab")
def test_a_generated_name_tells_what_was_asked_for(asked: str, other: str):
    """It gives the asked name back, is plain text, and matches no other name as a pattern."""
    name = generated_name(placement(asked))
    assert asked_name(name) == asked
    assert re.fullmatch(r"[A-Za-z0-9_-]+", name)
    assert re.match(name + "$", name)
    assert not re.match(name + "$", asked)
    another = generated_name(placement(other))
    assert (another == name) is (other == asked)
    assert bool(re.match(name + "$", another)) is (other == asked)


@given(st.sampled_from(ALIAS_FIELDS))
def test_the_name_tells_what_became_of_it(field: str):
    """Placements that differ in any alias field have names of their own."""
    one = placement("b-gpu")
    two = replace(one, fields={**one.fields, field: Value("other", "test", ())})
    assert generated_name(one) != generated_name(two)
    assert generated_name(one) == generated_name(placement("b-gpu"))


@given(NAMES)
@example("b-gpu_at_0123456789")
@example("b_gpu_at_0123456789ab")
@example("b-gpu_at_0123456789ab-more")
def test_other_names_are_left_alone(name: str):
    """A name that nobody generated is none."""
    assert asked_name(name) is None


def test_among_other_aliases():
    """A generated name is found by itself, whatever patterns the project has; they keep theirs."""
    own = {"implementation": "generic-worker", "os": "linux", "provisioner": "own"}
    patterns = {"b-.*": {**own, "worker-type": "x"}, ".*_at_.*": {**own, "worker-type": "y"}}
    config = graph(patterns)
    place = placement("b-gpu", "away", "{alias}", "docker-worker", "linux")
    name = generated_name(place)
    add_alias(config, name, place)
    aliases = config["workers"]["aliases"]
    assert keymatch(aliases, name) == [aliases[name]]
    assert keymatch(aliases, "b-gpu") == [patterns["b-.*"]]
    assert worker_type_implementation(config, name) == ("docker-worker", "linux")
    assert get_worker_type(config, "b-gpu", "1") == ("own", "x")


def test_the_table_is_replaced():
    """Who goes through the table meanwhile keeps the one that was there."""
    before = {"b-cpu": {}}
    config = graph(before)
    place = placement("b-gpu")
    add_alias(config, "x", place)
    assert before == {"b-cpu": {}}
    after = config["workers"]["aliases"]
    assert list(after) == ["b-cpu", "x"]
    assert after["x"] == dict(zip(ALIAS_FIELDS, ("p", "w", "docker-worker", "linux")))
    add_alias(config, "x", place)
    assert config["workers"]["aliases"] is after


class Slow(dict):
    """A section of a configuration that gives way to other threads before anything is set."""

    def __setitem__(self, key: str, value: Any) -> None:
        sleep(0.0005)
        super().__setitem__(key, value)


def test_many_threads():
    """Threads that add names at the same time lose none of each other's."""
    config = Graph({"workers": Slow(aliases={f"b-{number}": {} for number in range(200)})})
    places = [placement(f"b-{number}") for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda place: add_alias(config, generated_name(place), place), places))
    assert {generated_name(each) for each in places} <= config["workers"]["aliases"].keys()


def test_the_aliases_of_the_project():
    """Generated names are left out of what the project wrote."""
    own = {"b-gpu": {}, "look_at_me": {}}
    assert project_aliases(own) == own
    bare = {"b-gpu": {}}
    assert project_aliases(bare) is bare
    assert project_aliases({**own, generated_name(placement("b.gpu")): {}}) == own
