"""From a parsed config.yml to a configuration, or to every fault in it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from config_cases import DATA

from taskgraph_workers.config import check, load_file, locate, located
from taskgraph_workers.config.load import load
from taskgraph_workers.errors import ConfigError, PlacementError, Problem
from taskgraph_workers.model import Choice, Config, Context
from taskgraph_workers.resolve import resolve, task_env

DESIGN = DATA.parent / "design.yml"


# --- The example of the documentation -------------------------------------------------------


def test_the_example_is_valid(project):
    """The example reads without any problem, and says what it seems to say."""
    project.write("workers/lab.yml", "# nothing yet\n")
    shutil.copy(DESIGN, project.folder / "config.yml")
    config, problems = check(yaml.safe_load(DESIGN.read_text()), project.folder, ["docker-image"])
    assert problems == []
    assert config is not None
    context = Context(level="1", trust_domain="translations")
    pools = {
        profile: resolve(config, "b-largegpu-xlargedisk", Choice(profile), context).pool
        for profile in config.profiles
    }
    assert pools == {
        "gcp-spot": "translations-1/b-linux-v100-gpu-4-1tb",
        "gcp-standard": "translations-1/b-linux-v100-gpu-4-1tb-standard",
        "onprem": "translations-onprem/snakepit",
    }
    env, _ = task_env(resolve(config, "b-largegpu", Choice("gcp-spot"), context), {})
    assert env == {"GPUS": "0 1 2 3", "WORKSPACE": "12000"}


# --- Every fault at once --------------------------------------------------------------------


def test_every_fault_at_once(project):
    """A dozen faults in two files are told in one go, in the order of the files and lines."""
    for name in ("faults.yml", "lab.yml"):
        shutil.copy(DATA / name, project.folder / name.replace("faults", "config"))
    data = yaml.safe_load((project.folder / "config.yml").read_text())
    config, problems = check(data, project.folder, ["docker-image", "evaluate", "train"])
    assert config is None
    assert "\n".join(map(str, problems)) + "\n" == (DATA / "faults.told").read_text()


def test_load_raises_them_all(project):
    """`load` raises the problems that `check` finds, errors before warnings."""
    data = project.data("workers: {b-gup: {}, b-gpu: {env: {A: 1}}}")
    with pytest.raises(ConfigError) as caught:
        load(data, project.folder)
    assert [(each.severity, each.line, each.column) for each in caught.value.problems] == [
        ("error", 2, 40),
        ("warning", 2, 15),
    ]
    assert "config.yml:2:40: workers-config.workers.b-gpu.env.A: must be a st" in str(caught.value)


def test_warnings_are_no_errors(project):
    """A configuration with warnings alone is one."""
    data = project.data("workers: {b-gup: {}}")
    assert load(data, project.folder).workers.entries.keys() == {"b-gup"}
    config, problems = check(data, project.folder)
    assert config is not None
    assert [problem.severity for problem in problems] == ["warning"]


@pytest.mark.parametrize("said", [{}, {"workers-config": None}, {"workers-config": {}}])
@pytest.mark.parametrize(
    "aliases", [None, [], {"b-(": {}}, {"a": 1, "b": None}, {"a.*": {}, ".*a": {}}]
)
def test_nothing_said_is_never_a_problem(said: Any, aliases: Any, tmp_path: Path):
    """Without workers-config, or with an empty one, there is no problem, whatever else there is."""
    (tmp_path / "config.yml").write_text("workers: {aliases: {a: {}, a: {}}}")
    config, problems = check({**said, "workers": {"aliases": aliases}}, tmp_path, [])
    assert problems == []
    assert config == Config(aliases=config.aliases)
    assert load({**said, "workers": aliases}) == Config()


def test_aliases(project):
    """Each alias gives all four fields, keyed by level where Taskgraph allows it."""
    config = project.config("workers: {}")
    assert config.aliases["b-gpu"].path == ("workers", "aliases", "b-gpu")
    assert config.aliases["b-gpu"].fields == {
        "provisioner": "{trust-domain}-{level}",
        "implementation": "docker-worker",
        "os": "linux",
        "worker-type": "{alias}",
    }
    alias = {"worker-type": {"by-level": {3: "a", "default": "b"}}}
    config, _ = check({"workers": {"aliases": {"x": alias}}})
    assert config is not None
    worker_type = config.aliases["x"].fields["worker-type"]
    assert (worker_type.by, worker_type.choices) == ("level", {"3": "a", "default": "b"})


# --- Lines ----------------------------------------------------------------------------------


def test_without_a_text_there_are_no_lines(project):
    """Where config.yml is not at hand, or says something else, faults are told without lines."""
    data = {"workers-config": {"workerz": 1}}
    told = "config.yml: workers-config.workerz: unknown key\n    hint: did you mean 'workers'?"
    assert [str(problem) for problem in check(data)[1]] == [told]
    assert [str(problem) for problem in check(data, project.folder)[1]] == [told]
    project.write("config.yml", "workers-config: {workers: {a: {}, a: {}}}")
    assert [str(problem) for problem in check(data, project.folder)[1]] == [told]
    project.write("config.yml", "workers-config: [")
    assert [str(problem) for problem in check(data, project.folder)[1]] == [told]


def test_the_file_may_have_another_name(project):
    """A configuration that is read from elsewhere is told of by that name."""
    project.write("mine.yml", "workers-config:\n  workerz: 1\n")
    data = yaml.safe_load((project.folder / "mine.yml").read_text())
    _, problems = check(data, project.folder, file="mine.yml")
    assert str(problems[0]).startswith("mine.yml:2:3: workers-config.workerz: unknown key")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("workers-config: {workers: {}}\nworkers-config: {workers: {}}\n", 2),
        ("workers: {}\nworkers: {}\nworkers-config: {workers: {}}\n", 2),
        ("workers: {aliases: {},\n  aliases: {}}\nworkers-config: {workers: {}}\n", 2),
        ("other: 1\nother: 2\nworkers-config: {workers: {}}\n", None),
        ("other: {a: 1, a: 2}\nworkers: {b: {a: 1, a: 2}}\nworkers-config: {workers: {}}\n", None),
    ],
)
def test_keys_that_stand_twice(project, text: str, line: int | None):
    """They are told where they hide what concerns us; the rest of config.yml is not ours."""
    project.write("config.yml", text)
    _, problems = check(yaml.safe_load(text), project.folder)
    assert [problem.line for problem in problems] == ([line] if line else [])


def test_problems_of_a_placement_are_located(project):
    """Where a task brings a fault up, it is told with its line; the error stays what it is."""
    config = project.config(
        """
        profiles:
            p:
                workers:
                    b-gpu: {by-project: {a: b-cpu}}
                    b-x.*: b-cpu
                    .*-xy: b-cpu
        """
    )

    def told(name: str) -> str:
        with pytest.raises(PlacementError) as caught:
            resolve(config, name, Choice("p"), Context(project="z"))
        return str(located(caught.value, config)).splitlines()[0]

    at = "workers-config.profiles.p.workers"
    assert told("b-gpu") == (
        f"config.yml:5:33: {at}.b-gpu.by-project: no branch for project 'z', and no default"
    )
    assert told("b-xy") == f"config.yml:4:21: {at}: 'b-x.*' and '.*-xy' both match 'b-xy'"
    assert located(Problem("x", ("task", "env")), config) == Problem("x", ("task", "env"))
    assert located(Problem("x"), Config()) == Problem("x")


# --- Kept by content ------------------------------------------------------------------------


def test_the_same_content_is_read_once(project, monkeypatch: pytest.MonkeyPatch):
    """Equal content, in another object, is not read again, nor is any YAML."""
    project.write("a.yml", "workers: {b-gpu: {env: {A: a}}}")
    config = load(project.data("include: a.yml"), project.folder)
    data = project.data("include: a.yml")

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("YAML was read")

    monkeypatch.setattr(locate.yaml, "compose", fail)
    monkeypatch.setattr(locate.yaml, "load", fail)
    assert load(data, project.folder) is config
    assert load(data, str(project.folder)) is config
    assert load(data, ".") is config


@pytest.mark.parametrize("change", ["include", "data", "aliases", "text", "root", "gone"])
def test_other_content_is_read_again(project, change: str):
    """Another checkout at the same path is seen: what it says, what it includes, its text."""
    body = "include: a.yml\nworkers: {b-cpu: {env: {B: b}}}"
    project.write("a.yml", "workers: {b-gpu: {env: {A: a}}}")
    config = load(project.data(body), project.folder)
    data, root = project.data(body), project.folder
    if change == "include":
        project.write("a.yml", "workers: {b-gpu: {env: {A: b}}}")
    elif change == "data":
        data = project.data(body.replace("B: b", "B: c"))
    elif change == "aliases":
        data["workers"]["aliases"]["b-new"] = data["workers"]["aliases"]["b-gpu"]
    elif change == "text":
        (root / "config.yml").write_text("# moved\n" + (root / "config.yml").read_text())
    elif change == "root":
        root = root / "other"
        project.write("other/a.yml", "workers: {b-gpu: {env: {A: a}}}")
    else:
        (root / "a.yml").unlink()
        with pytest.raises(ConfigError, match=r"there is no file 'a\.yml' that can be read"):
            load(data, root)
        return
    assert load(data, root) is not config


def test_a_text_with_a_new_duplicate_is_seen(project):
    """A key that stands twice is told although the parsed value is the same as before."""
    data = project.data("workers: {b-gpu: {}}")
    load(data, project.folder)
    text = (project.folder / "config.yml").read_text()
    project.write("config.yml", text.replace("{b-gpu: {}}", "{b-gpu: {}, b-gpu: {}}"))
    with pytest.raises(ConfigError, match="this key stands on line 2 already"):
        load(data, project.folder)


def test_a_file_that_takes_another_s_place_is_seen(project):
    """An included file that was only beside the link's target, and now is beside the link."""
    project.write("real/a.yml", "workers: {b-gpu: {env: {A: far}}}")
    data = project.data("include: a.yml")
    (project.folder / "config.yml").rename(project.folder / "real" / "config.yml")
    (project.folder / "config.yml").symlink_to(Path("real") / "config.yml")
    assert load(data, project.folder).workers.entries["b-gpu"].env == {"A": "far"}
    project.write("a.yml", "workers: {b-gpu: {env: {A: near}}}")
    assert load(data, project.folder).workers.entries["b-gpu"].env == {"A": "near"}


