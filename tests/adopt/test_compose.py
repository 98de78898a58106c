"""The `workers-config` that comes out of hand-written tables."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from adopting import ODD, adopt, hand, told, translations, value
from hypothesis import given, settings
from hypothesis import strategies as st
from test_parity_translations import CORPUS, RECORDED, outcome, place, tasks_of

from taskgraph_workers.adopt.hand import read
from taskgraph_workers.adopt.verify import verify
from taskgraph_workers.config import check
from taskgraph_workers.config.locate import Source
from taskgraph_workers.errors import ConfigError
from taskgraph_workers.model import Config

PARAMETER = "training_config.taskcluster.worker-classes"


# --- a real project -------------------------------------------------------------------------


def adopted_config(file: Path) -> tuple[Config, Any]:
    """The configuration of a project once what was adopted stands in its config.yml."""
    said = read(Source(str(file), file.read_bytes()))
    adopted = adopt(said, default="gcp-spot", parameter=PARAMETER)
    assert told(adopted) == []
    data = {**said.data, **yaml.safe_load(adopted.text)}
    config, problems = check(data)
    assert problems == []
    assert config is not None
    return config, data["workers-config"]


@pytest.mark.parametrize(("name", "count"), RECORDED.items())
def test_a_real_project_is_placed_as_recorded(tmp_path: Path, name: str, count: int):
    """All placements that its own code made come out of what was adopted, with no warning."""
    config, _ = adopted_config(translations(tmp_path))
    parameters, tasks = tasks_of(name)
    placed = {
        task.label: outcome(place(config, task.requested, task.kind, parameters)) for task in tasks
    }
    assert len(placed) == count
    assert placed == {task.label: task.outcome for task in tasks}


def test_a_real_project_comes_out_as_a_person_wrote_it(tmp_path: Path):
    """The same keys, patterns and profiles as in the hand-written `workers-config`."""
    _, said = adopted_config(translations(tmp_path))
    by_a_person = Path(__file__).parent.parent / "data" / "translations" / "workers.yml"
    assert said == yaml.safe_load(by_a_person.read_text())["workers-config"]


@pytest.fixture(scope="module")
def corpus() -> Path:
    if not CORPUS.is_dir():
        pytest.skip("needs the config.yml in ../shared/corpus/translations")
    return CORPUS / "config.yml"


def test_the_facts_of_the_project_are_here(corpus: Path, tmp_path: Path):
    """tests/data holds its tables, with nothing changed or left out."""
    theirs = yaml.safe_load(corpus.read_text())
    ours = yaml.safe_load(translations(tmp_path).read_text())
    for key in ("trust-domain", "workers", "local-worker-aliases", "worker-configuration"):
        assert ours[key] == theirs[key]


def test_a_real_file_with_its_comments(corpus: Path, tmp_path: Path):
    """It says the same as without comments, and each comment on a worker is above its entry."""
    text = corpus.read_text()
    _, said = adopted_config(corpus)
    assert said == adopted_config(translations(tmp_path))[1]
    adopted = adopt(read(Source("c.yml", text.encode())), default="gcp-spot")
    table = text[text.index("local-worker-aliases:") : text.index("worker-configuration:")]
    comments = [line.strip() for line in table.splitlines() if line.startswith("    #")]
    assert len(comments) == 15
    carried = [line.strip() for line in adopted.text.splitlines() if line.strip()[:1] == "#"]
    assert carried[:-1] == comments
    assert "# eg: bicleaner\n                b-largegpu-largedisk: b-linux" in adopted.text
    lines = text.splitlines()
    assert [lines[line - 1][:8] for line in adopted.left] == [
        "# Ideall",
        "# resolv",
        "# we nee",
        "# Keys a",
        "# `worke",
    ]


# --- a project of every oddity --------------------------------------------------------------


def test_every_oddity():
    """The whole text, to be read: it is what a person would have had to write."""
    adopted = adopt(read(Source("c.yml", ODD.read_bytes())), default="spot", classes=("lab-1",))
    assert adopted.text == (ODD.parent / "adopted.yml").read_text()
    assert adopted.classes == ("spot", "std", "lab-1")


# --- classes --------------------------------------------------------------------------------

CLASSES = """
local-worker-aliases:
    a: {by-worker-class: {std: cpu-std, default: cpu}}
    b: {by-worker-class: {std: gpu-4-std, lab: gpu-1, default: gpu-4}}
