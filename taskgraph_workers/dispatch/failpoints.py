"""Places where a test can have this process killed, as a power cut would.

``TASKGRAPH_WORKERS_FAILPOINT=after-commit`` ends the process by SIGKILL the first time that it
gets there, ``after-commit:3`` the third time.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable

VARIABLE = "TASKGRAPH_WORKERS_FAILPOINT"


def _nothing(name: str) -> None:
    """What a failpoint is outside of tests."""


def armed(said: str) -> Callable[[str], None]:
    """What is called at every failpoint, when the variable says this.

    >>> armed("") is armed("")
    True
    """
    if not said:
        return _nothing
    wanted, _, nth = said.partition(":")
    countdown = itertools.count(int(nth or 1) - 1, -1)

    def kill(name: str) -> None:
        if name == wanted and next(countdown) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return kill


#: ``reach("after-commit")``: the process is there now.
reach = armed(os.environ.get(VARIABLE, ""))