def test_equal_but_not_the_same(project):
    """1, 1.0 and true are equal to Python and not to a configuration."""
    body = "profiles: {p: {workers: {b-gpu: {worker: {a: VALUE}}}}}"
    for value in (1, 1.0, True):
        config = load(project.data(body.replace("VALUE", str(value).lower())), project.folder)
        entry = config.profiles["p"].layer.entries["b-gpu"]
        assert repr(entry.worker) == repr({"a": value})


def test_other_kinds_are_looked_up(project):
    """What was read for some kinds is looked at again for others."""
    data = project.data("protect: {kinds: train}")
    config = load(data, project.folder)
    assert load(data, project.folder, iter(["train"])) == config
    with pytest.raises(ConfigError, match="there is no kind 'train'"):
        load(data, project.folder, ["evaluate"])


def test_a_value_that_contains_itself(project):
    """YAML can write one; it is a fault and no endless loop."""
    text = "workers-config:\n  workers: &all {b-gpu: *all}\n"
    project.write("config.yml", text)
    with pytest.raises(ConfigError, match="goes deeper than any configuration does, or contains"):
        load(yaml.safe_load(text), project.folder)


def test_few_configurations_are_kept():
    """Some configurations stay, side by side; however many a process reads, only so many do."""
    some = [{"workers-config": {"protect": {"workers": [f"b-{n}"]}}} for n in range(100)]
    kept = [load(data) for data in some[:16]]
    assert [each.protected_workers for each in kept] == [(f"b-{n}",) for n in range(16)]
    assert all(load(data) is config for data, config in zip(some, kept))
    for data in some:
        load(data)
    assert load(some[99]) is load(some[99])
    assert len(load.__globals__["_kept"]) == 16


