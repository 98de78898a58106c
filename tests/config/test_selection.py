"""A choice that is given at run time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers.config import check, located, read_selection
from taskgraph_workers.config.selection import names_of
from taskgraph_workers.errors import LEFT_OUT, ConfigError, PlacementError, dotted
from taskgraph_workers.model import Change, Choice, Config, Context, Layer, Selection
from taskgraph_workers.resolve import resolve

SOURCE = "parameter workers"
KINDS = ("train", "evaluate")
ALIAS = {
    "provisioner": "{trust-domain}-{level}",
    "implementation": "docker-worker",
    "os": "linux",
    "worker-type": "{alias}",
}


def config() -> Config:
    found, problems = check(
        {
            "workers": {"aliases": {"b-cpu": ALIAS, "b-gpu": ALIAS, "b-gpu-4": ALIAS}},
            "workers-config": {"profiles": {"spot": {"workers": {"b-big": "b-gpu"}}, "lab": {}}},
        }
    )
    assert found is not None, problems
    return found


def read(raw: Any, kinds: Any = KINDS) -> Selection:
    return read_selection(raw, SOURCE, (SOURCE,), config(), kinds)


@pytest.mark.parametrize(
    ("raw", "profiles"),
    [
        (None, {}),
        ("spot", {"default": "spot"}),
        ({"default": "spot"}, {"default": "spot"}),
        ({"train": "lab"}, {"train": "lab"}),
        ({"default": "spot", "train": "lab"}, {"default": "spot", "train": "lab"}),
        ({"profile": "spot"}, {"default": "spot"}),
        ({"profile": {"train": "lab"}}, {"train": "lab"}),
        ({}, {}),
    ],
)
def test_profiles(raw: Any, profiles: dict[str, str]):
    """A profile, or one by kind, alone or beside entries; None says nothing."""
    assert read(raw) == Selection(SOURCE, (SOURCE,), profiles)


def test_overrides():
    """Entries are a profile's; the layer is named after its source."""
    raw = {
        "profile": "spot",
        "workers": {"b-big": "b-new", "b-new": {"to": "b-cpu"}, "b-gpu": None},
    }
    at = (SOURCE, "workers")
    assert read(raw) == Selection(
        SOURCE,
        (SOURCE,),
        {"default": "spot"},
        Layer(
            SOURCE,
            {
                "b-big": Change((*at, "b-big"), to="b-new"),
                "b-new": Change((*at, "b-new"), to="b-cpu"),
                "b-gpu": None,
            },
        ),
    )


def test_a_kind_may_be_called_workers():
    """Where `workers` is no mapping, it is a kind."""
    assert read({"workers": "lab"}, ["workers"]).profiles == {"workers": "lab"}


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (
            "spto",
            "parameter workers: there is no profile 'spto'\n    hint: did you mean 'spot'?",
        ),
        (
            {"default": "spot", "trian": "spot", "evaluate": "labb"},
            "parameter workers: trian: there is no kind 'trian'\n"
            "    hint: did you mean 'train'?\n"
            "parameter workers: evaluate: there is no profile 'labb'\n"
            "    hint: did you mean 'lab'?",
        ),
        (
            8,
            "parameter workers: must be a profile, or a mapping from kinds to profiles, "
            'not the number 8\n    hint: put it in quotes: "8"',
        ),
        (
            ["spot"],
            "parameter workers: must be a profile, or a mapping from kinds to profiles, not a list",
        ),
        (
            {"profile": "spot", "worker": {}},
            "parameter workers: worker: unknown key\n    hint: did you mean 'workers'?",
        ),
        (
            {"workers": {"b-big": "b-gup", "b-cpu": {"env": {"GPUS": 0, "A": True}}}},
            "parameter workers: workers.b-big: there is no worker name 'b-gup', "
            "and it is no pool (provisioner/worker-type)\n"
            "    hint: did you mean 'b-gpu'?\n"
            "parameter workers: workers.b-cpu.env.GPUS: must be a string, not the number 0\n"
            '    hint: put it in quotes: GPUS: "0"\n'
            "parameter workers: workers.b-cpu.env.A: must be a string, not true\n"
            '    hint: put it in quotes: A: "true"',
        ),
        (
            {"workers": {"b-g.*": "b-cpu", ".*gpu": "b-cpu"}},
            "parameter workers: workers..*gpu: 'b-g.*' and '.*gpu' both match 'b-gpu'\n"
            "    hint: write the name itself as a key",
        ),
        (
            {"by-level": {"3": "spot", "default": "lab"}},
            "parameter workers: by-level: nothing can be keyed by-level here\n"
            "    hint: key the values below it",
        ),
        (
            {"workers": {True: None}},
            "parameter workers: workers.true: must be a string, not true\n"
            '    hint: put it in quotes: "true"',
        ),
    ],
)
def test_faults(raw: Any, told: str):
    """Every fault is told at once, behind the name of the source."""
    with pytest.raises(ConfigError) as caught:
        read(raw)
    assert str(caught.value) == told


