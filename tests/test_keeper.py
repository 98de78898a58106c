from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keeper import keeper

ROOT = Path(__file__).resolve().parent

# A server whose children leave it, as daemons do, and tell their process ids.
SERVER = """\
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
time.sleep(600)
"""


def _of(folder: Path) -> list[int]:
    """The processes that work in a folder."""
    return [
        int(each.name)
        for each in Path("/proc").iterdir()
        if each.name.isdigit() and _folder_of(each) == str(folder)
    ]


def _folder_of(process: Path) -> str:
    try:
        return os.readlink(process / "cwd")
    except OSError:
        return ""


def _wait(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 30
    while len(_of(folder)) != count:
        assert time.monotonic() < deadline, _of(folder)
        time.sleep(0.02)


def test_servers_end_with_the_block():
    """What was started, and what left it, is gone with the folder once the block is left."""
    with keeper("keeper") as kept:
        kept.start(sys.executable, "-c", SERVER)
        _wait(kept.folder, 3)  # the process that keeps, the server, the one that left it
    assert _of(kept.folder) == []
    assert not kept.folder.exists()


def test_what_servers_say_is_kept():
    """A server's words, and those of a command that there is not, can be read."""
    with keeper("keeper") as kept:
        kept.start("sh", "-c", "echo said; echo told >&2")
        kept.start("./frobnicate")
        deadline = time.monotonic() + 30
        while "told" not in kept.log() or "frobnicate" not in kept.log():
            assert time.monotonic() < deadline, kept.log()
            time.sleep(0.02)
        assert "said" in kept.log()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_servers_end_when_the_tests_are_killed(number: signal.Signals):
    """A signal to all processes of the tests, whichever it is, leaves nothing behind."""
    program = (
        "import os, signal, sys, time\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from keeper import keeper\n"
        "with keeper('keeper') as kept:\n"
        f"    kept.start(sys.executable, '-c', {SERVER!r})\n"
        "    print(kept.folder, flush=True)\n"
        "    time.sleep(600)\n"
    )
    tests = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert tests.stdout is not None
    folder = Path(tests.stdout.readline().strip())
    _wait(folder, 3)
    os.killpg(tests.pid, number)
    tests.wait()
    _wait(folder, 0)
    deadline = time.monotonic() + 30
    while folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
