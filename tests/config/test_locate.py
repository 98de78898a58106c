"""Where a key path stands."""

from __future__ import annotations

import pytest
import yaml

from taskgraph_workers.config.locate import Place, Source, Trace, find, oddities
from taskgraph_workers.errors import Problem, dotted

TEXT = """\
base: &base {a: 1, on: x}
top:
    <<: *base
    list:
        - {b: 2}
        - [c, 0o7]
    3: three
    key: first
    key: last
    merged: {<<: [*base, {d: 4}], e: 5}
"""
NODE = yaml.compose(TEXT, Loader=yaml.SafeLoader)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ((), Place(())),
        (("top",), Place(("top",), 2, 1)),
        (("top", "list", 0, "b"), Place(("top", "list", 0, "b"), 5, 12, "2")),
        (("top", "list", 1, 1), Place(("top", "list", 1, 1), 6, 15, "0o7")),
        (("top", 3), Place(("top", "3"), 7, 5, "three")),
        (("top", "3"), Place(("top", "3"), 7, 5, "three")),
        (("top", "key"), Place(("top", "key"), 9, 5, "last")),
        (("base", True), Place(("base", "on"), 1, 20, "x")),
        (("top", "a"), Place(("top", "a"), 1, 14, "1")),
        (("top", "merged", "d"), Place(("top", "merged", "d"), 10, 27, "4")),
        (("top", "gone", "x"), Place(("top", "gone", "x"), 2, 1)),
        (("top", "list", 9), Place(("top", "list", 9), 4, 5)),
        (("top", "key", "to"), Place(("top", "key"), 9, 5, "last")),
        (("top", None, False), Place(("top", "none", "false"), 2, 1)),
    ],
)
def test_places(path, place: Place):
    """Of each key its own place, also in flow style, lists and merged mappings; as it is written.

    Below what is not there the place is that of the last key that is; below a scalar the path
    ends, since nothing can be written there.
    """
    assert find(NODE, path) == place


def test_without_a_text():
    """Without a text there is a path, and no line."""
    assert find(None, ("a", 0, True)) == Place(("a", 0, "true"))
    assert Source("gone").compose() is None
    assert Source("bad", b"{").compose() is None


def test_names_are_short(tmp_path, monkeypatch):
    """A file is named as seen from here, unless its whole name is shorter."""
    monkeypatch.chdir(tmp_path)
    assert Source(str(tmp_path / "a" / "config.yml")).shown == "a/config.yml"
    assert Source(str(tmp_path.parent / "config.yml")).shown == "../config.yml"
    assert Source("/c.yml").shown == "/c.yml"
    assert Source("given.yml").shown == "given.yml"


def test_origins():
    """A path leads to the file it came from, with all that is below it."""
    trace = Trace(
        (Source("config.yml"), Source("a.yml"), Source("b.yml")),
        {("profiles", "p"): (1, ("profiles", "p")), ("profiles", "p", "x"): (2, ("top", "x"))},
    )
    top = "workers-config"
    assert trace.origin((top, "profiles")) == (0, (top, "profiles"))
    assert trace.origin((top, "profiles", "p", "y")) == (1, ("profiles", "p", "y"))
    assert trace.origin((top, "profiles", "p", "x", "z")) == (2, ("top", "x", "z"))
    assert trace.origin(("workers", "aliases", "p")) == (0, ("workers", "aliases", "p"))


def test_only_what_is_ours_is_located():
    """A problem that has a file keeps it, and one of another's path gets none."""
    trace = Trace((Source("config.yml", b"workers: {aliases: {a: b}}"),))
    alias = Problem("x", ("workers", "aliases", "a"))
    there, other, task, none = trace.locate(
        [
            Problem("x", ("workers-config",), file="f"),
            alias,
            Problem("x", ("env", "A")),
            Problem("x"),
        ]
    )
    assert there.file == "f"
    assert (other.file, other.line, other.column) == ("config.yml", 1, 21)
    assert (task.file, none.file) == ("", "")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: {a: 2, a: 3}", [((2, 11), "b.a", "this key stands on line 2 already")]),
        (
            "- {3: a, '3': b}\n- {on: a, yes: b}",
            [((2, 11), "[1].yes", "this key stands on line 2")],
        ),
        ("a: &x {b: 1, b: 2}\nc: *x", [((1, 14), "a.b", "this key stands on line 1 already")]),
        ("a: {<<: {b: 1}, <<: {c: 2}}", []),
        ("? [a]\n: b\n? {a: b}\n: c", []),
        ("a: 1:30", [((1, 1), "a", "YAML reads 1:30 as the number 90")]),
        (
            "a: [010, 0, '010', 0.5, -012]",
            [
                ((1, 5), "a[0]", "YAML reads 010 as the number 8"),
                ((1, 25), "a[4]", "YAML reads -012 as the number -10"),
            ],
        ),
        ("a: '1:30'\nb: 00:20:00\nc: 10", []),
    ],
)
def test_oddities(text: str, told):
    """Keys that stand twice, and numbers to another base; each once, where it stands."""
    found = list(oddities(yaml.compose(text, Loader=yaml.SafeLoader)))
    assert [(each.line, each.column) for each in found] == [place for place, _, _ in told]
    for problem, (_, path, message) in zip(found, told):
        assert dotted(problem.path) == path
        assert problem.message.startswith(message)
