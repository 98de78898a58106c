"""Changes to YAML text that leave the rest as it is."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers.launch.merlin.edits import Editor, Impossible

TEXT = """\
# A study.
study:
- name: a   # the first
  run:
    cmd: |
      echo 1
    nodes: 2   # two
- name: b
  run: {cmd: x, cores: 4}   # in one line
"""


def test_the_rest_stays_as_it_is():
    """Keys are added, renamed, replaced and taken away; comments and order stay."""
    editor = Editor(TEXT)
    editor.set(("study", 0, "run", "procs"), 8)
    editor.set(("study", 0, "run", "nodes"), 4)
    editor.rename(("study", 1, "run", "cores"), "cores per task", 2)
    editor.set(("study", 1, "run", "task_queue"), "on")
    assert editor.result() == (
        TEXT.replace("nodes: 2   # two", "nodes: 4   # two\n    procs: 8").replace(
            "cores: 4}", 'cores per task: 2, task_queue: "on"}'
        )
    )


def test_a_key_is_taken_away_with_its_line():
    """What goes leaves no empty line, and what was added behind it stays."""
    editor = Editor(TEXT)
    editor.set(("study", 0, "run", "procs"), 8)
    editor.remove(("study", 0, "run", "nodes"))
    assert editor.result() == TEXT.replace("nodes: 2   # two", "procs: 8")


def test_a_part_of_a_text():
    """Is replaced where it stands, in quotes or not; nothing is where it is written otherwise."""
    text = "a: -c 4 -x   # -c 4\nb: '-c 4'\nc: \"-c\\x204\"\nd: >\n  -c 4\n"
    editor = Editor(text)
    for key in "ab":
        editor.substitute((key,), "-c 4", "-c 1")
    assert editor.result() == text.replace("a: -c 4", "a: -c 1").replace("b: '-c 4'", "b: '-c 1'")
    for key in "cde":
        with pytest.raises(Impossible):
            editor.substitute((key,), "-c 4", "-c 1")


def test_before_a_text_of_several_lines():
    """Where no value ends on its line, a key is added in front of the first."""
    editor = Editor("run:\n  cmd: |\n    x\n\n# end\n")
    editor.set(("run", "procs"), 1)
    assert editor.result() == "run:\n  procs: 1\n  cmd: |\n    x\n\n# end\n"


def test_line_ends_stay():
    """A text with CRLF keeps it."""
    editor = Editor("run:\r\n  nodes: 2\r\n  x: y\r\n")
    editor.set(("run", "procs"), 1)
    assert editor.result() == "run:\r\n  nodes: 2\r\n  x: y\r\n  procs: 1\r\n"


@pytest.mark.parametrize(
    "text",
    [
        "a: &a {x: 1}\nb: *a\n",
        "a: &a\n  x: 1\nb:\n  <<: *a\n",
        "a: {}\n",
        "a: text\n",
        "b: {x: 1}\n",
        "a: [1]\n",
    ],
)
def test_what_others_share_is_not_touched(text: str):
    """A mapping that stands in two places, or is none, can't be changed in one."""
    editor = Editor(text)
    with pytest.raises(Impossible):
        editor.set(("a", "y"), 1)


def test_a_text_that_came_out_otherwise_is_refused():
    """A key that YAML reads as something else than text is not what was meant to be set."""
    editor = Editor("run:\n  on: 1\n")
    editor.set(("run", "on"), 2)
    with pytest.raises(Impossible):
        editor.result()


KEYS = st.text("abcXYZ _-:#'\"é$", min_size=1, max_size=6)
VALUES = st.one_of(st.integers(), KEYS, st.sampled_from(["on", "null", "1:30", "{", "- x", "~"]))


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), KEYS, VALUES, st.booleans())
def test_a_key_comes_out_as_it_was_set(
    values: dict[str, int | str], key: str, value: int | str, flow: bool
):
    """Whatever a key and its value hold, the text that comes out stands for just that."""
    text = yaml.safe_dump({"run": values}, default_flow_style=flow, width=1000)
    editor = Editor(text)
    editor.set(("run", key), value)
    try:
        result = editor.result()
    except Impossible:
        return
    assert yaml.safe_load(result) == {"run": {**values, key: value}}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85", "\u2028", "\u2029"])
def test_whatever_ends_a_line(end: str):
    """Lines are those of YAML: what is added ends as the line before it does."""
    text = TEXT.replace("\n", end)
    editor = Editor(text)
    editor.set(("study", 0, "run", "procs"), 8)
    editor.remove(("study", 0, "run", "nodes"))
    editor.set(("study", 1, "run", "task_queue"), "b")
    assert editor.result() == (
        TEXT.replace("nodes: 2   # two", "procs: 8")
        .replace("cores: 4}", "cores: 4, task_queue: b}")
        .replace("\n", end)
    )


@pytest.mark.parametrize("end", ["\r", "\x85", "\u2028", "\u2029"])
def test_other_ends_of_a_line_inside_of_a_text(end: str):
    """Count as lines, too."""
    text = f"a: 'x {end} y'\nrun:\n  nodes: 2\n"
    editor = Editor(text)
    editor.set(("run", "procs"), 1)
    editor.set(("run", "nodes"), 3)
    assert editor.result() == text.replace("2\n", "3\n") + "  procs: 1\n"
