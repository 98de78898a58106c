"""How a job's container is, as its engine says. Loaded by :mod:`.supervisor`: imports little."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taskgraph_workers.dispatch.executors.call import Answer, call

#: What engines say of a container that has ended, and of one that has not.
OVER, ALIVE = {"exited", "stopped", "dead"}, {"running", "paused", "restarting", "stopping"}

#: What they say of one that was made and never started; ``initialized`` is podman's for one whose
#: runtime has all but started it, so that it may have run. Then of one that is being removed.
CREATED, INITIALIZED, REMOVING = "created", "initialized", "removing"

#: What stands for a container that surely is not there.
GONE = ""

_CODE = re.compile(r"-?[0-9]{1,9}")
_KNOWN = {*OVER, *ALIVE, CREATED, INITIALIZED, REMOVING}

#: How long it may take an engine to answer.
ENGINE_S = 60.0

#: How often in a row an engine has to fail both at waiting for a container that it says is alive,
#: and at listing its processes, until that is not believed any more.
MOST_WAITS = 3


@dataclass(frozen=True)
class State:
    """How a container is, and what it ended with."""

    status: str
    code: int = 0


class Container:
    """The container of a job, whose words of the engine are in its ``job.json``."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self.job = job
        self._failed = 0

    def state(self) -> State | None:
        """How it is; None where its engine does not say, or says what nobody can read."""
        said = self._ask("inspect")
        words = said.out.split() if said.code == 0 else []
        if len(words) == 2 and words[0] in _KNOWN and _CODE.fullmatch(words[1]):
            return State(words[0], int(words[1]))
        if self.is_gone():
            return State(GONE)
        self._failed = 0  # an engine that is down says nothing of a container
        return None

    def is_gone(self) -> bool:
        """Whether there surely is none."""
        there = self._ask("exists")
        return there.code == 0 and not there.out.strip()

    def was_made(self) -> bool:
        """Whether there ever was one in this run: its engine's client writes that down."""
        try:
            return os.path.getsize(self.job["id_file"]) > 0
        except FileNotFoundError:
            return False

    def remove(self) -> None:
        """Remove it, whatever it is doing."""
        self._ask("remove")

    def discard(self) -> None:
        """Remove it, unless it was started meanwhile."""
        self._ask("discard")

    def stop(self) -> None:
        """Ask its engine to end it, and don't wait for that."""
        _start_quiet(self.job["stop"])

    def waiting(self) -> subprocess.Popen[bytes] | None:
        """A process that ends when it has ended, or where its engine can't tell; None for none."""
        return _start_quiet(self.job["wait"])

    def is_forsaken(self, code: int) -> bool:
        """Whether its engine would say for ever that it is alive, and it is not.

        ``code`` is what waiting for it ended with. Podman learns of an end from conmon. Where that
        was killed it goes on to say "running", and fails at waiting (podman 4.3).
        """
        forsaken = code != 0 and self._ask("top").code not in (0, None)
        self._failed = self._failed + 1 if forsaken else 0
        return self._failed >= MOST_WAITS

    def _ask(self, what: str) -> Answer:
        return call(self.job[what], os.environ, ENGINE_S)


def _start_quiet(argv: Sequence[str]) -> subprocess.Popen[bytes] | None:
    """Start an engine's client that nobody listens to; None where it is not there any more."""
    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
