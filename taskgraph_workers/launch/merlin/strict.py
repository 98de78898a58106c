"""What Merlin's own schema refuses, although it does not matter here (``merlinspec.json``).

Merlin 1.13 would not run such a spec at all, so it is told; the size of a step is what it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from taskgraph_workers.errors import Path, said
from taskgraph_workers.launch.merlin.document import Document

_VARIABLE = re.compile(r"\$\(\w+\)")


class _Rule(NamedTuple):
    what: str
    holds: Callable[[Any], bool]
    #: Whether Merlin puts its default where nothing is written.
    default: bool = False


def _text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _variable(value: object) -> bool:
    return isinstance(value, str) and bool(_VARIABLE.fullmatch(value))


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and value >= least


def _priority(value: object) -> bool:
    words = ("held", "minimal", "low", "medium", "high", "expedited")
    if isinstance(value, str):
        return value.lower() in words and value in (value.lower(), value.upper(), value.title())
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


_TEXT = _Rule("a text", _text)
_COUNT = _Rule("a whole number from 1", lambda value: _whole(1)(value) or _variable(value))
_THERE = _Rule("a value", lambda value: value is not None)

RUN: Mapping[str, _Rule] = {
    **dict.fromkeys(
        ("pre", "post", "restart", "slurm", "lsf", "flux", "reservation", "qos"), _TEXT
    ),
    **dict.fromkeys(("launch distribution", "bind", "bind gpus"), _TEXT),
    **dict.fromkeys(("tasks per rs", "rs per node", "cpus per rs"), _COUNT),
    **dict.fromkeys(("nodes", "procs", "gpus", "cores per task", "gpus per task"), _THERE),
    **dict.fromkeys(("walltime", "depends"), _THERE),
    "shell": _Rule("a text", _text, default=True),
    "max_retries": _Rule("a whole number from 1", _whole(1), default=True),
    "num resource set": _Rule("a whole number from 1", _whole(1)),
    "exit_on_error": _Rule("0 or 1", lambda value: value in (0, 1) and type(value) is int),
    "exclusive": _Rule("true or false", lambda each: isinstance(each, bool) or _variable(each)),
    "nested": _Rule("true or false", lambda value: isinstance(value, bool)),
    "priority": _Rule("a number from 0 to 1, or a word such as high", _priority),
}
BATCH: Mapping[str, _Rule] = {"nodes": _THERE, "walltime": _THERE}
WORKER: Mapping[str, _Rule] = {
    "args": _Rule("a text", lambda value: value != "" and value is not None),
    "steps": _Rule("a value", lambda value: True, default=True),
    "machines": _THERE,
}
ENV: Mapping[str, _Rule] = {
    "sources": _Rule("a list", lambda value: isinstance(value, list), default=True)
}
VARIABLE = _Rule("a text, a number or a list", lambda each: type(each) in (str, int, float, list))


def check(
    document: Document, block: Mapping[str, Any], path: Path, rules: Mapping[str, _Rule]
) -> None:
    """Warn of every value in a block that Merlin refuses."""
    for key, value in block.items():
        rule = rules.get(key)
        if rule is None or rule.holds(value) or (value is None and rule.default):
            continue
        what = f"Merlin refuses {said(value)} here: it has to be {rule.what}"
        document.warn(what, (*path, key), "leave it out" if value in (None, "") else "")