# --- A file of its own ----------------------------------------------------------------------


def test_a_file_of_its_own(project):
    """`workers-config` and, where names must lead somewhere, `workers.aliases`, in one file."""
    text = "workers-config:\n    clusters: {c: {scheduler: flux}}\n    include: more.yml\n"
    path = project.write("sites/lab.yml", text)
    project.write("sites/more.yml", "workers: {b-gpu: {env: {A: a}}}")
    config = load_file(path)
    assert config.clusters["c"].scheduler == "flux"
    assert config.workers.entries["b-gpu"].env == {"A": "a"}
    assert config.aliases == {}
    project.write("sites/lab.yml", f"{text}workers: {{aliases: {{b-gpu: {ALIAS}}}}}\n")
    assert load_file("sites/lab.yml").aliases["b-gpu"].fields["os"] == "linux"


ALIAS = "{provisioner: a, worker-type: '{level}', implementation: docker-worker, os: linux}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "lab.yml:1:1: the file has no key workers-config"),
        (
            "worker-config: {}",
            "lab.yml:1:1: worker-config: 'worker-config' is no key that is read: placement is "
            "configured by 'workers-config'\n    hint: write it as: workers-config",
        ),
        ("[]", "lab.yml:1:1: must hold a mapping, not a list"),
        (
            "a: b: c",
            "lab.yml:1:5: not readable as YAML: mapping values are not allowed in this context",
        ),
        ("workers-config: 8", "lab.yml:1:1: workers-config: must be a mapping, not the number 8"),
        (
            "workers-config: {workerz: {}}",
            "lab.yml:1:18: workers-config.workerz: unknown key\n    hint: did you mean 'workers'?",
        ),
        (
            "workers-config:\nworkers: {aliases: {b: {os: 1, worker-type: '{x}', provider: a}}}",
            "lab.yml:2:52: workers.aliases.b.provider: unknown key\n"
            "    hint: did you mean 'provisioner'?\n"
            "lab.yml:2:21: workers.aliases.b: provisioner is missing\n"
            "lab.yml:2:21: workers.aliases.b: implementation is missing\n"
            "lab.yml:2:25: workers.aliases.b.os: must be a string, not the number 1\n"
            '    hint: put it in quotes: "1"\n'
            "lab.yml:2:32: workers.aliases.b.worker-type: '{x}' holds {x}, which nothing fills in\n"
            "    hint: it may hold {alias}, {level} and {trust-domain}, and no other brace",
        ),
    ],
)
def test_faults_of_a_file(project, text: str, told: str):
    """What Taskgraph would refuse itself is refused here, where Taskgraph does not look."""
    path = project.write("lab.yml", text)
    with pytest.raises(ConfigError) as caught:
        load_file(path)
    assert str(caught.value) == told


def test_a_file_of_somebody_else(project, monkeypatch):
    """One that is there, and may not be read, is told as that."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = project.write("lab.yml", "workers-config: {}")
    monkeypatch.setattr("taskgraph_workers.config.unread.open", refuse, raising=False)
    with pytest.raises(ConfigError, match=r"^lab\.yml: can't be read: Permission denied$"):
        load_file(path)


def test_no_such_file(project):
    """A file that is not there is a fault and no traceback."""
    with pytest.raises(ConfigError, match=r"^gone\.yml: there is no such file that can be read$"):
        load_file("gone.yml")
    with pytest.raises(ConfigError, match="there is no such file that can be read"):
        load_file(project.folder)
