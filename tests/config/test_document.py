"""Files that config.yml includes."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskgraph_workers.config import check, located
from taskgraph_workers.errors import PlacementError, Problem
from taskgraph_workers.model import Change, Choice, Context
from taskgraph_workers.resolve import resolve


def test_keys_are_merged(project):
    """Key by key down to those of env; who includes wins, then the later of what is included."""
    project.write("a.yml", "workers: {b-gpu: {env: {A: a, B: a, C: a}, resources: {gpus: 1}}}")
    project.write("b.yml", "workers: {b-gpu: {env: {A: b, B: b}}, b-cpu: {env: {X: b}}}")
    config = project.config("include: [a.yml, b.yml]\nworkers: {b-gpu: {env: {A: own}}}")
    entries = {key: (each.env, each.resources) for key, each in config.workers.entries.items()}
    assert entries == {
        "b-gpu": ({"A": "own", "B": "b", "C": "a"}, {"gpus": 1}),
        "b-cpu": ({"X": "b"}, {}),
    }


def test_profiles_are_merged(project):
    """An included file may add profiles, and entries to those that are there."""
    project.write("a.yml", "profiles: {p: {extends: q, workers: {b-gpu: {os: x}}}, q: {}}")
    config = project.config(
        "include: a.yml\nprofiles: {p: {workers: {b-gpu: {env: {A: b}}, b-cpu: b-gpu}}}"
    )
    profile = config.profiles["p"]
    at = (*profile.path, "workers")
    assert profile.extends == "q"
    assert profile.layer.entries == {
        "b-gpu": Change((*at, "b-gpu"), fields={"os": "x"}, env={"A": "b"}),
        "b-cpu": Change((*at, "b-cpu"), to="b-gpu"),
    }


def test_lists_are_joined(project):
    """`require` and `protect` say all that each file says; other lists are replaced."""
    project.write(
        "a.yml",
        "require: [{workers: b-cpu, env: A}]\nprotect: {workers: b-cpu, kinds: [a]}\n"
        "dispatch: {images: [a]}",
    )
    config = project.config(
        """
        include: a.yml
        workers: {b-.*: {env: {A: a}}}
        require: [{workers: b-gpu, env: A}]
        protect: {workers: [sign], kinds: b}
        dispatch: {images: [b]}
        """
    )
    assert [each.workers for each in config.require] == [("b-gpu",), ("b-cpu",)]
    assert config.protected_workers == ("sign", "b-cpu")
    assert config.protected_kinds == ("b", "a")
    assert config.dispatch is not None
    assert config.dispatch.images == ("b",)


@pytest.mark.parametrize(
    ("included", "own"),
    [
        ("{detect: gpu-memory, share: 0.5}", "{detect: inherited}"),
        ("{by-level: {'3': a, default: b}}", "{by-kind: {train: a, default: b}}"),
        ("{detect: inherited}", "text"),
        ("text", "null"),
    ],
)
def test_a_value_is_never_mixed(project, included: str, own: str):
    """A mapping that is one value, keyed or detected, is replaced and not merged."""
    alone = project.config(f"workers: {{b-gpu: {{env: {{A: {own}}}}}}}")
    project.write("a.yml", f"workers: {{b-gpu: {{env: {{A: {included}}}}}}}")
    both = project.config(f"include: a.yml\nworkers: {{b-gpu: {{env: {{A: {own}}}}}}}")
    assert both.workers == alone.workers


def test_a_choice_is_never_mixed(project):
    """`select.default` of the including file stands as it is."""
    project.write("a.yml", "select: {default: {train: p}, parameter: a.b}")
    config = project.config("include: a.yml\nprofiles: {p: {}}\nselect: {default: {profile: p}}")
    assert config.select.default.profiles == {"default": "p"}
    assert config.select.parameter == "a.b"


def test_null_wins_over_what_is_included(project):
    """An entry of null drops the one of the included file, too."""
    project.write("a.yml", "profiles: {p: {workers: {b-gpu: b-cpu}}}")
    config = project.config("include: a.yml\nprofiles: {p: {workers: {b-gpu: null}}}")
    assert config.profiles["p"].layer.entries == {"b-gpu": None}


def test_included_files_include(project):
    """Names are relative to the file they stand in; the same file may come twice."""
    project.write("sites/a.yml", "include: [deep/b.yml, ../c.yml]")
    project.write("sites/deep/b.yml", "include: ../../c.yml\nworkers: {b-gpu: {env: {A: b}}}")
    project.write("c.yml", "workers-config: {workers: {b-gpu: {env: {A: c, C: c}}}}")
    config = project.config(f"include: [sites/a.yml, {project.folder / 'c.yml'}]")
    assert config.workers.entries["b-gpu"].env == {"A": "c", "C": "c"}
    config = project.config("include: [sites/deep/b.yml]")
    assert config.workers.entries["b-gpu"].env == {"A": "b", "C": "c"}


@pytest.mark.parametrize("text", ["", "# nothing\n", "workers-config:\n", "{}\n", "---\n"])
def test_an_empty_file(project, text: str):
    """A file with nothing in it, or all of it commented out, includes nothing."""
    project.write("a.yml", text)
    assert project.config("include: a.yml").workers.entries == {}


UNREAD = "\n    hint: names are not looked up until the include can be read"

FAULTS = [
    (
        "include: [a.yml, gone.yml]",
        "config.yml:2:22: workers-config.include[1]: there is no file 'gone.yml' that can be read\n"
        "    hint: looked for gone.yml; names are not looked up until the include can be read",
    ),
    (
        "include: {a: b}",
        "config.yml:2:5: workers-config.include: must be a list of file names, not a mapping",
    ),
    (
        "include: [8, '']",
        "config.yml:2:15: workers-config.include[0]: must be the name of a file, not the number 8\n"
        "config.yml:2:18: workers-config.include[1]: must be the name of a file, not the string ''",
    ),
    (
        "include: loop.yml",
        "loop.yml:1:1: include: 'loop.yml' includes itself, by way of what it includes",
    ),
    (
        "include: broken.yml",
        "broken.yml:2:1: not readable as YAML: did not find expected ',' or '}'" + UNREAD,
    ),
    ("include: list.yml", "list.yml:1:1: must hold a mapping, not a list" + UNREAD),
    ("include: inner.yml", "inner.yml:1:1: workers-config: must be a mapping, not a list" + UNREAD),
    ("include: date.yml", "date.yml:1:18: not readable as YAML: month must be in 1..12" + UNREAD),
    (
        "include: bytes.yml",
        "bytes.yml:2:19: not readable as YAML: byte 0xe9 is not UTF-8\n"
        "    hint: save the file as UTF-8; " + UNREAD[11:],
    ),
    (
        "include: control.yml",
        "control.yml:2:4: not readable as YAML: unacceptable character #x0001: "
        "control characters are not allowed" + UNREAD,
    ),
    (
        "include: two.yml",
        "two.yml:2:1: only one document of a file is read, and a second one starts here\n"
        "    hint: put it in a file of its own, and include that too; " + UNREAD[11:],
    ),
    (
        "include: itself.yml",
        "itself.yml:1:1: goes deeper than any configuration does, or contains itself" + UNREAD,
    ),
    (
        "include: twice.yml",
        "twice.yml:3:5: workers.b-gpu: this key stands on line 2 already; YAML takes the last only",
    ),
    (
        "include: unknown.yml",
        "unknown.yml:2:5: workers-config.workres: unknown key\n    hint: did you mean 'workers'?",
    ),
    (
        "include: [a.yml, value.yml]",
        "value.yml:3:9: profiles.p.workers.b-gpu: there is no worker name 'b-gup', "
        "and it is no pool (provisioner/worker-type)\n    hint: did you mean 'b-gpu'?",
    ),
    (
        "include: [a.yml, require.yml]\nrequire: [{workers: b-gpu, env: A}]",
        "require.yml:1:37: require[0].env[1]: is no name for an environment variable\n"
        "    hint: only letters, digits and _, and no digit first",
    ),
]


@pytest.mark.parametrize(("body", "told"), FAULTS)
def test_faults(project, body: str, told: str):
    """A fault is told in the file it stands in, by the path that it has there."""
    project.write("a.yml", "workers: {b-gpu: {env: {A: a}}}")
    project.write("loop.yml", "include: loop.yml")
    project.write("broken.yml", "workers: {b-gpu: {}\n")
    project.write("list.yml", "[workers]")
    project.write("inner.yml", "workers-config: [workers]")
    project.write("date.yml", "workers: {b-gpu: 2024-13-01}")
    (project.folder / "bytes.yml").write_bytes("# é\nworkers: {b-é: caf".encode() + b"\xe9}\n")
    project.write("control.yml", "# é\né: \1")
    project.write("two.yml", "workers: {}\n---\nworkers: {}\n")
    project.write("itself.yml", "workers: &all {b-gpu: *all}")
    project.write("twice.yml", "workers:\n    b-gpu: {}\n    b-gpu: {}\n")
    project.write("unknown.yml", "workers-config:\n    workres: {}\n")
    project.write("value.yml", "profiles:\n    p: {workers: {\n        b-gpu: b-gup}}\n")
    project.write("require.yml", "require: [{workers: b-gpu, env: [A, A-B]}]")
    assert project.told(body) == told


@pytest.mark.parametrize("value", ["[*b{m}, *b{m}]", "{{<<: [*b{m}, *b{m}]}}"])
def test_a_few_lines_that_stand_for_billions_of_values(project, value: str):
    """An included file that doubles itself again and again is refused, and at once."""
    lines = [f"b{n}: &b{n} {value}".format(m=n - 1) for n in range(1, 40)]
    project.write("a.yml", "\n".join(["", "b0: &b0 {x: y}", *lines]))
    assert project.told("include: a.yml") == (
        "a.yml:2:1: stands for more than 250000 values, counting what anchors repeat" + UNREAD
    )


def test_a_file_without_an_end(project):
    """Nothing is read that no memory holds."""
    told = project.told("include: /dev/zero")
    assert told == "/dev/zero:1:1: is larger than any configuration: over 16777216 bytes" + UNREAD


def test_what_anchors_repeat_is_fine(project):
    """A few hundred entries that share what they say are no more than they seem."""
    more = "".join(f", b-{n}: *a" for n in range(300))
    project.write("a.yml", f"profiles: {{p: {{workers: {{b-x: &a {{to: b-gpu}}{more}}}}}}}")
    assert len(project.config("include: a.yml").profiles["p"].layer.entries) == 301


def test_a_name_may_be_what_a_missing_file_says(project):
    """Where a file is missing, names that nobody knows are not told; other faults are."""
    body = (
        "include: gone.yml\nselect: {default: lab}\nprofiles: {p: {workers: {b-x: b-y}, level: 1}}"
    )
    assert [(each.line, each.message) for each in project.check(body)] == [
        (2, "there is no file 'gone.yml' that can be read"),
        (4, "unknown key"),
    ]


#: One fault of each kind that does not hang on what names there are, and a few that do.
REST = """
profiles:
    p: {extends: q, workers: {b-x: {os: linux}}}
    q: {extends: p}
    r: {workers: {b-g.*: b-cpu, .*-gpu: b-cpu, b-1: b-2, b-2: b-1}}
    s: {workers: {b-y: {os: linux}}}
