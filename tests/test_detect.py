from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needs import needs
from taskgraph_workers import detect
from taskgraph_workers.detect import (
    Detect,
    Found,
    detect_here,
    parse,
    prelude,
    read_prelude,
    render,
)

MACHINES = Path(__file__).parent / "stand_ins"
INDICES = {"GPUS": Detect("gpu-indices")}
MEMORY = {"WORKSPACE": Detect("gpu-memory", share=0.75)}


def test_the_shell_text_is_clean():
    """Nothing in the file, nor in what a task with every kind of value gets, worries shellcheck."""
    values = {**INDICES, **MEMORY, "N": Detect("gpu-count"), "X": Detect("inherited")}
    file = Path(detect.__file__).with_suffix(".sh").read_text(encoding="utf-8")
    for text in (file, prelude(values) + 'exec "$@"\n'):
        done = subprocess.run(
            [needs("shellcheck"), "--shell=sh", "-"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == ""
        assert done.returncode == 0


def test_the_prelude_is_small_and_the_same_every_time():
    """No value, no text; else a fixed order, short lines, and only what the values need."""
    assert prelude({}) == ""
    both = {**INDICES, **MEMORY}
    assert prelude(both) == prelude(dict(reversed(both.items())))
    assert max(len(line) for line in prelude(both).splitlines()) <= 100
    assert len(prelude(both)) < 6000
    assert "tw_memory" not in prelude(INDICES)
    assert len(prelude({"X": Detect("inherited")})) < 500


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "A;true", "A\n", "É"])
def test_a_name_that_no_shell_can_hold_is_refused(name: str):
    """A name that is no shell variable never gets into the shell text."""
    with pytest.raises(ValueError, match="is no name for an environment variable"):
        prelude({name: Detect("gpu-count")})


DETECTS = st.one_of(
    st.builds(
        Detect,
        st.sampled_from(["gpu-indices", "gpu-count"]),
        at_least=st.none() | st.integers(1),
    ),
    st.builds(
        Detect,
        st.just("gpu-memory"),
        st.floats(0.000001, 1),
        st.sampled_from(detect.OF),
        st.none() | st.integers(1),
    ),
    st.just(Detect("inherited")),
)


@given(DETECTS)
def test_render_and_parse_are_inverse(value: Detect):
    """What is rendered parses to the same value."""
    assert parse(render(value)) == value


@given(st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True), DETECTS))
def test_a_prelude_can_be_read_back(values: dict[str, Detect]):
    """What is read from a prelude exports the same names, by the same text."""
    found = read_prelude(prelude(values))
    assert found.keys() == values.keys()
    assert prelude(found) == prelude(values)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ({"detect": "gpu-indices"}, Detect("gpu-indices")),
        ({"detect": "gpu-memory", "share": 1}, Detect("gpu-memory", 1.0)),
        (
            {"detect": "gpu-memory", "share": 0.75, "of": "largest", "at-least": 8000},
            Detect("gpu-memory", 0.75, "largest", 8000),
        ),
        ({"detect": "inherited"}, Detect("inherited")),
    ],
)
def test_a_valid_value_is_parsed(raw: dict[str, object], value: Detect):
    """Every form that the configuration may hold has its value."""
    assert parse(raw) == value


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        ({}, "'detect' has to be one of gpu-count, gpu-indices, gpu-memory, inherited, not None"),
        ({"detect": 1}, "'detect' has to be one of"),
        ({"detect": "gpu-index"}, "'detect' can't be 'gpu-index'; did you mean 'gpu-indices'?"),
        ({"detect": "gpu-count", "atleast": 1}, "'atleast' is no key .* did you mean 'at-least'?"),
        ({"detect": "gpu-count", 3: 1}, "3 is no key of a detect value"),
        ({"detect": "gpu-count", "share": 1}, "'share' goes with 'detect: gpu-memory' only"),
        ({"detect": "inherited", "of": "sum"}, "'of' goes with 'detect: gpu-memory' only"),
        ({"detect": "inherited", "at-least": 1}, "'at-least' can't be checked"),
        *(
            ({"detect": "gpu-memory", "share": bad}, "'share' has to be a number over 0, 1 at most")
            for bad in ("0.75", 0, -1, 1.01, True, None, float("nan"), 1e-9)
        ),
        *(
            ({"detect": "gpu-count", "at-least": bad}, "'at-least' has to be a whole number from 1")
            for bad in ("2", 0, 1.5, True, None)
        ),
        ({"detect": "gpu-memory", "of": "smalest"}, "did you mean 'smallest'?"),
        ({"detect": "gpu-memory", "of": None}, "'of' has to be one of largest, smallest, sum"),
    ],
)
def test_a_fault_is_told_in_one_sentence(raw: dict[str, object], fault: str):
    """A wrong key, type or combination is refused, with what would be right."""
    with pytest.raises(ValueError, match=fault) as caught:
        parse(raw)
    assert "\n" not in str(caught.value)


def test_detect_here_tells_each_name_apart():
    """One name's fault doesn't hide another's value, and each comes with its source."""
    values = {"GPUS": Detect("gpu-count", at_least=9), **MEMORY, "X": Detect("inherited")}
    environ = {"PATH": str(MACHINES / "four"), "CUDA_VISIBLE_DEVICES": "1", "X": "x\n"}
    gpus, workspace, x = detect_here(values, environ)
    assert (gpus.name, gpus.value) == ("GPUS", None)
    assert gpus.said.startswith("GPUS: 1 GPUs found, at least 9 wanted (1 of 4 GPUs, from CUDA")
    why = "3/4 of 16160 MiB, the smallest of 1 of 4 GPUs, from CUDA_VISIBLE_DEVICES"
    assert workspace == Found("WORKSPACE", "12120", why)
    assert x == Found("X", "x\n", "inherited from the worker")
