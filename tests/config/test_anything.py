"""Whatever stands below `workers-config`."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskgraph_workers.config import load
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
profiles = st.dictionaries(
    st.sampled_from(["p", "q"]),
    st.fixed_dictionaries(
        {}, optional={"workers": entries, "extends": st.sampled_from(["p", "q", 1])}
    ),
    max_size=2,
)
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
