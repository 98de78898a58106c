"""What trainers print fills no disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from local_jobs import Bench, job

from taskgraph_workers.dispatch.executors import outputs
from taskgraph_workers.dispatch.executors.outputs import MARKER, shorten


def test_what_is_short_stays(tmp_path: Path):
    """To the last byte that is allowed."""
    file = tmp_path / "output.log"
    file.write_bytes(b"x" * 100)
    assert not shorten(str(file), most=100, kept=10)
    assert file.read_bytes() == b"x" * 100


def test_the_middle_is_left_out(tmp_path: Path):
    """Whole lines of the beginning and of the end stay, and what is between them is said."""
    file = tmp_path / "output.log"
    lines = [f"line {number:04}\n".encode() for number in range(100)]
    file.write_bytes(b"".join(lines))
    assert shorten(str(file), most=900, kept=205)
    assert file.read_bytes() == b"".join([*lines[:20], MARKER, *lines[80:]])


def test_it_goes_on_behind_that(tmp_path: Path):
    """A trainer that has the file open for appending notices nothing, however often."""
    file = tmp_path / "output.log"
    with file.open("ab", buffering=0) as opened:
        for number in range(1000):
            opened.write(f"line {number:04}\n".encode())
            shorten(str(file), most=1000, kept=300)
    text = file.read_text()
    assert len(text) <= 1000
    assert text.startswith("line 0000\nline 0001\n")
    assert text.endswith("line 0998\nline 0999\n")
    assert text.count(MARKER.decode()) == 1


def test_one_endless_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is cut where it has to be, as are bytes that are no text."""
    monkeypatch.setattr(outputs, "_LONGEST_LINE", 8)
    file = tmp_path / "output.log"
    file.write_bytes(b"a" * 500 + b"\xff" * 500)
    assert shorten(str(file), most=900, kept=100)
    assert file.read_bytes() == b"a" * 100 + MARKER + b"\xff" * 100


def test_a_file_that_is_not_there(tmp_path: Path):
    """Nothing is done, and nothing breaks."""
    assert not shorten(str(tmp_path / "none"))


def test_a_trainer_that_prints_without_end(bench: Bench):
    """Its log has a limit, its beginning and its end; the job is none the worse."""
    much = outputs.MOST // 1024 + 1024
    loud = f"echo begin; dd if=/dev/zero bs=1024 count={much} 2>/dev/null; echo; echo end; exit 4"
    executor = bench.executor("sh", "-c", loud)
    executor.submit(job())
    assert bench.ended(executor).exit_code == 4
    log = Path(bench.at().at("output.log"))
    assert os.path.getsize(log) <= outputs.MOST
    text = log.read_bytes()
    assert (text[:6], text[-4:], MARKER in text) == (b"begin\n", b"end\n", True)
