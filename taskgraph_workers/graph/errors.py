"""How a run of Taskgraph is ended for a user's mistake: with the message, without a traceback.

Since 23.1.0 Taskgraph shows a ``SchemaValidationError`` of a kind as text; of everything else it
prints a traceback. Before that, ``SystemExit`` with a text is what passes its handlers silently.
"""

from __future__ import annotations

import logging
from typing import Iterable, NoReturn

from taskgraph_workers.errors import Problem

logger = logging.getLogger(__name__)

try:
    from taskgraph.util.schema import SchemaValidationError as _Base

    TASKGRAPH_SHOWS_IT = True
except ImportError:
    _Base = SystemExit
    TASKGRAPH_SHOWS_IT = False


class Refused(_Base):  # type: ignore[misc]
    """The run is refused; ``str()`` is what the user is shown."""


def refuse(problems: Iterable[Problem], loading_kind: bool = False) -> NoReturn:
    """End the run with these problems. Raises :class:`Refused`.

    Taskgraph itself shows the message only while it loads a kind (``loading_kind``).
    """
    found = list(problems)
    count = f"{len(found)} problem{'s' if len(found) != 1 else ''}"
    message = f"workers-config: {count}\n" + "\n".join(map(str, found))
    if TASKGRAPH_SHOWS_IT and not loading_kind:
        logger.error(message)
    raise Refused(message)
