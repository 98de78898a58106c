"""YAML that reads back as it was, in the house's layout."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from taskgraph_workers.config.write import AFTER, flow, scalar, to_yaml

# YAML itself has no longer ones (of 1024 characters, escapes counted).
KEYS = st.text(max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["0", "yes", "1e3"]),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
    max_leaves=12,
)


@example(
    {"": "", " ": "~", "-": "- a", "a: b": "#", "\n": "\x85", "=": "<<", "null": "é", "...": "---"},
    True,
)
@example(
    {"a": {"b": {"c": ["x, y", "[z]", "{w}", "it's", '"', "\\", "2024-01-01", "1:30"]}}}, False
)
@given(st.dictionaries(KEYS, VALUES), st.booleans())
def test_yaml_reads_back_as_it_was(value: dict[str, Any], opened: bool):
    """Whatever the value: quotes stand wherever YAML would read something else."""
    assert yaml.safe_load(to_yaml(value, opened=lambda path: opened)) == value


def test_the_layout():
    """Four blanks, a line where it fits, blank lines between keys of the second level."""
    value = {
        "top": {
            "a": {"env": {"GPUS": "0 1", "B": "yes"}, "n": 1},
            "b": {"long": {"key": "x" * 40, "other": "y" * 40}},
            "c": [{"a": "{x}"}, {"b": "z" * 70}],
        }
    }
    text = to_yaml(value, {("top", "a"): ["# first"], ("top", AFTER): ["# last"]}, lambda p: False)
    assert text == (
        "top:\n"
        "    # first\n"
        '    a: {env: {GPUS: "0 1", B: "yes"}, n: 1}\n'
        "\n"
        "    b:\n"
        f"        long:\n            key: {'x' * 40}\n            other: {'y' * 40}\n"
        "\n"
        "    c:\n"
        "        - {a: '{x}'}\n"
        f"        - {{b: {'z' * 70}}}\n"
        "    # last\n"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("b-gpu-4.*", "b-gpu-4.*"),
        ("0", '"0"'),
        ("on", '"on"'),
        ("a b", '"a b"'),
        ("{level}", "'{level}'"),
        ("a\\.b", "'a\\.b'"),
        ("*", '"*"'),
        ("(a|b)c", "(a|b)c"),
        ("(a|b)?c", '"(a|b)?c"'),
        (True, "true"),
        (None, "null"),
        (1.5, "1.5"),
    ],
)
def test_scalars(value: Any, text: str):
    """As people write them: quotes only where they are needed, or where a reader may stumble."""
    assert scalar(value) == text
    assert yaml.safe_load(f"[{flow(value)}]") == [value]
