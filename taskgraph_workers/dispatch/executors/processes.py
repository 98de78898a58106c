"""Processes that others started: whether one is still the same, and those of one training."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping

_PROC = "/proc"

# Variables of ours, which may hold passwords.
_PRIVATE = "TASKGRAPH_WORKERS_"


def without_ours(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment as others may see it: ours may hold passwords."""
    return {n: v for n, v in environ.items() if not n.startswith(_PRIVATE)}


def identity(pid: int) -> str | None:
    """What tells a process from every other that has, or will have, its id; None if it is gone.

    The boot and the start time in it, as in ``/proc/PID/stat`` (proc(5): the 22nd field); where
    there is no /proc, what ps says. A zombie is gone.
    """
    try:
        with open(f"{_PROC}/{pid}/stat", encoding="utf-8", errors="replace") as opened:
            # The name may hold anything, a bracket too, so count from behind it.
            fields = opened.read().rpartition(")")[2].split()
    except FileNotFoundError:
        return None if os.path.exists(f"{_PROC}/self/stat") else _identity_by_ps(pid)
    except ProcessLookupError:
        return None
    return None if fields[0] in "ZX" else f"{boot()}/{fields[19]}"


def boot() -> str:
    """What tells that this machine has not been started anew; empty where nothing does."""
    try:
        with open(f"{_PROC}/sys/kernel/random/boot_id", encoding="ascii") as opened:
            return opened.read().strip()
    except OSError:
        return ""


def _identity_by_ps(pid: int) -> str | None:
    argv = ["ps", "-o", "state=,lstart=", "-p", str(pid)]
    run = subprocess.run(argv, capture_output=True, text=True, check=False)
    state, _, started = run.stdout.strip().partition(" ")
    return None if not state or state[0] in "ZX" else " ".join(started.split())


def is_same(pid: object, known: object) -> bool:
    """Whether a process is there, and the one that was known by this identity."""
    return isinstance(pid, int) and pid > 0 and known is not None and identity(pid) == known


def signal_same(pid: int, known: str, number: int) -> bool:
    """Send a signal to a process if it is still the one that was known; whether it was sent."""
    try:
        # From here on the number can't come to mean another process, where the system knows how.
        handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    except OSError:
        handle = None
    try:
        if not is_same(pid, known):
            return False
        if handle is not None:
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(pid, number)
    except OSError:
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True


def kill_group(leader: int, number: int) -> None:
    """Signal all of a process group, if there is one; never the caller's, which 0 stands for."""
    if leader > 1:
        with contextlib.suppress(OSError):
            os.killpg(leader, number)


def with_variable(name: str, value: str) -> Iterator[int]:
    """Processes that were started with this in their environment, as far as one may look."""
    wanted = os.fsencode(f"{name}={value}")
    try:
        found = [int(each) for each in os.listdir(_PROC) if each.isdigit()]
    except OSError:
        return
    for pid in found:
        try:
            with open(f"{_PROC}/{pid}/environ", "rb") as opened:
                if pid != os.getpid() and wanted in opened.read().split(b"\0"):
                    yield pid
        except OSError:
            continue


def kill_all_with(name: str, value: str, within_s: float = 5.0) -> bool:
    """Kill these processes, and what they start meanwhile; whether they are gone."""
    until = time.monotonic() + within_s
    while True:
        left = [pid for pid in with_variable(name, value) if identity(pid) is not None]
        if not left:
            return True
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
