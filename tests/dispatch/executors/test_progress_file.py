"""Progress as trainers tell it, which are not to be trusted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers.dispatch.executors import progress_file
from taskgraph_workers.dispatch.executors.progress_file import (
    BEGINNING,
    MOST_LINE,
    Mark,
    Told,
    append,
    read,
)
from taskgraph_workers.dispatch.model import END_ROWS, MACHINE_ROWS, Progress

KNOWN = Progress("", 9.0, 3)

#: Why a name is none.
NO_NAME = "a name is a letter, and then up to 63 letters, digits, '_', '.' and '-'"


def look(path: Path, mark: Mark = BEGINNING, ended: bool = False, most: int = 7) -> Told:
    """All that is told behind a mark, some at a time."""
    facts: tuple[Progress, ...] = ()
    more = True
    while more:
        found = read(str(path), mark, KNOWN, most, ended)
        assert len(found.facts) <= most
        facts, mark, more = facts + found.facts, found.mark, found.more
    return Told(facts, mark)


def told(path: Path, content: bytes | str, ended: bool = False) -> Told:
    """What a file with this content tells."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return look(path, ended=ended)


def names(found: Told) -> list[str]:
    return [fact.name for fact in found.facts]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run-3.jsonl"


def test_what_is_told(path: Path):
    """Name, time, number and data; what else a line says is data, too."""
    lines = [
        '{"name": "imagesDownloaded"}',
        '{"name": "loss", "at": 1.5, "seq": 2, "data": {"a": 1}, "b": [2], "run": 9}',
    ]
    found = told(path, "\n".join(lines) + "\n\n \n")
    assert found.facts == (
        Progress("imagesDownloaded", 9.0, 3),
        Progress("loss", 1.5, 3, 2, {"a": 1, "b": [2]}),
    )
    assert found.mark.ignored == 0


def test_nothing_yet(path: Path):
    """No file, or an empty one."""
    assert look(path, ended=True) == Told((), BEGINNING)
    assert told(path, "").mark.ignored == 0


def test_a_line_that_is_still_written(path: Path):
    """It is taken once it has its end, or once the run has."""
    found = told(path, '{"name": "a"}\n{"name": "b"')
    assert (names(found), found.mark.ignored) == (["a"], 0)
    assert look(path, found.mark) == Told((), found.mark)
    with path.open("a") as opened:
        opened.write('}\n{"name": "c"}')
    assert names(look(path, found.mark)) == ["b"]
    assert names(look(path, found.mark, ended=True)) == ["b", "c"]
    assert told(path, '{"name": "a"}\n{"name": "b"', ended=True).mark.ignored == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("loss: 5", "it is not JSON"),
        ("[1]", "it is no object"),
        ('{"name": "a", "at": 1e15}', "at is no time"),
        ('{"name": "a", "at": -1}', "at is no time"),
        ('{"name": "a", "x": 1e999}', "it is not JSON"),
        ('{"name": "a", "x": ' + "[" * 100 + "]" * 100 + "}", "it is nested too deep"),
        ("{}", "it has no name"),
        ('{"name": 5}', "it has no name"),
        ('{"name": "a b"}', NO_NAME),
        ('{"name": "' + "a" * 65 + '"}', NO_NAME),
        ('{"name": "a", "at": "now"}', "at is no time"),
        ('{"name": "a", "at": true}', "at is no time"),
        ('{"name": "a", "at": 1e999}', "it is not JSON"),
        ('{"name": "a", "at": NaN}', "it is not JSON"),
        ('{"name": "a", "at": ' + "9" * 400 + "}", "at is no time"),
        ('{"name": "a", "seq": -1}', "seq is no number to count by"),
        ('{"name": "a", "seq": 1.0}', "seq is no number to count by"),
        ('{"name": "a", "data": 5}', "data is no object"),
        ('{"name": "a", "x": "' + "y" * MOST_LINE + '"}', f"it has more than {MOST_LINE} bytes"),
        ("[" * 4000, "it is not JSON"),
        (b'{"name": "a", "x": "\xff"}', "it is not JSON"),
        ('{"name": "trainingVmDestroyed"}', "trainingVmDestroyed is not a trainer's to say"),
        (
            '{"name": "trainingSucceededWithImages"}',
            "trainingSuceededWithImages is not a trainer's to say",
        ),
    ],
)
def test_lines_that_are_ignored(path: Path, line: str | bytes, why: str):
    """Those around it are taken all the same."""
    line = line.encode() if isinstance(line, str) else line
    found = told(path, b'{"name": "a"}\n' + line + b'\n{"name": "b"}\n')
    assert names(found) == ["a", "b"]
    assert (found.mark.ignored, found.mark.first) == (1, f"line 2: {why}")


@pytest.mark.parametrize("name", sorted({*END_ROWS.values(), *MACHINE_ROWS}))
def test_what_is_not_a_trainers_to_say(path: Path, name: str):
    """How it ended, and what machines do."""
    assert told(path, json.dumps({"name": name}) + "\n").facts == ()
    taken = progress_file.check({"name": name}, Progress("", 0.0), machine=True)
    assert isinstance(taken, Progress) == (name in MACHINE_ROWS)


