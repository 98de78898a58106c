"""What a dispatcher is called as an owner, so that others on its machine see whether it still is.

A dispatcher that was killed owned attempts: who comes next on the same machine need not wait until
their time is over. Elsewhere, and where nothing is sure, that time decides.
"""

from __future__ import annotations

import os
import socket

from taskgraph_workers.dispatch.executors import processes


def name() -> str:
    """The name of this process: its machine, its space of process ids, its id, and what it is."""
    pid = os.getpid()
    return f"{_here()}:{pid}:{processes.identity(pid) or ''}"


def is_gone(owner: str) -> bool:
    """Whether an owner surely is no process any more; False where it is another machine's."""
    here, pid, identity = (*owner.split(" ", maxsplit=1)[0].rsplit(":", 2), "", "")[:3]
    if here != _here() or not pid.isdigit() or not identity:
        return False
    return not processes.is_same(int(pid), identity)


def _here() -> str:
    """A machine, and one of its spaces of process ids: containers have their own."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    host = "".join(socket.gethostname().split())
    return f"{host}:{space}"
