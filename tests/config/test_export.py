"""The JSON Schema of `workers-config`."""

from __future__ import annotations

import copy
import json
import random
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from config_cases import DATA, cases
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taskgraph_workers import detect, units
from taskgraph_workers.config import shapes
from taskgraph_workers.config.export import json_schema
from taskgraph_workers.config.faults import Fault
from taskgraph_workers.config.forms import form_of
from taskgraph_workers.config.names import Known
from taskgraph_workers.config.schema import known_in, read, shape
from taskgraph_workers.errors import dotted

ROOT = Path(__file__).resolve().parent.parent.parent
COMMITTED = ROOT / "docs" / "reference" / "workers-config.schema.json"
VALIDATOR = jsonschema.Draft7Validator(
    json_schema(), format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER
)


def faults(data: Any) -> list[str]:
    """What the schema finds wrong, by path."""
    return sorted(error.json_path for error in VALIDATOR.iter_errors(data))


def test_the_committed_schema_is_fresh():
    """After a change of a shape: taskgraph-workers schema > docs/reference/..., and commit."""
    assert COMMITTED.read_text(encoding="utf-8") == json.dumps(json_schema(), indent=2) + "\n"


def test_it_is_a_schema():
    """Of draft-07, which editors read."""
    jsonschema.Draft7Validator.check_schema(json_schema())


def test_every_key_is_described():
    """What an editor shows where the pointer rests."""

    def keys(schema: Any, path: str) -> Iterator[str]:
        if isinstance(schema, dict):
            for name, each in schema.get("properties", {}).items():
                if "description" not in each and not name.startswith("by-") and name != "detect":
                    yield f"{path}.{name}"
            for name, each in schema.items():
                yield from keys(each, f"{path}.{name}")
        elif isinstance(schema, list):
            for index, each in enumerate(schema):
                yield from keys(each, f"{path}[{index}]")

    assert list(keys(json_schema(), "")) == []


@pytest.mark.parametrize(
    "file",
    [
        "tests/data/design.yml",
        "taskcluster/config.yml",
        "taskcluster/ci/config.yml",
        "tests/data/translations/workers.yml",
        "tests/data/adopt/adopted.yml",
    ],
)
def test_what_is_right_is_accepted(file: str):
    """Whole config.yml files, with all their other keys."""
    assert faults(yaml.safe_load((ROOT / file).read_text())) == []


def test_an_included_file_is_accepted_below_the_key():
    """It has the shape of what is below `workers-config`."""
    lab = yaml.safe_load((ROOT / "taskcluster" / "workers" / "lab.yml").read_text())
    assert faults({"workers-config": lab}) == []


def test_other_keys_are_open():
    """The rest of config.yml is none of our business."""
    assert faults({"workers": 8, "anything": {"by-foo": []}}) == []
    assert faults({}) == []


@pytest.mark.parametrize(
    "body",
    [
        "workerz: {}",
        "workers: {b: {en: {}}}",
        "workers: {b: {env: {GPUS: 0}}}",
        "workers: {b: {env: {A-B: x}}}",
        "workers: {b: {env: {A: {detect: gpus}}}}",
        "workers: {b: {env: {A: {detect: gpu-count, share: 0.5}}}}",
        "workers: {b: {resources: {gpus: '1'}}}",
        "workers: {b: {resources: {memory: 16}}}",
        "workers: {b: {resources: {memory: 16XB}}}",
        "profiles: {p: {extend: q}}",
        "profiles: {p: {levels: [4]}}",
        "profiles: {p: {workers: {b: {too: c}}}}",
        "profiles: {p: {workers: {b: {worker: {env: {}}}}}}",
        "profiles: {p: {workers: {b: {provisioner: '{nope}'}}}}",
        "profiles: {p: {workers: {b: {by-worker-class: {x: c, default: d}}}}}",
        "profiles: {p: {workers: {b: {to: {by-levl: {x: c, default: d}}}}}}",
        "profiles: {p: {workers: {b: {to: {by-level: {default: d}}}}}}",
        "profiles: {p: {workers: {b: {to: {by-level: {'1': c}, by-kind: {x: d}}}}}}",
        "profiles: {p: {workers: {b: {worker: {a: [{by-foo: {x: 1}}]}}}}}",
        "profiles: {by-level: {x: {}}}",
        "select: {default: {by-profile: {p: p, q: q}}}",
        "select: {default: [p]}",
        "select: {parameter: a..b}",
        "require: [{workers: b}]",
        "require: [{workers: '(', env: A}]",
        "protect: {kind: [a]}",
        "decision: {plan: 1}",
        "decision: {action: {permission: a/b}}",
        "clusters: {c: {scheduler: [slurm]}}",
        "clusters: {c: {scheduler: ' slurm'}}",
        "clusters: {c: {}}",
        "clusters: {c: {scheduler: lsf, groups: {g: {command: []}}}}",
        "dispatch: {level: 4}",
        "dispatch: {task: {retries: {by-level: {'1': 1, default: 2}}}}",
    ],
)
def test_what_is_wrong_is_refused(body: str):
    """Slips of every part, where the loader refuses them, too."""
    raw = yaml.safe_load(body)
    assert faults({"workers-config": raw}) != []
    assert read(Known(), raw)[1] != []


