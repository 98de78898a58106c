"""What goes on until somebody has enough: it ends when it is told to, whatever it does then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from terminals import Terminal, screen

from tests.cli.commands import ROOT

#: Shows what `look` finds, until a signal ends it.
PROGRAM = """
import sys, threading, time
from taskgraph_workers.cli import live

def look():
    {look}

try:
    with live.Signals() as signals:
        wire = live.Wire(signals)
        with live.Looks(look, 0.01) as looks:
            sys.stderr.write("ready\\n")
            while True:
                wire.wait(1.0, looks.fd)
                for text in looks.found():
                    wire.write(text)
except live.Ended as ended:
    sys.exit(ended.code)
"""

BLOCKED, QUIET, MUCH = "threading.Event().wait()", "return ''", "return 'x' * 100_000"

ENV = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
ENV.pop("NO_COLOR", None)


def started(look: str, *before: str) -> subprocess.Popen[str]:
    """The program, once it waits; its output is read by nobody."""
    words = [*before, sys.executable, "-c", PROGRAM.format(look=look)]
    run = subprocess.Popen(
        words, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert run.stderr is not None
    assert run.stderr.readline() == "ready\n"
    return run


@pytest.mark.parametrize("look", [BLOCKED, QUIET, MUCH], ids=["blocked", "quiet", "much"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_whatever_it_does(look: str, number: signal.Signals, code: int):
    """A look that never comes back, nothing to do, and a reader that takes no more."""
    run = started(look)
    run.send_signal(number)
    assert run.wait(timeout=60) == code
    assert run.stderr is not None
    assert run.stderr.read() == ""


def test_a_signal_that_its_parent_ignored_ends_it():
    """As shells ignore SIGINT for what they start in the background."""
    run = started(QUIET, "sh", "-c", 'trap "" INT; exec "$@"', "sh")
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=60) == 130


def test_it_stays_where_nohup_has_it_stay():
    """Losing its terminal is what that is for."""
    run = started(QUIET, "sh", "-c", 'trap "" HUP; exec "$@"', "sh")
    run.send_signal(signal.SIGHUP)
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=60) == 143


def test_it_ends_when_nobody_reads_it():
    """Also where there is nothing to write, which would tell."""
    run = started(QUIET)
    assert run.stdout is not None
    run.stdout.close()
    assert run.wait(timeout=60) == 1
    assert run.stderr is not None
    assert "BrokenPipeError" in run.stderr.read()


DRAWN = """
import os, sys, time
from taskgraph_workers.cli import live
try:
    with live.Signals() as signals:
        wire = live.Wire(signals)
        with live.Screen(wire) as screen:
            for count in range(1000):
                lines = [f"line {count // 3}-{line}" for line in range(screen.height)]
                came = wire.wait(0.05)
                if live.signal.SIGTSTP in came:
                    screen.stop()
                screen.draw(lines, anew=bool(came))
except live.Ended as ended:
    sys.exit(ended.code)
"""


def test_a_screen_is_drawn_in_place_and_left_as_it_was():
    """In the terminal's other buffer, which is erased once; what is the same is not drawn again."""
    with Terminal([sys.executable, "-c", DRAWN], ENV, 40, 6) as terminal:
        terminal.until("line 3-5")
        terminal.run.send_signal(signal.SIGINT)
        said = terminal.rest()
    assert terminal.run.returncode == 130
    assert said.startswith("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J")
    assert said.endswith("\x1b[?7h\x1b[?25h\x1b[?1049l")
    assert said.count("\x1b[2J") == 1
    assert said.count("line 1-0\x1b[K") == 1
    last = int(said.rpartition("line ")[2].partition("-")[0])
    assert screen(said, 40, 6)[0] == f"line {last}-0"


def test_a_screen_follows_its_terminals_size():
    """It is drawn anew at once, and to the size that there is now."""
    with Terminal([sys.executable, "-c", DRAWN], ENV, 40, 6) as terminal:
        terminal.until("line 1-5")
        terminal.resize(30, 9)
        terminal.until("-8")
        terminal.resize(30, 4)
        before = len(terminal.until("-3\x1b[K\x1b[J"))
        terminal.until("-3\x1b[K\x1b[J")
        terminal.run.send_signal(signal.SIGINT)
        said = terminal.rest()
    assert "-4" not in said[before:]


def test_a_screen_makes_way_for_a_shell():
    """Ctrl-Z leaves the terminal as it was; once it goes on, it is drawn again."""
    with Terminal([sys.executable, "-c", DRAWN], ENV, 40, 6) as terminal:
        terminal.until("line 1-5")
        terminal.run.send_signal(signal.SIGTSTP)
        terminal.until("\x1b[?1049l")
        limit = time.monotonic() + 60
        while "T" not in Path(f"/proc/{terminal.run.pid}/stat").read_text().split(")")[1][:3]:
            assert time.monotonic() < limit, "it was not stopped"
            time.sleep(0.01)
        terminal.run.send_signal(signal.SIGCONT)
        terminal.until("\x1b[?1049h")
        terminal.until("-5")
        terminal.run.send_signal(signal.SIGTERM)
        assert terminal.rest().endswith("\x1b[?1049l")
    assert terminal.run.returncode == 143
