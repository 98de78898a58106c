"""What a dispatcher is called as an owner, so that others on its machine see whether it still is.

A dispatcher that was killed owned attempts: who comes next on the same machine need not wait until
their time is over. Elsewhere, and where nothing is sure, that time decides.
"""

from __future__ import annotations

import os
import re
import socket

from taskgraph_workers.dispatch.executors import processes


def name() -> str:
    """The name of this process: its machine, its space of process ids, its id, and what it is."""
    pid = os.getpid()
    return f"{_here()}:{pid}:{_what(pid)}"


def is_gone(owner: str) -> bool:
    """Whether an owner surely is no process any more; False where it is another machine's."""
    here, pid, identity = (*owner.split(" ", maxsplit=1)[0].rsplit(":", 2), "", "")[:3]
    if here != _here() or not pid.isdigit() or not identity:
        return False
    return _what(int(pid)) != identity


def _what(pid: int) -> str:
    """What a process is, as one word; what ps says of one has blanks and colons. Empty: gone."""
    return re.sub(r"[\s:]", "_", processes.identity(pid) or "")


def _here() -> str:
    """A machine, and one of its spaces of process ids: containers have their own."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    host = "".join(socket.gethostname().split())
    return f"{host}:{space}"
