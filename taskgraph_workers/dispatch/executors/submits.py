"""Who starts a job by a site's command: one at a time on this machine, and nobody once it started.

A dispatcher that is killed leaves its ``submit`` behind, which may start something yet; one that
was stopped goes on with what it saw before. So a file for each key is locked (flock) while one of
them looks and starts. The command inherits the lock: it is free when nothing is left that might
start the job. What was started is written into the file, and it stays when its machine is gone, and
the name that was to refuse a second one with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass

from taskgraph_workers.dispatch.executors.folder import sync

_STARTED = b"started\n"


@dataclass
class Claim:
    """One key's file. ``is_ours`` tells whether nobody else may be starting the job now."""

    handle: int
    path: str
    is_ours: bool

    @property
    def is_started(self) -> bool:
        """Whether the job was started, by whomever."""
        return os.pread(self.handle, len(_STARTED), 0) == _STARTED

    def started(self) -> None:
        """Write down, durably, that the job was started."""
        if not self.is_started:
            os.pwrite(self.handle, _STARTED, 0)
            os.fsync(self.handle)
            sync(os.path.dirname(self.path))

    @contextlib.contextmanager
    def variables(self, text: str) -> Iterator[str]:
        """A file for nobody else's eyes, by its path. One that was left behind is written over."""
        path = f"{self.path}.env"
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(handle, "w", encoding="utf-8") as opened:
            opened.write(text)
        try:
            yield path
        finally:
            self.forget_variables()

    def forget_variables(self) -> None:
        """Remove that file, if there is one."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.path}.env")


@contextlib.contextmanager
def claimed(folder: str, key: str) -> Iterator[Claim]:
    """The claim on a key, ours if nobody has it. Raises OSError."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, key)
    # Python's own descriptors are closed in programs that it starts, unless they are named.
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = True
        except BlockingIOError:
            is_ours = False
        yield Claim(handle, path, is_ours)
    finally:
        os.close(handle)
