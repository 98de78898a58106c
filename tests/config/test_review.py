"""What a valid configuration may not mean."""

from __future__ import annotations

import pytest

from taskgraph_workers.config import check
from taskgraph_workers.config.review import review
from taskgraph_workers.errors import Problem
from tests.config.conftest import Project


def reviewed(project: Project, body: str) -> list[Problem]:
    """What is told of a configuration, aliases without a level aside."""
    found = review(project.config(body), "shop")
    return [each for each in found if "share the pool a/c" not in each.message]


def only(found: list[Problem]) -> Problem:
    """The one problem that was found."""
    assert [str(each) for each in found[1:]] == []
    return found[0]


MACHINES = """
workers:
    b-gpu: {env: {GPUS: "0", WORKSPACE: "9"}}
    b-gpu-4: {env: {GPUS: "0 1 2 3", WORKSPACE: "9"}}
require: [{workers: b-gpu.*, env: [GPUS, WORKSPACE]}]
profiles:
    lab:
        levels: [1]
        workers:
"""


def under(entry: str) -> str:
    """MACHINES, and an entry of a profile."""
    return MACHINES.rstrip() + "\n            " + entry


def test_nothing_is_told_of_a_configuration_that_means_what_it_says(project: Project):
    """Moves that give their own env, or go to a name whose machines are described, are fine."""
    body = under('b-gpu-4: {provisioner: shop, worker-type: x, env: {GPUS: "0", WORKSPACE: "8"}}')
    assert reviewed(project, body) == []
    assert reviewed(project, under("b-big-gpu: b-gpu-4")) == []


def test_required_env_of_the_old_pool(project: Project):
    """A pool that changes while required env stays points at the entry that moves it."""
    told = only(reviewed(project, under("b-gpu: shop/a100")))
    assert (told.severity, told.file, told.line, told.column) == ("warning", "config.yml", 10, 17)
    assert told.message == (
        "this places 'b-gpu' on shop/a100, where GPUS, WORKSPACE are still what 'b-gpu' has on "
        "shop-1/b-gpu"
    )
    assert told.hint.endswith('env: {GPUS: "0", WORKSPACE: "9"}')


def test_required_env_by_way_of_another_name(project: Project):
    """An alias that is sent on has the env of the machines it reaches, not of its own."""
    assert reviewed(project, under("b-gpu: b-gpu-4")) == []


def test_required_env_that_was_thought_of_in_part(project: Project):
    """Where the entry gives other required env, what it leaves is worth no more than an info."""
    entry = 'b-gpu: {provisioner: shop, worker-type: a100, env: {WORKSPACE: "30"}}'
    told = only(reviewed(project, under(entry)))
    assert told.severity == "info"
    assert "where GPUS is still what 'b-gpu' has" in told.message


def test_required_env_from_a_parent(project: Project):
    """A profile that changes the pool again keeps what its parent gave for the other one."""
    told = only(
        reviewed(
            project,
            """
require: [{workers: b-new, env: SIZE}]
profiles:
    one:
        levels: [1]
        workers:
            b-new: {provisioner: shop, worker-type: one, implementation: docker-worker, os: linux,
                    env: {SIZE: "1"}}
    two:
        extends: one
        workers: {b-new: {worker-type: two}}
""",
        )
    )
    assert (told.line, told.severity) == (11, "warning")
    assert "SIZE is still what 'b-new' has on shop/one" in told.message


@pytest.mark.parametrize("value", ["{detect: gpu-memory}", "{detect: inherited}"])
def test_detected_env_is_right_anywhere(project: Project, value: str):
    """What the machine finds out is no value of an old card."""
    body = f"""
workers: {{b-gpu: {{env: {{WORKSPACE: {value}}}}}}}
require: [{{workers: b-gpu, env: WORKSPACE}}]
profiles: {{lab: {{levels: [1], workers: {{b-gpu: shop/a100}}}}}}
"""
    assert reviewed(project, body) == []


