"""Terminals to test with: programs run on one, and what they wrote there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence

#: How long anything is waited for that a program writes.
_PATIENCE_S = 60.0

_SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


class Terminal:
    """A program on a terminal of its own, which nobody reads unless :meth:`until` does."""

    def __init__(
        self, words: Sequence[str], env: Mapping[str, str], columns: int = 80, lines: int = 24
    ) -> None:
        self.leader, follower = pty.openpty()
        self.said = ""
        self._resize(columns, lines)
        # In a group of its own, as shells have it: one whose parents are gone can't be stopped
        # by SIGTSTP (POSIX, 2.4.3), and nobody knows who started the tests.
        self.run = subprocess.Popen(
            list(words),
            env=dict(env),
            stdin=follower,
            stdout=follower,
            stderr=follower,
            preexec_fn=os.setpgrp,  # noqa: PLW1509
        )
        os.close(follower)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.run.poll() is None:
            self.run.kill()
            self.run.wait()
        os.close(self.leader)

    def until(self, text: str, since: int | None = None) -> str:
        """Read until the program has written this, now or since it had written so many characters.

        All that it wrote, from the first on.
        """
        since = len(self.said) if since is None else since
        while text not in self.said[since:]:
            assert select.select([self.leader], [], [], _PATIENCE_S)[0], self.said
            self.said += os.read(self.leader, 65536).decode()
        return self.said

    def rest(self) -> str:
        """All that was written, once the program has ended."""
        self.run.wait(timeout=_PATIENCE_S)
        while select.select([self.leader], [], [], 0)[0]:
            try:
                said = os.read(self.leader, 65536)
            except OSError:  # as Linux says that nobody has the other side
                break
            self.said += said.decode()
        return self.said

    def resize(self, columns: int, lines: int) -> None:
        """Change its size, and tell the program."""
        self._resize(columns, lines)
        self.run.send_signal(signal.SIGWINCH)

    def _resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def screen(said: str, columns: int, lines: int) -> list[str]:
    """What stands on a terminal of this size that was told all this: its lines.

    Knows what a view needs that is drawn in place, and fails for anything else. Nothing may be
    written past an edge.
    """
    rows = [[" "] * columns for _ in range(lines)]
    at = [0, 0]
    position = 0
    while position < len(said):
        found = _SEQUENCE.match(said, position)
        if found:
            _obey(rows, at, found[1], found[2])
            position = found.end()
            continue
        char = said[position]
        position += 1
        if char == "\r":
            at[1] = 0
        elif char == "\n":
            at[0] += 1
        else:
            assert char.isprintable(), repr(char)
            assert at[0] < lines, said[:position]
            assert at[1] < columns, said[:position]
            rows[at[0]][at[1]] = char
            at[1] += 1
    return ["".join(row).rstrip() for row in rows]


def _obey(rows: list[list[str]], at: list[int], number: str, letter: str) -> None:
    columns = len(rows[0])
    if letter == "H":
        assert not number
        at[:] = [0, 0]
    elif letter == "K":
        rows[at[0]][at[1] :] = [" "] * (columns - at[1])
    elif letter == "J" and number == "":
        rows[at[0]][at[1] :] = [" "] * (columns - at[1])
        for row in rows[at[0] + 1 :]:
            row[:] = [" "] * columns
    elif letter == "J":
        assert number == "2"
        for row in rows:
            row[:] = [" "] * columns
    else:
        assert letter in ("m", "h", "l"), (number, letter)
