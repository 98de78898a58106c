"""One fault of a value, on its way up to a :class:`~taskgraph_workers.errors.Problem`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, cast

import voluptuous as vol

from taskgraph_workers.config.locate import Place
from taskgraph_workers.errors import Path, Problem, said

#: In a fault's text: stands for the value as it is written in the file, and for its key.
WRITTEN, KEY = "\0", "\1"


class Fault(vol.Invalid):
    """One fault, with what voluptuous has no room for.

    ``plain`` is the message where the text of the file says nothing that ``value``, the value as
    YAML read it, does not say. ``lookup`` marks a name that nobody knows, which may be the fault
    of an included file that is missing. ``of_key`` says that it is the key that is wrong.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        at: Sequence[Any] = (),
        lookup: bool = False,
    ) -> None:
        super().__init__(message, list(at))
        self.hint = hint
        self.plain = message
        self.value: Any = None
        self.lookup = lookup
        self.of_key = False


def misread(what: str, value: Any, example: str = "") -> Fault:
    """A fault for a scalar that YAML did not read as a string: ``on``, ``1.5``, ``010``.

    What is no scalar, such as a ``!!set``, can't be meant as one either.
    """
    if isinstance(value, (Set, Mapping, list, tuple)):
        return Fault(f"{what}, not {said(value)}")
    fault = Fault(
        f"{what}, and YAML reads {WRITTEN} as {said(value)}",
        f'put it in quotes: {example}"{WRITTEN}"',
    )
    fault.plain = f"{what}, not {said(value)}"
    fault.value = value
    return fault


def faults_of(error: vol.Invalid) -> list[Fault]:
    """The single faults that an error of voluptuous carries; every shape raises Faults only."""
    return cast("list[Fault]", getattr(error, "errors", [error]))


def path_of(fault: Fault) -> Path:
    """The keys that lead to a fault. A key of YAML may be anything that can be hashed."""
    return cast(Path, tuple(fault.path))


def stop_at(faults: Sequence[Fault]) -> None:
    """Raise the faults that were collected, if there are any."""
    if faults:
        raise vol.MultipleInvalid(list(faults))


def problem_of(fault: Fault, place: Place) -> Problem:
    """The problem that a fault at a place is, which says what is written there."""
    key = str(place.path[-1]) if place.path else ""
    value = str(fault.value).lower() if isinstance(fault.value, bool) else str(fault.value)
    written = key if fault.of_key else place.written
    message = fault.plain if written in (None, value) else str(fault.msg)
    filled = (each.replace(WRITTEN, written or value) for each in (message, fault.hint))
    message, hint = (each.replace(KEY, key) for each in filled)
    return Problem(message, place.path, hint)
