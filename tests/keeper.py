"""Starts servers for tests, and ends them when the tests are over, however those ended.

Run as a process of its own (``python keeper.py FOLDER``), it reads commands from standard input,
one JSON list a line, and starts each in the folder. Once its input ends, since the tests closed
it or were killed, it kills all that was started, with every process that came of it, and removes
the folder. Use it as :class:`Keeper`.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

# prctl(2): orphans below this process become its children, so none gets out of sight.
_SUBREAPER = 36


class Keeper:
    """A folder of its own, and the servers that were started in it."""

    def __init__(self, folder: Path, process: subprocess.Popen[str]) -> None:
        self.folder = folder
        self._process = process

    def start(self, *command: str) -> None:
        """Start a server that stays in the foreground; what it says is in ``folder/log``."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def log(self) -> str:
        """What the servers said so far."""
        return (self.folder / "log").read_text(errors="replace")

    def stop(self) -> None:
        """End everything; returns once it is gone."""
        self._process.communicate()


@contextmanager
def keeper(name: str, env: Mapping[str, str] | None = None) -> Iterator[Keeper]:
    """Return a keeper with an empty folder: a short path, since sockets may lie in it."""
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    (folder / "log").touch()
    process = subprocess.Popen(
        [sys.executable, __file__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=env,
        start_new_session=True,
    )
    kept = Keeper(folder, process)
    try:
        yield kept
    finally:
        kept.stop()


def keep(folder: str) -> None:
    """The process itself: start what comes, and kill it all in the end."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGCHLD, _reap)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, lambda number, frame: None)
    os.chdir(folder)
    with open("log", "ab") as log:
        for line in sys.stdin:
            _start(json.loads(line), log.fileno())
        _kill_all()
    os.chdir("/")
    shutil.rmtree(folder, ignore_errors=True)


def _start(command: list[str], log: int) -> None:
    pid = os.fork()
    if pid:
        return
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error}\n".encode())
    finally:
        os._exit(127)


def _reap(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _kill_all() -> None:
    """Kill what is below this process, again and again: it may be forking."""
    deadline = time.monotonic() + 20
    while (pids := _below(os.getpid())) and time.monotonic() < deadline:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _below(top: int) -> set[int]:
    """All processes that descend from one."""
    parents = {}
    for each in os.listdir("/proc"):
        if each.isdigit():
            try:
                # pid (name) state ppid; the name may hold anything.
                stat = Path("/proc", each, "stat").read_text(errors="replace")
            except OSError:
                continue
            parents[int(each)] = int(stat.rpartition(")")[2].split()[1])
    found: set[int] = set()
    grown = {top}
    while grown:
        grown = {pid for pid, parent in parents.items() if parent in grown}
        found |= grown
    return found


if __name__ == "__main__":
    keep(sys.argv[1])
