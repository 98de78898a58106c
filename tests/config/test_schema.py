"""The whole of `workers-config`."""

from __future__ import annotations

import pytest
from config_cases import KINDS, cases

from taskgraph_workers.model import Config, Keyed, Layer, Requirement, Select, Selection


@pytest.mark.parametrize(("body", "told"), cases("schema.txt"))
def test_faults(project, body: str, told: str):
    """Each fault outside of entries is told with its place."""
    assert project.told(body, KINDS) == told


def test_sections_may_be_empty(project):
    """A key with nothing below it, as where all is commented out, says nothing."""
    sections = ("include", "workers", "profiles", "select", "require", "protect", "clusters")
    config = project.config("\n".join(f"{name}:" for name in (*sections, "dispatch")))
    assert config == Config(aliases=config.aliases)
    config = project.config("profiles: {p: }\nselect: {default: }\nworkers: {b-gpu: }")
    assert config.profiles["p"].layer == Layer("profile p", {})
    assert config.select == Select()


def test_profiles(project):
    """A profile knows what it extends, its levels as text, and where it stands."""
    config = project.config("profiles: {p: {}, q: {extends: p, levels: [1, '3']}}")
    assert config.profiles["p"].levels is None
    assert config.profiles["q"].extends == "p"
    assert config.profiles["q"].levels == {"1", "3"}
    assert config.profiles["q"].path == ("workers-config", "profiles", "q")
    assert config.profiles["q"].layer.source == "profile q"


def test_requirements_and_protection(project):
    """A list or its only item; each requirement knows its place."""
    config = project.config(
        """
        workers: {b-.*: {env: {A: a, B: b}}}
        require: [{workers: b-gpu, env: A}, {workers: [b-gpu, b-cpu], env: [A, B]}]
        protect: {workers: images, kinds: [docker-.*]}
        """,
        KINDS,
    )
    assert config.require == (
        Requirement(("workers-config", "require", 0), ("b-gpu",), ("A",)),
        Requirement(("workers-config", "require", 1), ("b-gpu", "b-cpu"), ("A", "B")),
    )
    assert config.protected_workers == ("images",)
    assert config.protected_kinds == ("docker-.*",)


def test_a_keyed_default(project):
    """`select.default` may be keyed; each branch is a choice of its own."""
    config = project.config(
        """
        profiles: {p: {}, q: {}}
        select:
            parameter: training_config.taskcluster.worker-classes
            default: {by-tasks-for: {github-push: p, default: {train: q, default: p}}}
        """
    )
    at = ("workers-config", "select", "default", "by-tasks-for")
    assert config.select.parameter == "training_config.taskcluster.worker-classes"
    assert config.select.default == Keyed(
        "tasks-for",
        {
            "github-push": Selection("select.default", (*at, "github-push"), {"default": "p"}),
            "default": Selection(
                "select.default", (*at, "default"), {"train": "q", "default": "p"}
            ),
        },
    )