def test_only_what_is_new_is_read(path: Path):
    """A look behind a mark neither tells a fact again, nor reads it."""
    line = b'{"name": "a"}\n'
    found = told(path, line * 20_000)
    assert len(found.facts) == 20_000
    with path.open("r+b") as opened:  # what nobody reads may be anything
        opened.write(b"x" * 100_000)
    with path.open("ab") as opened:
        opened.write(b'{"name": "b"}\n')
    again = look(path, found.mark)
    assert (names(again), again.mark.ignored) == (["b"], 0)


def test_a_line_that_is_too_long_is_left_out_once(path: Path):
    """Also while it is being written, and however long it gets."""
    found = told(path, b'{"name": "a"}\n' + b"x" * 9000)
    assert (names(found), found.mark.ignored) == (["a"], 1)
    with path.open("ab") as opened:
        opened.write(b"x" * 1_000_000)
    found = look(path, found.mark)
    with path.open("ab") as opened:
        opened.write(b'x\n{"name": "b"}\nx\n')
    found = look(path, found.mark, ended=True)
    assert (names(found), found.mark.ignored) == (["b"], 2)
    assert found.mark.first == f"line 2: it has more than {MOST_LINE} bytes"


@pytest.mark.parametrize("how", ["cut", "written anew", "rotated", "gone for a while"])
def test_a_file_that_is_not_only_appended_to(path: Path, how: str):
    """What is told then is taken, from its beginning; the ledger knows what it knows."""
    found = told(path, "".join(f'{{"name": "a{at}"}}\n' for at in range(100)))
    new = '{"name": "b"}\n{"name": "c"}\n'
    if how == "written anew":
        new *= 200
    if how == "rotated":
        path.rename(path.with_suffix(".1"))
        new = path.with_suffix(".1").read_text() + new
    if how == "gone for a while":
        path.unlink()
        assert look(path, found.mark).facts == ()
    path.write_text(new)
    again = look(path, found.mark)
    assert {"b", "c"} <= set(names(again))
    assert look(path, again.mark).facts == ()


def test_a_file_without_end(path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its beginning counts; that there is more is told once. Writing it anew changes nothing."""
    line = b'{"name": "a"}\n'
    monkeypatch.setattr(progress_file, "MOST_FILE", 100_000)
    found = told(path, line * 50_000)
    assert len(found.facts) <= 100_000 // len(line) + progress_file._CHUNK // len(line)
    assert "more than 100000 bytes were told" in found.mark.first
    path.write_bytes(line)
    assert look(path, found.mark, ended=True) == Told((), found.mark)


def test_what_is_no_file(path: Path, tmp_path: Path):
    """Not what a link leads to, nor a pipe, which would wait for ever. It is said once."""
    (tmp_path / "secret").write_text('{"name": "secret"}\n')
    path.symlink_to(tmp_path / "secret")
    found = look(path)
    assert (found.facts, found.mark.ignored) == ((), 1)
    assert look(path, found.mark) == found
    path.unlink()
    os.mkfifo(path)
    assert look(path).mark.first == "line 0: it is no file"
    path.unlink()
    path.mkdir()
    assert look(path).mark.first == "line 0: it is no file"
    path.rmdir()
    path.write_text('{"name": "a"}\n')
    assert names(look(path, found.mark)) == ["a"]


def test_append(path: Path):
    """What is appended is read; what could not be read is not appended."""
    append(str(path), "loss", {"x": "ä\n"}, 1.0, 4)
    append(str(path), "imagesDownloaded", {}, 2.0)
    assert look(path).facts == (
        Progress("loss", 1.0, 3, 4, {"x": "ä\n"}),
        Progress("imagesDownloaded", 2.0, 3),
    )
    with pytest.raises(ValueError, match="is not a trainer's to say"):
        append(str(path), "trainingFailed", {}, 1.0)
    with pytest.raises(ValueError, match="more than"):
        append(str(path), "a", {"x": "y" * MOST_LINE}, 1.0)
    with pytest.raises(ValueError, match="not JSON compliant"):
        append(str(path), "a", {"x": float("inf")}, 1.0)
    assert len(path.read_text().splitlines()) == 2


@given(st.binary(max_size=300), st.booleans())
def test_nothing_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, content, ended):
    """Whatever is in the file: facts, and a count of lines that are none."""
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    found = told(path, content, ended)
    assert len(found.facts) + found.mark.ignored <= content.count(b"\n") + 1


LINES = st.sampled_from(
    [*(b'{"name": "a", "seq": %d}\n' % at for at in range(9)), b"no\n", b"\n", b"x" * 9000 + b"\n"]
)


@given(
    st.lists(LINES, max_size=30), st.lists(st.integers(0, 20_000), max_size=8), st.integers(1, 5)
)
def test_a_file_tells_the_same_however_it_grows(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], cuts: list[int], most: int
):
    """Looked at in between, at any byte, or once at its end."""
    path = tmp_path_factory.getbasetemp() / "grows.jsonl"
    content = b"".join(lines)
    whole = told(path, content, ended=True)
    facts: tuple[Progress, ...] = ()
    mark = BEGINNING
    for upto in [*sorted(cuts), len(content)]:
        path.write_bytes(content[:upto])
        found = look(path, mark, ended=upto == len(content), most=most)
        facts, mark = facts + found.facts, found.mark
    assert facts == whole.facts
    assert (mark.ignored, mark.first) == (whole.mark.ignored, whole.mark.first)