@pytest.mark.parametrize("raw", [8, [8], {"a": "b"}, ""])
def test_what_is_included_are_names_of_files(raw: Any):
    """A name, or a list of them."""
    assert faults({"workers-config": {"include": raw}}) != []
    assert faults({"workers-config": {"include": ["a.yml"]}}) == []
    assert faults({"workers-config": {"include": "a.yml"}}) == []


@pytest.mark.parametrize("by", ["level", "project", "tasks-for", "kind", "profile"])
@pytest.mark.parametrize(
    "body",
    [
        "profiles: {p: {workers: {b: X(c)}}}",
        "profiles: {p: {workers: {b: {to: X(c)}}}}",
        "profiles: {p: {workers: {b: {os: X(c)}}}}",
        "profiles: {p: {workers: {b: {env: X({A: b})}}}}",
        "profiles: {p: {workers: {b: {env: {A: X(b)}}}}}",
        "profiles: {p: {workers: {b: {resources: X({})}}}}",
        "profiles: {p: {workers: {b: {resources: {disk: X(1GiB)}}}}}",
        "profiles: {p: {workers: {b: {worker: X({})}}}}",
        "profiles: {p: {workers: {b: {worker: {a: [{b: X(1)}]}}}}}",
        "workers: {b: X({})}",
    ],
)
def test_keyed_values_stand_wherever_the_loader_takes_them(by: str, body: str):
    """By each of the five, and by one in the other."""
    start, value = body.split("X(")
    value, _, end = value.partition(")")
    once = f"{{by-{by}: {{a: {value}, default: {value}}}}}"
    twice = f"{{by-{by}: {{a: {once}, default: {value}}}}}"
    for keyed in (once, twice):
        assert faults({"workers-config": yaml.safe_load(start + keyed + end)}) == []
    wrong = yaml.safe_load(start + once.replace(f"by-{by}", "by-foo") + end)
    assert faults({"workers-config": wrong}) != []


# --- held against the loader ----------------------------------------------------------------

#: What no JSON Schema can know: which names there are, what else matches, how YAML was written.
BEYOND = (
    "there is no ",
    "there are two branches for",
    "is there twice",
    "both match",
    "stands on line",
    "YAML reads",
    "no worker name is matched",
    "nothing places",
    "is required, and",
    "this is never used",
    "extend each other",
    "lead to each other",
    "leads nowhere",
    "is no alias",
    "no branch for",
    "is never run",
    "nests too deep",
    "goes deeper",
)


def structural(told: str) -> list[str]:
    """The errors that a schema can find, too."""
    return [
        line
        for line in told.splitlines()
        if not line.startswith("    hint:")
        and ": warning: " not in line
        and not any(beyond in line for beyond in BEYOND)
    ]


def structural_cases() -> Iterator[Any]:
    for file in sorted(DATA.glob("*.txt")):
        for case in cases(file.name):
            body, told = case.values
            raw = yaml.safe_load("workers-config:\n" + textwrap.indent(body, "    "))
            keys = has_numbers_as_keys(raw)  # which JSON can't have
            errors = [line for line in structural(told) if not keys or "must be a str" not in line]
            if errors:
                yield pytest.param(raw, errors, id=str(case.id))


def has_numbers_as_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return any(type(k) is int or has_numbers_as_keys(v) for k, v in value.items())
    return isinstance(value, list) and any(map(has_numbers_as_keys, value))


@pytest.mark.parametrize(("raw", "told"), list(structural_cases()))
def test_the_schema_refuses_what_the_loader_refuses(raw: Any, told: list[str]):
    """Every structural fault that the tests of the loader know."""
    assert faults(raw) != [], told


def test_there_are_structural_faults_to_refuse():
    """The cases above are most of what the loader's own tests hold."""
    assert len(list(structural_cases())) > 70


