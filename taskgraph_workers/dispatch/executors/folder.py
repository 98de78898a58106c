"""The folder of one job on this machine: what is in it, written so that it survives a power cut.

====================  ==============================================================================
``job.json``          what to run; there before the folder has its name
``lock``              held (flock) by the one supervisor, for as long as it lives
``training``          held by the trainer and all that it started; a run begins only when it is free
``supervisor.json``   the supervisor that holds the lock, or held it last
``run-N.json``        the marker that run N was started; written before its trainer is
``end-N.json``        how its trainer ended, or that it was given up: whichever is written first
``env``               variables of its container that the engine's client itself goes by
``container``         the id of its container, written by the engine once there is one
``progress/``         what trainers report, a file for each run
``trouble.json``      why its engine can't start it; it is tried again
``resting.json``      for how long it is not tried again; its slot may be given to others
``cancel.json``       somebody wants the job to end
``exit.json``         how it ended; nothing happens after it
``image.sif``         its image, for an engine that runs files
``output.log``        what trainers print
``supervisor.log``    what went wrong with a supervisor
====================  ==============================================================================
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import tempfile
from collections.abc import Mapping
from typing import Any

JOB, SUPERVISOR, CANCEL, EXIT = "job.json", "supervisor.json", "cancel.json", "exit.json"
TROUBLE, RESTING = "trouble.json", "resting.json"
LOCK, TRAINING, OUTPUT, LOG, PROGRESS = (
    "lock",
    "training",
    "output.log",
    "supervisor.log",
    "progress",
)
ENV, CONTAINER, IMAGE = "env", "container", "image.sif"

#: Where the folders of all jobs are, in that of the state.
JOBS = "jobs"

#: What the files are like; a supervisor of another version leaves a job alone.
VERSION = 1

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS}

_RUN = re.compile(r"run-(\d+)\.json")


class Folder:
    """One job's folder."""

    def __init__(self, path: str) -> None:
        self.path = path

    def at(self, name: str) -> str:
        """The path of something in it."""
        return os.path.join(self.path, name)

    def has(self, name: str) -> bool:
        """Whether it is there. Raises OSError where that can't be told."""
        try:
            os.stat(self.at(name))
        except FileNotFoundError:
            return False
        return True

    def read(self, name: str) -> dict[str, Any] | None:
        """What a file holds, None if there is none. Raises OSError or ValueError."""
        try:
            with open(self.at(name), encoding="utf-8") as opened:
                value = json.load(opened)
        except FileNotFoundError:
            return None
        if not isinstance(value, dict):
            raise ValueError(f"{name} holds no object")
        return value

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """Put a file there, whole and durably, in place of one that there may be."""
        temporary = self._prepared(name, value)
        try:
            os.rename(temporary, self.at(name))
        except BaseException:
            os.unlink(temporary)
            raise
        sync(self.path)

    def claim(self, name: str, value: Mapping[str, Any]) -> bool:
        """Put a file there as :meth:`write` does, unless there is one; whether it was put there."""
        temporary = self._prepared(name, value)
        try:
            os.link(temporary, self.at(name))
        except FileExistsError:
            return False
        except OSError as error:
            # Not every file system has links. The two who may write it are rarely at it together.
            if error.errno not in _NO_LINKS or self.has(name):
                raise
            os.rename(temporary, self.at(name))
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        sync(self.path)
        return True

    def _prepared(self, name: str, value: Mapping[str, Any]) -> str:
        """The path of a file that holds it, durably, and has yet to get its name."""
        handle, temporary = tempfile.mkstemp(prefix=f".{name}-", dir=self.path)
        try:
            with open(handle, "w", encoding="utf-8") as opened:
                json.dump(value, opened)
                opened.flush()
                os.fsync(opened.fileno())
        except BaseException:
            os.unlink(temporary)
            raise
        return temporary

    def remove(self, name: str) -> None:
        """Take a file away, durably, if there is one."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.at(name))
            sync(self.path)

    def runs(self) -> list[dict[str, Any]]:
        """The runs that were started, in order. Raises OSError or ValueError."""
        numbers = sorted(
            int(found[1]) for found in map(_RUN.fullmatch, os.listdir(self.path)) if found
        )
        return [self.read(run_name(number)) or {} for number in numbers]

    def lock(self, name: str) -> int | None:
        """Hold a lock, as long as the descriptor that is returned is open; None if another does."""
        handle = os.open(self.at(name), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            if isinstance(error, BlockingIOError):
                return None
            raise
        return handle


def run_name(run: int) -> str:
    """The name of a run's marker."""
    return f"run-{run}.json"


def end_name(run: int) -> str:
    """The name of what a run's trainer ended with."""
    return f"end-{run}.json"


def progress_name(run: int) -> str:
    """The name of the file that a run's trainer reports to."""
    return f"run-{run}.jsonl"


def sync(path: str) -> None:
    """Make what happened in a folder durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
