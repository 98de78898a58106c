"""``dispatch status --watch``, on terminals and for programs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest
from ledgers import NOW
from terminals import Terminal, screen
from trainings import Site

from taskgraph_workers.dispatch.ledger import progress
from taskgraph_workers.dispatch.ledger.database import open_ledger
from taskgraph_workers.dispatch.model import Progress
from tests.cli.commands import ROOT

LONG = "-".join("abcdefgh" for _ in range(20))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def on_terminal(site: Site, *words: str, size: tuple[int, int] = (80, 24), **env: str) -> Terminal:
    """``dispatch status --watch`` on a terminal."""
    usual = {name: os.environ[name] for name in os.environ if name not in ("COLUMNS", "NO_COLOR")}
    said = {"TASKGRAPH_WORKERS_STATE": str(site.state), "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    argv = [sys.executable, "-m", "taskgraph_workers", "dispatch", "status", "--watch", *words]
    return Terminal(argv, {**usual, **said, **env}, *size)


def ended(terminal: Terminal) -> str:
    """All that it wrote, once Ctrl-C has ended it."""
    terminal.run.send_signal(signal.SIGINT)
    said = terminal.rest()
    assert terminal.run.returncode == 130
    # Where the cursor is then, on an empty line, every command takes its own progress away.
    return said.removesuffix("\r\x1b[K")


def reads_until(stream: IO[str], text: str) -> str:
    """What is read up to a line with this text in it."""
    said = ""
    for line in stream:
        said += line
        if text in line:
            return said
    raise AssertionError(said)


def begin(site: Site, *request_ids: str) -> None:
    """Have these trainings begin."""
    site.send(*request_ids)
    site.call("run", "--config", str(site.config), "--once")
    assert {each["state"] for each in site.requests().values()} <= {"submitted", "running"}


def test_a_reader_gets_a_line_for_each_change(tmp_path: Path):
    """Without a code for terminals, until what is watched has ended."""
    site = Site(tmp_path, seconds=1.5)
    begin(site, "r1")
    watch = site.start("status", "r1", "--watch", TERM="xterm")
    assert watch.stdout is not None
    first = watch.stdout.readline()
    site.finish()
    out, err = watch.communicate(timeout=60)
    assert (watch.returncode, err) == (0, "")
    told = [line.split("  ", 1)[1] for line in (first + out).splitlines()]
    log = next(site.state.glob("jobs/*/output.log"))
    wanted = ["imagesDownloaded", "succeeded", f"output  {log.relative_to(tmp_path)}"]
    assert [line for line in told if line.removeprefix("r1  ") in wanted] == [
        f"r1  {each}" for each in wanted
    ]
    assert told[0] in ("r1  submitted", "r1  running")
    assert len(told) == len(set(told))
    assert "\x1b" not in first + out


def test_a_reader_of_all_gets_only_what_changes(site: Site):
    """Each request once, and then those alone that went on: on one line, however long."""
    begin(site, LONG, "r2")
    watch = site.start("status", "--watch")
    assert watch.stdout is not None
    first = watch.stdout.readline() + watch.stdout.readline()
    site.send("r3", trainingVmSku="ND7")
    site.finish()
    said = first + reads_until(watch.stdout, "r3")
    watch.send_signal(signal.SIGINT)
    said += watch.communicate(timeout=60)[0]
    lines = [line.split("  ")[1:] for line in said.splitlines()]
    assert any(line[:2] == ["r3", "rejected"] and "not known here" in line[2] for line in lines)
    assert all(line[0] in (LONG, "r2", "r3") for line in lines)
    assert len(lines) == len({tuple(line) for line in lines})


def test_it_ends_by_a_signal_that_a_shell_had_ignored(site: Site):
    """As one does for what it starts in the background. Nothing is lost, also under load."""
    site.send("r1")
    words = [sys.executable, "-m", "taskgraph_workers", "dispatch", "status", "--watch"]
    watch = subprocess.Popen(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *words, "--state", str(site.state)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    assert watch.stderr is not None
    assert watch.stdout is not None
    site.finish()
    reads_until(watch.stdout, "r1")
    watch.send_signal(signal.SIGINT)
    assert watch.wait(timeout=60) == 130
    assert watch.stderr.read() == ""


def test_a_reader_that_leaves_ends_it(site: Site):
    """``| head -1``: at once, and not when something changes."""
    site.send("r1")
    site.finish()
    watch = site.start("status", "--watch")
    assert watch.stdout is not None
    assert "r1" in watch.stdout.readline()
    watch.stdout.close()
    assert watch.wait(timeout=60) == 141
    assert watch.stderr is not None
    assert watch.stderr.read() == ""


def test_a_terminal_is_drawn_on_in_place(tmp_path: Path):
    """A table that goes on, with what is under way first; the terminal is as it was afterwards."""
    site = Site(tmp_path, seconds=300.0)
    begin(site, "r1", "r2", LONG)
    with on_terminal(site) as terminal:
        shown = screen(terminal.until("\x1b[J").partition("\x1b[?1049l")[0], 80, 24)
        assert re.fullmatch(r"(\d (submitted|running)(, )?)+", shown[0])
        assert shown[2].split() == ["request", "state", "sku", "so", "far"]
        site.call("cancel", "r1")
        terminal.until("asked to end at", 0)
        said = ended(terminal)
    assert said.startswith("\x1b[?1049h")
    assert said.endswith("\x1b[?1049l")
    assert said.count("\x1b[2J") == 1
    site.call("cancel", "r2")
    site.call("cancel", LONG)
    site.finish()


def test_a_terminal_that_is_small_or_changes(site: Site):
    """Nothing is written past its edges, and what does not fit is counted."""
    site.send(*(f"request-{number}" for number in range(30)))
    site.finish()
    with on_terminal(site, size=(60, 10)) as terminal:
        shown = screen(terminal.until("\x1b[J"), 60, 10)
        assert shown[-1].endswith("lines more: dispatch status shows all")
        at = len(terminal.said)
        terminal.resize(100, 50)
        terminal.until("request-0 ", at)
        shown = screen(terminal.until("\x1b[J", at)[at:], 100, 50)
        assert len([line for line in shown if line.startswith("request-")]) == 30
        ended(terminal)


@pytest.mark.parametrize("lines", [5, 12, 24, 60])
def test_one_request_on_a_terminal_of_any_height(site: Site, lines: int):
    """Its state comes first, and as many of its last facts as there is room for."""
    begin(site, "r1")
    facts = [Progress(f"step{at}", NOW + at, data={"loss": 0.5}) for at in range(40)]
    with open_ledger(site.state) as ledger:
        assert ledger.do(progress.append, "r1", 1, facts) == 40
    with on_terminal(site, "r1", size=(80, lines)) as terminal:
        shown = screen(terminal.until("\x1b[J").partition("\x1b[?1049l")[0], 80, lines)
        ended(terminal)
    assert shown[0] == "r1"
    assert "submitted" in shown[1]
    assert lines < 20 or any("step39" in line for line in shown)


def test_what_ended_stays_on_the_terminal(site: Site):
    """The end of the one that is watched is printed where the command was typed."""
    site.send("r1")
    site.finish()
    with on_terminal(site, "r1") as terminal:
        said = terminal.rest()
    assert terminal.run.returncode == 0
    after = said.rpartition("\x1b[?1049l")[2]
    assert "succeeded" in after
    assert "imagesDownloaded" in after


@pytest.mark.parametrize(("env", "drawn"), [({"NO_COLOR": "1"}, True), ({"TERM": "dumb"}, False)])
def test_terminals_that_want_no_colour_or_can_do_nothing(
    site: Site, env: dict[str, str], drawn: bool
):
    """No colour is used, and on one that can do nothing no code at all."""
    site.send("r1")
    site.finish()
    with on_terminal(site, **env) as terminal:
        terminal.until("succeeded")
        time.sleep(0.1)
        said = ended(terminal)
    assert "\x1b[0m" not in said
    assert ("\x1b" in said) == drawn
