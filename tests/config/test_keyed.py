"""Values that differ by context."""

from __future__ import annotations

import pytest
from config_cases import KINDS, cases

from taskgraph_workers.model import Change, Choice, Context, Keyed
from taskgraph_workers.resolve import resolve


@pytest.mark.parametrize(("body", "told"), cases("keyed.txt"))
def test_faults(project, body: str, told: str):
    """Each fault of a keyed value is told, with what it may be keyed by."""
    assert project.told(body, KINDS) == told


def test_kinds_are_looked_up_only_if_they_are_known(project):
    """Without the project's kinds, any kind may be a branch."""
    body = "workers: {b-gpu: {env: {A: {by-kind: {trian: a, default: b}}}}}"
    assert "there is no kind 'trian'" in project.told(body, ["train"])
    assert project.told(body) == ""


@pytest.mark.parametrize("by", ["level", "project", "tasks-for", "kind", "profile"])
def test_every_part_of_an_entry_can_differ(project, by: str):
    """By each of the five: `to`, a field, env, one value of env, resources, one of them, worker."""

    def keyed(value: str, other: str) -> str:
        return f"{{by-{by}: {{'.+': {value}, default: {other}}}}}"

    config = project.config(
        f"""
        profiles:
            p:
                workers:
                    b-gpu:
                        to: {keyed("b-cpu", "null")}
                        os: {keyed("a", "b")}
                        env: {keyed("{A: b}", "{}")}
                        resources: {keyed("{gpus: 1}", "{}")}
                        worker: {keyed("{a: b}", "{}")}
                    b-cpu:
                        env: {{A: {keyed("b", "null")}}}
                        resources: {{gpus: {keyed("1", "2")}, disk: {keyed("1GiB", "2GiB")}}}
        """
    )
    whole, parts = config.profiles["p"].layer.entries.values()
    assert isinstance(whole, Change)
    assert isinstance(parts, Change)
    assert whole.to == Keyed(by, {".+": "b-cpu", "default": None})
    assert whole.fields == {"os": Keyed(by, {".+": "a", "default": "b"})}
    assert whole.env == Keyed(by, {".+": {"A": "b"}, "default": {}})
    assert whole.resources == Keyed(by, {".+": {"gpus": 1}, "default": {}})
    assert whole.worker == Keyed(by, {".+": {"a": "b"}, "default": {}})
    assert parts.env == {"A": Keyed(by, {".+": "b", "default": None})}
    assert parts.resources == {
        "gpus": Keyed(by, {".+": 1, "default": 2}),
        "disk": Keyed(by, {".+": 1024, "default": 2048}),
    }


def test_a_value_deep_in_worker_is_picked(project):
    """What is keyed inside `worker` is a plain value once a task is placed."""
    config = project.config(
        """
        profiles:
            p:
                workers:
                    b-gpu:
                        worker:
                            mounts:
                                - {a: {by-level: {"3": [x], default: {by-kind: {k: y, z: z}}}}}
        """
    )
    for level, kind, picked in (("3", "k", ["x"]), ("1", "k", "y"), ("2", "z", "z")):
        placement = resolve(config, "b-gpu", Choice("p"), Context(level=level, kind=kind))
        assert placement.worker["mounts"].value == [{"a": picked}]