def test_kinds_that_nobody_knows_are_taken():
    """Where the kinds are not known, no kind is refused."""
    assert read({"anything": "lab"}, None).profiles == {"anything": "lab"}


def test_a_value_that_contains_itself_is_refused():
    """YAML can build one; it is a fault and no endless loop."""
    raw: dict[str, Any] = {}
    raw["workers"] = raw
    with pytest.raises(ConfigError, match="parameter workers: nests too deep to be a choice"):
        read(raw)


def test_a_loop_of_overrides_names_the_source():
    """What only shows when a task is placed says which entry of the choice it comes from."""
    said = read({"profile": "spot", "workers": {"b-cpu": "b-gpu", "b-gpu": "b-cpu"}})
    assert said.overrides is not None
    with pytest.raises(PlacementError) as caught:
        resolve(config(), "b-cpu", Choice("spot", SOURCE, (said.overrides,)), Context())
    assert str(located(caught.value, config())) == (
        "parameter workers.workers.b-gpu.to: "
        "worker names lead to each other in a loop: b-cpu -> b-gpu -> b-cpu\n"
        "    hint: to end the chain at 'b-cpu', send it to itself: b-cpu: b-cpu"
    )


def test_every_name_that_can_be_asked_for(project):
    """Aliases first, then what profiles and overrides speak of and lead to; of `workers`, the
    names that a pattern of these is for.
    """
    body = """
workers: {"desk-[13]": {}, desk-7: {}, lab-8: {}, b-gup: {}, b-.*: {}}
profiles: {p: {workers: {b-x: {to: {by-level: {"3": desk-3, default: desk-1}}}, lab-.*: b-gpu}}}
select: {default: {by-level: {"3": {workers: {b-run: b-cpu}}, default: p}}}
"""
    data = project.data(body)
    data["workers"]["aliases"]["desk-.*"] = data["workers"]["aliases"]["b-gpu"]
    made, problems = check(data, project.folder)
    assert [each.path[-1] for each in problems if each.code != LEFT_OUT] == ["b-gup"]
    names = ["b-run", "b-x", "desk-1", "desk-3", "desk-7", "lab-8"]
    assert names_of(made) == ["b-cpu", "b-gpu", "b-gpu-4", "sign", *names]
    assert names_of(made, run=["b-own", ".*"])[-8:] == sorted([*names, "b-own", "b-gup"])


words = ["profile", "workers", "default", "train", "b-cpu", "to", "env", "by-level", "spot"]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(words),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(words) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_nothing_but_config_errors(raw: Any):
    """Whatever a parameter holds, it is a choice, or faults that name the parameter."""
    faults: set[str] = set()
    try:
        assert read(raw).source == SOURCE
    except ConfigError as error:
        faults = {problem.file for problem in error.problems}
    assert faults <= {SOURCE}


@pytest.mark.parametrize(
    ("path", "shown"),
    [((SOURCE, "of", "p"), "of.p"), (("of", "p"), "of.p"), ((SOURCE,), ""), ((), "")],
)
def test_the_source_is_named_once(path: tuple[str, ...], shown: str):
    """The path of a fault begins below the source, whether or not the caller's path names it."""
    with pytest.raises(ConfigError) as caught:
        read_selection("x", SOURCE, path, config())
    assert caught.value.problems[0].file == SOURCE
    assert dotted(caught.value.problems[0].path) == shown
