"""Whatever stands below `workers-config`."""

from __future__ import annotations

from typing import Any

import yaml
from config_cases import DATA
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskgraph_workers.config.load import load
from taskgraph_workers.errors import ConfigError, Problem

ALIAS = {
    "provisioner": "a",
    "worker-type": "{level}",
    "implementation": "docker-worker",
    "os": "linux",
}
WORDS = [
    *("include", "workers", "profiles", "select", "require", "protect", "clusters", "dispatch"),
    *("default", "parameter", "extends", "levels", "env", "resources", "worker", "to", "kinds"),
    *("b-gpu", "b-.*", "p", "by-level", "by-kind", "by-profile", "by-x", "3", "detect", "gpus"),
    *(
        "share",
        "of",
        "at-least",
        "gpu-memory",
        "memory",
        "16GiB",
        "a/b",
        "{alias}",
        "(",
        "scheduler",
    ),
    *(
        "slurm",
        "groups",
        "number",
        "command",
        "walltime",
        "1:30",
        "skus",
        "images",
        "task",
        "local",
    ),
    *("commands", "scopes", "by-image", "retries", "profile", "provisioner", "implementation"),
]
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=4)
)
keys = st.sampled_from(WORDS) | st.text(max_size=4) | st.integers() | st.booleans() | st.none()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)
entry = st.dictionaries(st.sampled_from(WORDS), values, max_size=4) | values
entries = st.dictionaries(
    st.sampled_from(["b-gpu", "b-.*", ".*", "b-x", "default"]), entry, max_size=3
)
profile = st.fixed_dictionaries(
    {}, optional={"workers": entries, "extends": st.sampled_from(["p", "q", 1]), "levels": values}
)
profiles = st.dictionaries(st.sampled_from(["p", "q"]), profile | scalars, min_size=1)
likely = st.fixed_dictionaries(
    {},
    optional={
        "workers": entries,
        "profiles": profiles,
        "select": st.dictionaries(st.sampled_from(["default", "parameter"]), values, max_size=2),
        "require": st.lists(
            st.fixed_dictionaries({"workers": st.sampled_from(WORDS), "env": values}), max_size=2
        ),
        "clusters": st.dictionaries(st.text(max_size=2), values, max_size=1),
        "dispatch": values,
    },
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(values | st.dictionaries(keys, values, max_size=4) | likely)
def test_nothing_but_config_errors(said: Any):
    """Whatever stands below workers-config, it is a configuration, or faults told in sentences."""
    data = {"workers": {"aliases": {"b-gpu": ALIAS}}, "workers-config": said}
    faults: tuple[Problem, ...] = ()
    try:
        assert load(data).aliases.keys() == {"b-gpu"}
    except ConfigError as error:
        faults = error.problems
    for problem in faults:
        assert problem.file == "config.yml"
        assert problem.message


EXAMPLE = yaml.safe_load((DATA.parent / "design.yml").read_text())
# What it includes is not there, and that would hide the rest.
del EXAMPLE["workers-config"]["include"]


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of each value inside a value."""
    inside = value if isinstance(value, dict) else {}
    inside = dict(enumerate(value)) if isinstance(value, list) else inside
    below = [more for key, each in inside.items() for more in paths(each, (*path, key))]
    return [path, *below] if path else below


def mangled(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """A copy of a value with another one at this path; unchanged where the path leads nowhere."""
    if not path:
        return other
    if not isinstance(value, (dict, list)):
        return value
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    copy = [(k, mangled(v, path[1:], other) if k == path[0] else v) for k, v in pairs]
    return dict(copy) if isinstance(value, dict) else [each for _, each in copy]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(paths(EXAMPLE["workers-config"])), scalars | values), min_size=1
    )
)
def test_nothing_but_config_errors_for_what_was_right(changes: list[tuple[Any, Any]]):
    """The example of the documentation, with any of its values replaced, is one or the other."""
    said = EXAMPLE["workers-config"]
    for path, other in changes:
        said = mangled(said, path, other)
    faults: tuple[Problem, ...] = ()
    config = None
    try:
        config = load({**EXAMPLE, "workers-config": said})
    except ConfigError as error:
        faults = error.problems
    assert (config is None) == any(problem.severity == "error" for problem in faults)
