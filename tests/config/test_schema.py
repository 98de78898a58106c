"""The whole of `workers-config`."""

from __future__ import annotations

import pytest
from config_cases import KINDS, cases

from taskgraph_workers.errors import dotted
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


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ("profiles: {'N': {}}", "profiles.N"),
        ("profiles: {p: {workers: {'N': b-cpu}}}", "profiles.p.workers.N"),
        ("profiles: {p: {workers: {b-gpu: 'N'}}}", "profiles.p.workers.b-gpu"),
        ("profiles: {p: {workers: {b-gpu: 'a/N'}}}", "profiles.p.workers.b-gpu"),
        ("profiles: {p: {workers: {b-gpu: {worker-type: 'N'}}}}", None),
        ("profiles: {p: {extends: 'N'}}", "profiles.p.extends"),
        ("workers: {'N': {env: {A: a}}}", "workers.N"),
        ("workers: {b-gpu: {env: {by-project: {'N': {}, default: {}}}}}", None),
        ("select: {default: 'N'}", "select.default"),
        ("profiles: {p: {}}\nselect: {default: {'N': p}}", "select.default.N"),
        ("require: [{workers: 'N', env: A}]", "require[0].workers"),
        ("protect: {workers: [b-gpu, 'N']}", "protect.workers[1]"),
        ("clusters: {'N': {scheduler: flux}}", "clusters.N"),
        ("dispatch: {skus: {'N': b-gpu}, images: [a]}", "dispatch.skus.N"),
    ],
)
def test_blanks_that_nobody_sees(project, body: str, at: str | None):
    """A name that is blank, or begins or ends with a blank, is refused wherever it stands."""
    for name, what in (("b-gpu ", "has a blank at its start or end"), (" ", "is nothing but")):
        (problem,) = project.check(body.replace("N", name))
        assert problem.message.startswith(what) or "a/" in body
        assert at is None or dotted(problem.path) == f"workers-config.{at.replace('N', name)}"
        assert problem.hint == ("write 'b-gpu'" if name.strip() else "") or "a/" in body


@pytest.mark.parametrize(
    ("default", "told"),
    [
        (
            "{default: on}",
            "default: must be the name of a profile, and YAML reads on as true\n"
            '    hint: put it in quotes: default: "on"',
        ),
        ("{train: }", "train: must be the name of a profile, not empty"),
        ("{train: [p]}", "train: must be the name of a profile, not a list"),
        (
            "{trian: p, workers: {b-gpu: b-cpu}}",
            "trian: unknown key\n    hint: a profile by kind is written profile: {trian: ...}",
        ),
        (
            "{profil: p, workers: {b-gpu: b-cpu}}",
            "profil: unknown key\n    hint: did you mean 'profile'?",
        ),
    ],
)
def test_a_choice_by_kind(project, default: str, told: str):
    """What is no profile, or stands beside `workers`, is told with how to write it."""
    found = project.told(f"profiles: {{p: {{}}}}\nselect: {{default: {default}}}", KINDS)
    assert found.split("select.default.")[1] == told


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
