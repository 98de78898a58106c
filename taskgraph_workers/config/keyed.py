"""Values that differ by context: ``{by-level: {"3": a, default: b}}``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import voluptuous as vol

from taskgraph_workers import match
from taskgraph_workers.config import forms
from taskgraph_workers.config.faults import Fault, faults_of, stop_at
from taskgraph_workers.config.forms import Shape
from taskgraph_workers.config.names import LEVELS, Known, fits
from taskgraph_workers.config.shapes import pattern, read_key
from taskgraph_workers.errors import did_you_mean, said
from taskgraph_workers.model import KEYED_BY, Keyed


def keyed(shape: Shape, known: Known, by: Sequence[str] = KEYED_BY) -> Shape:
    """A shape: ``shape``, or ``{by-<field>: {<pattern>: <the same>, default: <the same>}}``."""

    def read(raw: Any) -> Any:
        field = _keyed_by(raw, by)
        if field is None:
            return shape(raw)
        try:
            return Keyed(field, _branches(raw[f"by-{field}"], field, read, known))
        except vol.Invalid as error:
            error.prepend([f"by-{field}"])
            raise

    return forms.formed(read, forms.Keyed(shape, by))


def _keyed_by(raw: Any, by: Sequence[str]) -> str | None:
    """What a value is keyed by; None where it is not."""
    keys = [k for k in raw if isinstance(k, str) and k[:3] == "by-"] if _maps(raw) else []
    if not keys:
        return None
    key = keys[0]
    if key[3:] in by and len(raw) == 1:
        return key[3:]
    if key[3:] in by:
        raise Fault(f"{key} must stand alone", "key each value by itself, or all of them", [key])
    allowed = [f"by-{each}" for each in by]
    near = "" if key[3:] in KEYED_BY else did_you_mean(key, allowed, "")
    hint = f"{near} it may be keyed {', '.join(allowed[:-1])} or {allowed[-1]}".lstrip()
    raise Fault(f"a value can't be keyed {key} here", hint, [key])


def _maps(raw: Any) -> bool:
    return isinstance(raw, Mapping)


def _branches(raw: Any, field: str, read: Shape, known: Known) -> dict[str, Any]:
    if not isinstance(raw, Mapping) or not raw:
        raise Fault(f"must be a mapping with a branch or more, not {said(raw or None)}")
    if list(raw) == ["default"]:
        raise Fault("holds default alone, which is unnecessary", "write the value itself")
    names = {"level": LEVELS, "kind": known.kinds, "profile": known.profiles}.get(field)
    faults: list[Fault] = []
    choices: dict[str, Any] = {}
    for key, content in raw.items():
        try:
            branch = read_key(key, lambda raw: _branch(raw, field, names))
            if branch in choices:
                raise Fault(f"there are two branches for {branch!r}")
            choices[branch] = None
            choices[branch] = read(content)
        except vol.Invalid as error:
            error.prepend([key])
            faults += faults_of(error)
    stop_at(faults or _branches_that_clash(choices, names or ()))
    return choices


def _branches_that_clash(choices: Mapping[str, Any], names: Iterable[str]) -> list[Fault]:
    clashes = {match.find(choices, name): name for name in sorted(names, reverse=True)}
    return [
        Fault(str(match.Ambiguous(name, found)), "write the name itself as a key", [found[-1]])
        for found, name in clashes.items()
        if len(found) > 1
    ]


def _branch(key: Any, field: str, names: Iterable[str] | None) -> str:
    branch = pattern(str(key) if type(key) is int else key)
    if names is None or branch == "default" or any(fits(branch, name) for name in names):
        return branch
    hint = did_you_mean(branch, names)
    raise Fault(f"there is no {field} {branch!r}", hint, lookup=field == "profile")