"""
ALWAYS = [
    "profiles extend each other in a loop: p -> q -> p",
    "'b-g.*' and '.*-gpu' both match 'b-gpu'",
    "worker names lead to each other in a loop: b-1 -> b-2 -> b-1",
    "'b-y' is no alias, so its entry must give provisioner, worker-type, implementation too",
]
NAMES = "select: {default: lab}\nworkers: {b-w: {}}\ndispatch: {skus: {A: b-z}, images: [a]}"


@pytest.mark.parametrize("include", ["loop.yml", "[3]", "{a: b}", "['', ok.yml]", "twice.yml"])
def test_a_fault_that_leaves_nothing_out_hides_nothing(project, include: str):
    """An include that is no string, or its own, is told beside all other faults."""
    project.write("loop.yml", "include: loop.yml")
    project.write("ok.yml", "")
    project.write("twice.yml", "protect: {}\nprotect: {}")
    told = [each.message for each in project.check(f"include: {include}\n{NAMES}\n{REST}")]
    assert [each for each in ALWAYS if each not in told] == []
    assert "there is no profile 'lab'" in told
    assert "there is no worker name 'b-z'" in told
    assert "no worker name is matched by 'b-w', so this is never used" in told
    without = [each.message for each in project.check(f"{NAMES}\n{REST}")]
    assert len(told) == len(without) + 1


@pytest.mark.parametrize("include", ["gone.yml", "broken.yml", "list.yml", "inner.yml"])
def test_a_file_that_is_missing_hides_unknown_names_only(project, include: str):
    """What it can't mend is told; one line says that names are not looked up."""
    project.write("broken.yml", "workers: {")
    project.write("list.yml", "[a]")
    project.write("inner.yml", "workers-config: 8")
    problems = project.check(f"include: [{include}, also.yml]\n{NAMES}\n{REST}")
    told = [each.message for each in problems]
    assert [each for each in ALWAYS if each not in told] == []
    assert [each for each in told if "lab" in each or "b-z" in each or "b-w" in each] == []
    hints = [each.hint for each in problems if "names are not looked up" in each.hint]
    assert len(hints) == 1


