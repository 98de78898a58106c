"""What a trainer printed: where it is, and its end, which does nothing to a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trainings import Site

from taskgraph_workers.cli.dispatch_output import last_lines, near

PRINTED = (
    "printf 'one\\n\\033[31mred\\033[0m\\033]0;title\\007\\n10%%\\r20%%\\r\\n'; "
    "printf '\\a\\033c\\n\\ttab\\n\\nlast'; exit 3"
)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n \n\n", []),
        (b"a\n\nb\n", ["a", "b"]),
        (b"no end", ["no end"]),
        (b"10%\r20%\rdone 30%\n", ["done 30%"]),
        (b"10%\r20%\r\n", ["20%"]),
        (b"\ttab\r\n", ["    tab"]),
        (b"\x1b[1;31mError\x1b[0m: \x1b]8;;http://x\x1b\\y\n", ["Error: y"]),
        (b"\xff\n", ["\\xff"]),
        (b"".join(b"%d\n" % at for at in range(100)), [str(at) for at in range(90, 100)]),
        (b"x" * 1000, ["x" * 300 + "..."]),
        (b"begin\n" + b"y" * 100_000 + b"\nlast", ["last"]),
        (b"y" * 100_000, ["y" * 300 + "..."]),
    ],
    ids=range(13),
)
def test_last_lines(tmp_path: Path, content: bytes, lines: list[str]):
    """Ten at most, none of them empty or long, each as a terminal would show it at last."""
    file = tmp_path / "output.log"
    file.write_bytes(content)
    assert last_lines(str(file)) == lines


def test_lines_that_can_not_be_read(tmp_path: Path):
    """They are none."""
    assert last_lines(str(tmp_path / "none")) == []


def test_a_path_is_short_where_it_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """From here on, unless that leads up."""
    monkeypatch.chdir(tmp_path)
    assert near(str(tmp_path / "a" / "b")) == "a/b"
    assert near("/elsewhere/b") == "/elsewhere/b"


def test_a_failed_training_shows_what_it_printed(tmp_path: Path):
    """Where that is, from its start on; and its last lines, without what a terminal obeys."""
    site = Site(tmp_path)
    trainer = json.dumps(["/bin/sh", "-c", PRINTED])
    config = site.config.read_text("utf-8")
    site.config.write_text(config[: config.index('["/bin/sh')] + trainer + "}}\n", "utf-8")
    site.send("r1", "r2")
    assert site.call("status") == ""
    site.finish()
    shown = site.call("status", "r1", code=1)
    file = site.requests()["r1"]["output"]
    assert f"  output     {Path(file).relative_to(tmp_path)}\n" in shown
    assert shown.partition("its last lines\n")[2].splitlines() == [
        "    one",
        "    red",
        "    20%",
        "    \\x07\\x1bc",
        "        tab",
        "    last",
    ]
    Path(file).write_bytes(b"")
    assert "it printed nothing" in site.call("status", "r1", code=1)
    Path(file).unlink()
    assert "output" not in site.call("status", "r1", code=1)
    assert site.requests()["r1"]["output"] is None


def test_one_that_runs_or_succeeded_says_where_its_output_is(tmp_path: Path):
    """Nothing of it is shown; who wants to see it knows where."""
    site = Site(tmp_path, seconds=300.0)
    site.send("r1")
    site.call("run", "--config", str(site.config), "--once")
    while site.requests()["r1"]["output"] is None:
        pass
    assert "output.log\n" in site.call("status", "r1")
    site.call("cancel", "r1")
    site.finish()
    shown = site.call("status", "r1", code=1)
    assert "output.log\n" in shown
    assert "last lines" not in shown