@pytest.mark.parametrize(
    ("gpus", "count", "told"),
    [
        ("0 1 2", 4, "GPUS '0 1 2' names 3 GPUs, and resources.gpus of 'b-gpu' is 4"),
        ("0 1", 1, "GPUS '0 1' names 2 GPUs, and resources.gpus of 'b-gpu' is 1"),
        ("4", 4, "GPUS '4' names 1 GPU, and resources.gpus of 'b-gpu' is 4"),
        ("", 1, "GPUS '' names 0 GPUs, and resources.gpus of 'b-gpu' is 1"),
    ],
)
def test_gpus_that_are_not_as_many_as_there_are(project: Project, gpus: str, count: int, told: str):
    """GPUS that names more or fewer GPUs than resources.gpus points at GPUS."""
    body = f'workers: {{b-gpu: {{env: {{GPUS: "{gpus}"}}, resources: {{gpus: {count}}}}}}}'
    found = only(reviewed(project, body))
    assert (found.message, found.severity) == (told, "warning")
    assert (found.line, found.path[-1]) == (2, "GPUS")


@pytest.mark.parametrize("gpus", ['"0 1 2 3"', '"0,1,2,3"', "{detect: gpu-indices}"])
def test_gpus_that_are_as_many(project: Project, gpus: str):
    """Indices with blanks or commas between them are counted, and detected ones are not."""
    body = f"workers: {{b-gpu: {{env: {{GPUS: {gpus}}}, resources: {{gpus: 4}}}}}}"
    assert reviewed(project, body) == []


def test_a_pool_for_several_levels(project: Project):
    """A profile's pool without {level} is told where several levels may use the profile."""
    told = only(reviewed(project, "profiles: {lab: {levels: [1, 3], workers: {b-cpu: shop/lab}}}"))
    assert told.message == "tasks of levels 1, 3 share the pool shop/lab"
    assert (told.severity, told.line, told.path[-1]) == ("warning", 2, "b-cpu")


@pytest.mark.parametrize(
    "profile",
    [
        "{levels: [1], workers: {b-cpu: shop/lab}}",
        "{workers: {b-cpu: 'shop-{level}/lab'}}",
        "{workers: {b-cpu: {worker-type: {by-level: {'3': a, default: b}}}}}",
        "{workers: {b-cpu: b-gpu}}",
    ],
)
def test_pools_that_keep_levels_apart(project: Project, profile: str):
    """One level alone, {level}, by-level, and an alias with {level} keep levels apart."""
    assert reviewed(project, f"profiles: {{lab: {profile}}}") == []


def test_an_alias_without_a_level_is_no_more_than_an_info(project: Project):
    """Taskgraph's own aliases are not ours to judge."""
    told = only(review(project.config("workers: {b-cpu: {env: {A: b}}}"), "shop"))
    assert (told.severity, told.path) == ("info", ("workers", "aliases", "sign"))
    assert told.message == "tasks of levels 1, 2, 3 share the pool a/c"
    config = project.config("workers: {b-cpu: {env: {A: b}}}")
    assert review(config, "shop", graph=False) == []  # no tasks, no levels


def test_a_name_that_hides_the_env_of_a_pattern(project: Project):
    """A name that is written out beside a pattern points at itself, and says what it lacks."""
    told = only(
        reviewed(
            project,
            """
workers:
    b-gpu.*: {env: {GPUS: "0", WORKSPACE: "9"}}
    b-gpu-4: {env: {GPUS: "0 1 2 3"}}
""",
        )
    )
    assert (told.severity, told.line, told.column) == ("warning", 4, 9)
    assert told.message == (
        "'b-gpu-4' is written out, so it gets nothing from 'b-gpu.*', which gives WORKSPACE"
    )


def test_a_name_that_hides_env_in_a_profile(project: Project):
    """Profiles are looked at, too, and keyed entries and keyed env as well."""
    told = only(
        reviewed(
            project,
            """
profiles:
    lab:
        workers:
            b-gpu.*: {by-level: {"3": {env: {by-project: {a: {X: y}, default: {}}}}, default: {}}}
            b-gpu-4: {env: {Y: z}}
""",
        )
    )
    assert told.path[-1] == "b-gpu-4"
    assert told.message.endswith("which gives X")