DESIGN = yaml.safe_load((ROOT / "tests" / "data" / "design.yml").read_text())["workers-config"]
del DESIGN["include"]  # files are read before the rest has a shape
SCRAPS: list[Any] = [
    *(None, True, 0, 1, 4, -1, 0.5, "", "a", "a b", "0", "a/b", "(", "by-level", "{level}", "{x}"),
    *("16GiB", "90m", "1-00:00:00", "auto", "slurm", "b-linux-v100-gpu", "gcp-spot", "a.b"),
    *([], ["a"], [1], {}, {"a": "b"}, {"a": None}, {"by-level": {"1": "a", "default": "b"}}),
    *(
        {"by-foo": {"a": "b", "default": "c"}},
        {"by-kind": {"default": "a"}},
        {"detect": "gpu-count"},
    ),
    *({"detect": "gpu-memory", "share": 0.5}, {"detect": "inherited", "at-least": 1}),
    *({"by-image": {"a": 1, "default": 2}}, {"profile": "gcp-spot", "workers": {}}, {"env": {}}),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    pairs = value.items() if isinstance(value, dict) else ()
    pairs = enumerate(value) if isinstance(value, list) else pairs
    for key, each in pairs:
        yield from places(each, (*path, key))


def altered(draw: random.Random) -> Any:
    """The design's example, with something else in one to three places."""
    whole: Any = {"top": copy.deepcopy(DESIGN)}
    for _ in range(draw.randint(1, 3)):
        path = draw.choice([each for each in places(whole) if each] or [("top",)])
        above = whole
        for key in path[:-1]:
            above = above[key]
        roll = draw.random()
        if roll < 0.6:
            above[path[-1]] = copy.deepcopy(draw.choice(SCRAPS))
        elif isinstance(above, dict) and roll < 0.8:
            key = draw.choice(
                ["env", "to", "by-level", "default", "x", "workers", "levels", "detect"]
            )
            above[key] = copy.deepcopy(draw.choice(SCRAPS))
        else:
            above.pop(path[-1], None) if isinstance(above, dict) else above.pop(path[-1])
    return whole.get("top")


@settings(max_examples=300)
@given(st.integers(0, 10**9))
def test_schema_and_loader_agree(seed: int):
    """Neither accepts a structure that the other refuses, whatever is put where."""
    raw = altered(random.Random(seed))
    if not isinstance(raw, dict):
        return
    found = read(known_in(raw, DESIGN["workers"], None), raw)[1]
    told = [
        f"{dotted(tuple(fault.path))}: {fault.msg}"
        for fault in found
        if not (isinstance(fault, Fault) and fault.lookup)
        and not any(beyond in str(fault.msg) for beyond in BEYOND if beyond != "YAML reads")
    ]
    refused = faults({"workers-config": raw})
    if told:
        assert refused != [], told
    elif not found:
        assert refused == []


# --- single values, held against their readers ----------------------------------------------


def accepts(of: Any, value: Any) -> bool:
    return jsonschema.Draft7Validator(dict(form_of(of).schema)).is_valid(value)


def reads(of: Any, value: Any) -> bool:
    try:
        of(value)
    except Fault:
        return False
    return True


@given(st.from_regex(r"[ ]?[0-9]{0,3}([.][0-9])?[ ]?[KMGTkx]?[iI]?[bB]?[ ]?", fullmatch=True))
@example("16GiB")
def test_sizes(text: str):
    """The pattern of the schema is the reader's."""
    size = shapes.size(units.mib_floor)
    assert accepts(size, text) == reads(size, text)


@given(
    st.from_regex(r"([0-9]{0,2}[dhmsx:-]?){0,4}", fullmatch=True).filter(
        lambda t: t.strip("0:-dhms")
    )
)
@example("1-00:00:00")
@example("90m")
def test_durations(text: str):
    """The pattern of the schema is the reader's."""
    assert accepts(shapes.duration, text) == reads(shapes.duration, text)


@given(st.from_regex(r"[ \t\u00a0a.]{0,5}", fullmatch=True))
@example("b-gpu ")
def test_names(text: str):
    """The pattern of the schema is the reader's."""
    assert accepts(shapes.a_name, text) == reads(shapes.a_name, text)


@given(st.from_regex(r"(a|\{|\}|level|alias|x|!r|\.|\[)*", fullmatch=True))
@example("{level}-{{x}}")
def test_templates(text: str):
    """What the schema takes can be filled in, but for what no pattern can judge: `{level:a}`."""
    if accepts(shapes.template, text):
        assert reads(shapes.template, text)


def test_what_can_be_detected():
    """Every kind of value, with each of its keys."""
    env = {"A": {"detect": "gpu-memory", "share": 0.5, "of": "sum", "at-least": 1}}
    for kind in detect.KINDS:
        env[kind.replace("-", "_")] = {"detect": kind}
    assert faults({"workers-config": {"workers": {"b": {"env": env}}}}) == []
    for kind in ("gpu-indices", "gpu-count", "inherited"):
        env = {"A": {"detect": kind, "of": "sum"}}
        assert faults({"workers-config": {"workers": {"b": {"env": env}}}}) != []


def test_every_shape_says_its_form():
    """The whole can be described from any set of known names."""
    assert form_of(shape(Known(names=frozenset("a"), profiles=frozenset("b"))))
