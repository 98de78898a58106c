"""Running a scheduler's commands: the only place where one is run."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping

from taskgraph_workers.schedulers.base import Answer, Command

#: A scheduler's client waits for a controller that is down, up to a minute and more.
TIMEOUT_S = 30.0
#: How long a killed command, or what it left behind, may keep its output open.
_GRACE_S = 1.0


def run(
    command: Command, timeout_s: float = TIMEOUT_S, environ: Mapping[str, str] | None = None
) -> Answer:
    """What a command says, by ``timeout_s`` seconds at the latest. Raises nothing.

    ``environ`` is this process's own unless given; variables that ``command.without`` names are
    left out of it. A command that can't be started, or doesn't end, has no exit code, and
    ``stderr`` says which.
    """
    env = {
        name: value
        for name, value in (os.environ if environ is None else environ).items()
        if not name.startswith(command.without)
    }
    try:
        process = subprocess.Popen(
            command.argv,
            env=env,
            stdin=subprocess.DEVNULL if command.stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return Answer(None, stderr=f"{command.argv[0]} can't be run: {error}")
    try:
        stdout, stderr = process.communicate(command.stdin, timeout_s)
    except subprocess.TimeoutExpired:
        return _killed(process, timeout_s)
    except OSError as error:
        process.kill()
        return Answer(None, stderr=f"{command.argv[0]} broke off: {error}")
    return Answer(process.returncode, stdout, stderr)


def _killed(process: subprocess.Popen[str], timeout_s: float) -> Answer:
    """Kill a command with all that it started, and say so with what it said until then."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        process.kill()
    said = f"no answer within {timeout_s:g} s"
    try:
        stdout, stderr = process.communicate(timeout=_GRACE_S)
    except (subprocess.TimeoutExpired, OSError):
        # Something in a session of its own still holds the pipes: leave it to itself.
        return Answer(None, stderr=said, hung=True)
    return Answer(None, stdout, f"{stderr.rstrip()}\n{said}".lstrip(), hung=True)