def test_a_name_that_repeats_the_env_hides_nothing(project: Project):
    """A name with all of a pattern's env, or one that is dropped, is fine."""
    body = """
workers:
    b-gpu.*: {env: {GPUS: "0"}}
    b-gpu-4: {env: {GPUS: "0 1 2 3"}}
profiles:
    lab: {workers: {b-.*: {env: {A: b}}, b-cpu: null}}
"""
    assert reviewed(project, body) == []


def test_an_alias_that_a_pattern_catches_on_its_way(project: Project):
    """A target that a pattern sends on again is told at the pattern."""
    found = reviewed(
        project, "profiles: {lab: {workers: {b-big: b-gpu-4, 'b-g.*': b-cpu, b-gpu: b-gpu}}}"
    )
    told = only(found)
    assert told.severity == "warning"
    assert told.path[-1] == "b-g.*"
    assert told.message == (
        "'b-g.*' catches b-gpu-4 too, so what b-big sends there does not stay there"
    )


def test_aliases_that_nothing_reaches(project: Project):
    """A pattern that sends aliases on says which, as an info: that may be what it is for."""
    told = only(reviewed(project, "profiles: {lab: {workers: {'b-gpu.*': b-cpu}}}"))
    assert told.severity == "info"
    assert told.message == (
        "'b-gpu.*' sends on whatever asks for b-gpu, b-gpu-4: under this profile nothing reaches "
        "these aliases"
    )


def test_a_pattern_that_is_for_nothing(project: Project):
    """A pattern of a profile that matches no name there is points at itself."""
    told = only(reviewed(project, "profiles: {lab: {workers: {'c-gpu.*': {env: {A: b}}}}}"))
    assert told.message == "no worker name is matched by 'c-gpu.*', so this is never used"
    assert (told.severity, told.line) == ("warning", 2)


def test_a_guard_that_is_for_nothing(project: Project):
    """A pattern to protect that no name is like points at itself; another is left to the loader."""
    body = "protect: {workers: [b-gpu, sign.*, nothing.*]}"
    told = only(reviewed(project, body))
    assert told.message == "no worker name is matched by 'nothing.*', so this protects nothing"
    assert (told.severity, told.line) == ("warning", 2)
    assert told.path == ("workers-config", "protect", "workers", 2)


def test_what_is_included_is_told_there(project: Project):
    """A problem of an included file has its place there."""
    project.write("lab.yml", "profiles:\n    lab: {workers: {'c-gpu.*': {env: {A: b}}}}\n")
    told = only(reviewed(project, "include: [lab.yml]"))
    assert (told.file, told.line) == ("lab.yml", 2)


def test_aliases_that_a_pattern_may_keep(project: Project):
    """A pattern that sends names to one of them at some levels, or a child's that sends on what
    its parent keeps, catches nothing on its way: an info.
    """
    keyed = "'b-g.*': {to: {by-level: {'3': b-gpu-4, default: b-cpu}}}"
    found = reviewed(project, f"profiles: {{lab: {{workers: {{{keyed}}}}}}}")
    assert only(found).severity == "info"
    body = """
profiles:
    all: {workers: {b-gpu-4: b-gpu-4}}
    lab: {extends: all, workers: {'b-g.*': b-cpu}}
"""
    assert only(reviewed(project, body)).severity == "info"


def test_a_pattern_that_sends_to_one_that_it_matches(project: Project):
    """The name that all the others are sent to stays where it is."""
    told = only(reviewed(project, "profiles: {lab: {workers: {'b-gpu.*': b-gpu-4}}}"))
    assert "whatever asks for b-gpu: under" in told.message


def test_an_alias_keyed_by_level(project: Project):
    """An alias with a pool for each level keeps them apart."""
    alias = (
        "{provisioner: a, implementation: b, os: c, worker-type: {by-level: {'3': d, default: e}}}"
    )
    data = project.data("profiles: {lab: {}}", f"workers: {{aliases: {{b-x: {alias}}}}}")
    config, problems = check(data, project.folder)
    assert problems == []
    assert config is not None
    assert review(config, "shop") == []
