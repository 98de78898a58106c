"""How a job's container is, as its engine says. Loaded by :mod:`.supervisor`: imports little."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

#: What engines say of a container that has ended, and of one that has not.
OVER, ALIVE = {"exited", "stopped", "dead"}, {"running", "paused", "restarting", "stopping"}

#: How long it may take an engine to answer.
ENGINE_S = 60.0

#: How an engine's client is started that nobody listens to.
QUIET: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.DEVNULL,
    "stderr": subprocess.DEVNULL,
    "start_new_session": True,
}


def quiet(argv: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str] | None:
    """Ask an engine; None where it does not answer."""
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def state_of(job: Mapping[str, Any]) -> tuple[str, int]:
    """A container's status and exit code; an empty status where its engine tells none."""
    said = quiet(job["inspect"], ENGINE_S)
    words = said.stdout.split() if said is not None and said.returncode == 0 else []
    return (words[0], int(words[1])) if len(words) == 2 else ("", 0)
