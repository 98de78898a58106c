"""How a run of Taskgraph is ended for a user's mistake: with the message, without a traceback.

Two kinds of exception pass through Taskgraph without one. ``SystemExit`` with a text always does,
and Python prints the text; but where a kind is loaded in a process of its own (24.5.0), or logged
there (23.1.0), only a ``SchemaValidationError`` is shown as text alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from taskgraph_workers.errors import Problem


class Refused(BaseException):
    """The run is refused; ``str()`` is what the user is shown. Raised as one of Taskgraph's own.

    It has no cause: where several ``-p`` are given, ``concurrent.futures`` sets the other process's
    traceback as one, and Taskgraph would print that above the message.
    """

    __cause__ = property(lambda self: None, lambda self, cause: None)

    def __reduce__(self) -> Any:
        return refusal, (str(self), not isinstance(self, SystemExit))


def refuse(problems: Iterable[Problem], loading_kind: bool = False) -> NoReturn:
    """End the run with these problems, shown once. Raises :class:`Refused`.

    Taskgraph itself logs the message while it loads a kind (``loading_kind``); Python prints it
    anywhere else.
    """
    found = tuple(dict.fromkeys(problems))
    count = f"{len(found)} problem{'s' if len(found) != 1 else ''}"
    raise refusal(f"workers-config: {count}\n" + "\n".join(map(str, found)), loading_kind)


def refusal(message: str, loading_kind: bool) -> Refused:
    """The exception, of a type made now: ``taskgraph --diff`` loads Taskgraph's own types anew."""
    base = _of_taskgraph() if loading_kind else SystemExit
    made: Refused = type("Refused", (Refused, base), {})(message)
    return made


def _of_taskgraph() -> type[BaseException]:
    try:
        from taskgraph.util.schema import SchemaValidationError
    except ImportError:
        return SystemExit  # before 23.1.0
    found: type[BaseException] = SchemaValidationError
    return found