"""


def test_the_default_branches_are_the_base():
    """The others extend it and say what differs."""
    said = value(adopt(hand(CLASSES, needs=()), default="spot"))
    assert said == {
        "profiles": {
            "spot": {"workers": {"a": "cpu", "b": "gpu-4"}},
            "std": {"extends": "spot", "workers": {"a": "cpu-std", "b": "gpu-4-std"}},
            "lab": {"extends": "spot", "workers": {"b": "gpu-1"}},
        },
        "select": {"default": "spot"},
    }


def test_a_class_that_nothing_names_is_asked_for():
    """Without a name for it, its profile has one that says so, and the hint tells how to."""
    adopted = adopt(hand(CLASSES, needs=()))
    assert adopted.classes == ("default", "std", "lab")
    assert told(adopted) == [
        "warning: nothing names the class of the default branches; its profile is 'default' here\n"
        "    hint: --default NAME, with the name that runs choose it by"
    ]


def test_a_default_that_is_named_elsewhere_is_no_class_of_its_own():
    """What its default branches say beyond that is told, with its line."""
    adopted = adopt(hand(CLASSES, needs=()), default="lab")
    assert adopted.classes == ("lab", "std")
    assert told(adopted) == [
        "config.yml:3:55: local-worker-aliases.b.by-worker-class.default: no class is known that"
        " takes this branch, so it is left out\n    hint: --class NAME adds one"
    ]


def test_a_branch_that_says_nothing_new_is_not_missed():
    """Nothing is lost where the class that stands for it says the same."""
    text = "local-worker-aliases: {a: {by-worker-class: {x: cpu, y: cpu-std, default: cpu}}}\n"
    adopted = adopt(hand(text), default="x")
    assert (adopted.classes, told(adopted)) == (("x", "y"), [])


def test_without_default_branches_the_first_class_is_the_base():
    """A name that a class does not know leads nowhere under its profile, either."""
    said = value(
        adopt(
            hand(
                "local-worker-aliases:\n    a: {by-worker-class: {x: cpu, y: cpu-std}}\n"
                "    b: {by-worker-class: {x: gpu-1}}\n    c: {by-worker-class: {y: gpu-4}}\n"
            )
        )
    )
    assert said["profiles"] == {
        "x": {"workers": {"a": "cpu", "b": "gpu-1"}},
        "y": {"extends": "x", "workers": {"a": "cpu-std", "c": "gpu-4", "b": None}},
    }


def test_a_default_that_no_branch_is_for():
    """A slip of the pen is no new class."""
    with pytest.raises(ConfigError) as raised:
        adopt(
            hand("local-worker-aliases: {a: {by-worker-class: {x: cpu, y: gpu-1}}}\n"), default="z"
        )
    assert str(raised.value) == "no branch is for the class 'z'\n    hint: there is: x, y"


def test_patterns_of_classes_need_their_names():
    """A pattern names no class; those that are told follow it."""
    text = "local-worker-aliases: {a: {by-worker-class: {lab-.*: gpu-1, x: cpu}}}\n"
    adopted = adopt(hand(text, needs=()))
    assert "no class is known that takes this branch" in told(adopted)[0]
    adopted = adopt(hand(text, needs=()), classes=("lab-2",))
    assert told(adopted) == []
    assert value(adopted)["profiles"]["lab-2"] == {"extends": "x", "workers": {"a": "gpu-1"}}


def test_a_profile_extends_what_it_is_most_like():
    """Not the base in any case: the shortest text wins, and of equal ones the first."""
    rows = {f"n{i}": ("cpu", "gpu-1", "gpu-1") for i in range(3)} | {"m": ("cpu", "gpu-4", "gpu-8")}
    text = "".join(
        f"    {n}: {{by-worker-class: {{y: {y}, z: {z}, default: {x}}}}}\n"
        for n, (x, y, z) in rows.items()
    )
    profiles = value(adopt(hand("local-worker-aliases:\n" + text), default="x"))["profiles"]
    assert profiles["y"]["extends"] == "x"
    assert profiles["z"] == {"extends": "y", "workers": {"m": "gpu-8"}}


def test_nothing_differs_by_class():
    """Plain aliases make one profile, and a name that is its own alias needs no entry."""
    said = value(adopt(hand("local-worker-aliases: {a: cpu, cpu: cpu}\n"), default="all"))
    assert said == {"profiles": {"all": {"workers": {"a": "cpu"}}}, "select": {"default": "all"}}


def test_env_alone():
    """A project without classes has machines to tell about, too."""
    said = value(adopt(hand("worker-configuration: {cpu: {env: {A: b}}}\n", needs=())))
    assert said == {"workers": {"cpu": {"env": {"A": "b"}}}}


def test_a_comment_beside_a_name_stays_with_the_name():
    """Also where its branches are on the same line."""
    adopted = adopt(hand(CLASSES.replace("default: cpu}}", "default: cpu}}  # why")), default="x")
    assert adopted.text.count("# why") == 1
    assert "# why\n                a: cpu\n" in adopted.text


# --- env ------------------------------------------------------------------------------------


def test_env_that_code_withholds_is_told():
    """mozilla/translations gives none where one of two is missing; others may give it."""
    text = "worker-configuration: {cpu: {env: {GPUS: '0'}}}\n"
    assert told(adopt(hand(text))) == [
        "config.yml:1:30: worker-configuration.cpu.env: is given to no task by code that wants GPUS"
        " and WORKSPACE (there is no WORKSPACE); here it is given\n"
        "    hint: --needs '' if your code gives it, too"
    ]
    assert told(adopt(hand(text, needs=()))) == []


def test_env_of_what_is_no_alias():
    """It is given to nobody, so it is left out; it is told, with the alias that may be meant."""
    adopted = adopt(hand("worker-configuration: {gpu-2: {env: {A: b}}}\n", needs=()))
    assert value(adopted) == {}
    assert told(adopted) == [
        "config.yml:1:24: worker-configuration.gpu-2: is for no alias in workers.aliases, so it is"
        " left out\n    hint: did you mean 'gpu-8'?"
    ]


def test_env_by_class_is_env_by_profile():
    """With the profiles that there are."""
    said = value(
        adopt(
            hand(
                "local-worker-aliases: {a: {by-worker-class: {x: rack-1, default: rack-2}}}\n"
                "worker-configuration:\n"
                "    rack-.*: {env: {A: {by-worker-class: {x: b, default: c}}}}\n",
                needs=(),
            ),
            default="y",
        )
    )
    assert said["workers"] == {
        "rack-.*": {"env": {"A": {"by-profile": {"x": "b", "default": "c"}}}}
    }


def test_tasks_that_need_env_are_refused_without_it():
    """As hand-written code refuses them; a pattern where it matches nothing else."""
    env = "{env: {GPUS: '0', WORKSPACE: '1'}}"
    text = (
        f"local-worker-aliases: {{a: gpu-1, b: gpu-4}}\nworker-configuration: {{gpu-.*: {env}}}\n"
    )
    assert value(adopt(hand(text)))["require"] == [
        {"workers": ".*gpu.*", "env": ["GPUS", "WORKSPACE"]}
    ]
    assert "require" not in value(adopt(hand(text, needs=())))


def test_one_alias_that_needs_env_is_named():
    """A pattern would say more than is known."""
    text = "local-worker-aliases: {a: gpu-1}\nworker-configuration:\n"
    text += "    gpu-1: {env: {GPUS: '0', WORKSPACE: '1'}}\n"
    assert value(adopt(hand(text)))["require"] == [
        {"workers": "gpu-1", "env": ["GPUS", "WORKSPACE"]}
    ]


def test_what_is_not_refused_by_hand_is_not_refused_here():
    """A name with gpu in it that leads to a machine without needs no env."""
    env = "{env: {GPUS: '0', WORKSPACE: '1'}}"
    text = (
        "local-worker-aliases: {a: gpu-1, b: gpu-4, no-gpu: cpu}\n"
        f"worker-configuration: {{gpu-.*: {env}}}\n"
    )
    assert value(adopt(hand(text)))["require"] == [
        {"workers": "gpu-.*", "env": ["GPUS", "WORKSPACE"]}
    ]


def test_what_is_refused_by_hand_for_want_of_env_is_told():
    """Where no machine has that env, nothing here could require it."""
    adopted = adopt(hand("local-worker-aliases: {a: gpu-1}\n"), default="x")
    assert told(adopted) == [
        "config.yml:1:24: local-worker-aliases.a: leads to an alias with 'gpu' in its name and"
        " not all of GPUS and WORKSPACE, which code that wants them refuses; here it is placed\n"
        "    hint: --needs '' if your code places it, too"
    ]


# --- whatever the tables --------------------------------------------------------------------

CLASS_NAMES = ("x", "y", "z")
ENDS = ("cpu", "cpu-std", "gpu-1", "gpu-4", "gpu-4-std", "gpu-8", "rack-1", "sign")
NAMES = ("a", "a-big", "b", "gpu-1", "gpu-8", "rack-1", "cpu")


def tree(draw: random.Random, depth: int = 0) -> Any:
    """A value of a table: an alias, or one that differs."""
    roll = draw.random()
    if roll < 0.35 or depth > 2:
        return draw.choice(ENDS)
    if roll < 0.8:
        keys = draw.sample([*CLASS_NAMES, "default"], draw.randint(2, 4))
        return {"by-worker-class": {key: tree(draw, depth + 1) for key in keys}}
    by, keys = draw.choice([("level", ["3", "default"]), ("tasks-for", ["cron", "default"])])
    return {f"by-{by}": {key: tree(draw, depth + 1) for key in keys}}


def tables(draw: random.Random) -> dict[str, Any]:
    envs = [{"GPUS": draw.choice("01"), "WORKSPACE": draw.choice("89")} for _ in range(3)]
    envs += [{**envs[0], "MORE": {"by-worker-class": {"x": "p", "default": "q"}}}]
    names = draw.sample(NAMES, draw.randint(1, len(NAMES)))
    ends = draw.sample(ENDS[2:-1], draw.randint(0, 5))
    return {
        "local-worker-aliases": {
            **{name: tree(draw) for name in names},
            "base": {"by-worker-class": {"x": "cpu", "default": "cpu-std"}},
        },
        "worker-configuration": {end: {"env": draw.choice(envs)} for end in ends},
    }


@settings(max_examples=50)
@given(st.integers(0, 10**9))
def test_whatever_the_tables_nothing_differs_in_silence(seed: int):
    """What is adopted places every name as the tables do, or what differs is told."""
    said = hand(yaml.safe_dump(tables(random.Random(seed)), sort_keys=False))
    adopted = adopt(said, default="y")
    report = verify(said, adopted.text, adopted.classes)
    assert report.compared
    missing = any("code that wants them refuses" in each for each in told(adopted))
    silent = [
        each
        for each in report.differences
        # A name that is an alias, and that this class has no branch for.
        if not (each.by_hand.startswith("refused: nothing is said of") and each.name in ENDS)
        and not (missing and "lacks GPUS" in each.by_hand)
    ]
    assert silent == []