def test_a_loop_of_several_files(project):
    """The loop is told in the file that closes it."""
    project.write("a.yml", "include: b.yml")
    project.write("b.yml", "\ninclude: [a.yml]")
    assert project.told("include: a.yml") == (
        "b.yml:2:11: include[0]: 'a.yml' includes itself, by way of what it includes"
    )


def test_config_yml_may_be_a_link(project):
    """A file is looked for beside config.yml, then beside what that is a link to."""
    project.write("taskcluster/workers/lab.yml", "workers: {b-gpu: {env: {A: far}}}")
    data = project.data("include: workers/lab.yml")
    (project.folder / "config.yml").rename(project.folder / "taskcluster" / "config.yml")
    root = project.folder / "taskcluster" / "ci"
    root.mkdir()
    (root / "config.yml").symlink_to(Path("..") / "config.yml")
    config, problems = check(data, root)
    assert problems == []
    assert config is not None
    assert config.workers.entries["b-gpu"].env == {"A": "far"}
    project.write("taskcluster/ci/workers/lab.yml", "workers: {b-gpu: {env: {A: near}}}")
    config, _ = check(data, root)
    assert config is not None
    assert config.workers.entries["b-gpu"].env == {"A": "near"}


def test_what_a_placement_stumbles_over_is_told_in_its_file(project):
    """Problems that only a task brings up are located in an included file, too."""
    project.write(
        "a.yml",
        "profiles:\n    p:\n        workers:\n            b-x: {to: {by-project: {y: b-gpu}}}",
    )
    config = project.config("include: a.yml\nprofiles: {p: {workers: {b-y: b-gpu}}}")
    with pytest.raises(PlacementError) as caught:
        resolve(config, "b-x", Choice("p"), Context(project="z"))
    assert str(located(caught.value, config)) == (
        "a.yml:4:24: profiles.p.workers.b-x.to.by-project: no branch for project 'z', "
        "and no default\n    hint: there is: y"
    )
    path = ("workers-config", "profiles", "p", "workers")
    assert located(Problem("x", (*path, "b-y")), config).file == "config.yml"
    assert located(Problem("x", (*path, "b-x")), config).file == "a.yml"
