"""Progress as trainers tell it, which are not to be trusted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers.dispatch.executors import progress_file
from taskgraph_workers.dispatch.executors.progress_file import MOST_FILE, MOST_LINE, append, read
from taskgraph_workers.dispatch.model import END_ROWS, MACHINE_ROWS, Progress


def told(path: Path, content: bytes | str, ended: bool = False) -> progress_file.Told:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read(str(path), 3, 9.0, ended)


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
    assert found.facts == [
        Progress("imagesDownloaded", 9.0, 3),
        Progress("loss", 1.5, 3, 2, {"a": 1, "b": [2]}),
    ]
    assert found.ignored == 0


def test_nothing_yet(path: Path):
    """No file, or an empty one."""
    assert read(str(path), 0, 0.0, True).facts == []
    assert told(path, "").ignored == 0


def test_a_line_that_is_still_written(path: Path):
    """It is taken once it has its end, or once the run has."""
    assert told(path, '{"name": "a"}\n{"name": "b"').facts == [Progress("a", 9.0, 3)]
    assert told(path, '{"name": "a"}\n{"name": "b"').ignored == 0
    assert len(told(path, '{"name": "a"}\n{"name": "b"}', ended=True).facts) == 2
    assert told(path, '{"name": "a"}\n{"name": "b"', ended=True).ignored == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("loss: 5", "it is not JSON"),
        ("[1]", "it is no object"),
        ('{"name": "a", "at": 1e15}', "at is no time"),
        ('{"name": "a", "at": -1}', "at is no time"),
        ('{"name": "a", "x": 1e999}', "it is not JSON"),
        ('{"name": "a", "x": ' + "[" * 100 + "]" * 100 + "}", "it is nested too deep"),
        ("{}", "it has no name that could be one"),
        ('{"name": 5}', "it has no name that could be one"),
        ('{"name": "a b"}', "it has no name that could be one"),
        ('{"name": "' + "a" * 65 + '"}', "it has no name that could be one"),
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
    assert [fact.name for fact in found.facts] == ["a", "b"]
    assert (found.ignored, found.first) == (1, f"line 2: {why}")


@pytest.mark.parametrize("name", sorted({*END_ROWS.values(), *MACHINE_ROWS}))
def test_what_is_not_a_trainers_to_say(path: Path, name: str):
    """How it ended, and what machines do."""
    assert told(path, json.dumps({"name": name}) + "\n").facts == []
    taken = progress_file.check({"name": name}, Progress("", 0.0), machine=True)
    assert isinstance(taken, Progress) == (name in MACHINE_ROWS)


def test_a_file_without_end(path: Path):
    """Its beginning counts; that there is more is told."""
    line = b'{"name": "a"}\n'
    found = told(path, line * (MOST_FILE // len(line) + 100))
    assert len(found.facts) == MOST_FILE // len(line)
    assert f"the file has more than {MOST_FILE} bytes" in found.first


def test_what_is_no_file(path: Path, tmp_path: Path):
    """Not what a link leads to, nor a pipe, which would wait for ever."""
    (tmp_path / "secret").write_text('{"name": "secret"}\n')
    path.symlink_to(tmp_path / "secret")
    found = read(str(path), 0, 0.0, True)
    assert (found.facts, found.ignored) == ([], 1)
    path.unlink()
    os.mkfifo(path)
    assert read(str(path), 0, 0.0, True).first == "line 0: it is no file"
    path.unlink()
    path.mkdir()
    assert read(str(path), 0, 0.0, True).first == "line 0: it is no file"


def test_ignored_lines_are_told_of(path: Path):
    """Once when the first comes, and how many at the end; by the same facts at each look."""
    found = told(path, "x\n" * 5)
    (first,) = progress_file.about_ignored(found, 3, 9.0, False)
    assert first == Progress("progressLinesIgnored", 9.0, 3, 0, {"first": "line 1: it is not JSON"})
    again, total = progress_file.about_ignored(found, 3, 10.0, True)
    assert (again.seq, total.seq, total.data) == (0, 1, {"lines": 5})


def test_append(path: Path):
    """What is appended is read; what could not be read is not appended."""
    append(str(path), "loss", {"x": "ä\n"}, 1.0, 4)
    append(str(path), "imagesDownloaded", {}, 2.0)
    assert read(str(path), 0, 0.0, False).facts == [
        Progress("loss", 1.0, 0, 4, {"x": "ä\n"}),
        Progress("imagesDownloaded", 2.0),
    ]
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
    assert len(found.facts) + found.ignored <= content.count(b"\n") + 1
