"""What values of a configuration may look like: small readers that collect every fault.

A shape takes a value as YAML gave it and returns it typed, or raises ``vol.Invalid`` with a path
below that value. Voluptuous adds the keys above it and carries all faults up together.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from string import Formatter
from typing import Any, Callable

import voluptuous as vol

from taskgraph_workers import units
from taskgraph_workers.config.faults import Fault, faults_of, misread, stop_at
from taskgraph_workers.config.forms import (
    Either,
    Items,
    Section,
    Shape,
    Table,
    formed,
    null,
    takes,
)
from taskgraph_workers.config.names import LEVELS
from taskgraph_workers.errors import did_you_mean, said, unglued
from taskgraph_workers.model import KEYED_BY

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

# What JSON Schema can say of sizes, durations, names and templates; tests hold them against the
# readers.
_SIZE = r"^\s*[0-9]+(\.[0-9]+)?\s*[KMGTkmgt]([Ii]?[Bb])?\s*$"
_DURATION = (
    r"^(?=.*[1-9])\s*([0-9]+|(?=[0-9])([0-9]+[Dd])?([0-9]+[Hh])?([0-9]+[Mm])?([0-9]+[Ss])?"
    r"|([0-9]+-)?[0-9]+(:[0-9]+){1,3})\s*$"
)
NAME = r"^\S(.*\S)?$"
TEMPLATE = (
    r"^(?!\s)(?!.*\s$)"
    r"([^{}\n]|\{\{|\}\}|\{(alias|level|trust-domain)(![ars])?(:[^{}]*)?\})+$"
)


# --- Scalars --------------------------------------------------------------------------------


@takes(type="string", minLength=1)
def text(raw: Any) -> str:
    """A string that is not empty."""
    if isinstance(raw, str) and raw and not _UNPRINTABLE.search(raw):
        return raw
    if isinstance(raw, str):
        raise Fault("holds a character that can't be printed" if raw else "is empty")
    if raw is None or isinstance(raw, (Mapping, list, tuple)):
        raise Fault("is empty" if raw is None else f"must be a string, not {said(raw)}")
    raise misread("must be a string", raw)


@takes(type="string", pattern="^.+$")
def line(raw: Any) -> str:
    """A text of one line."""
    value = text(raw)
    if "\n" in value:
        raise Fault("must be one line")
    return value


@takes(type="string", pattern=NAME)
def a_name(raw: Any) -> str:
    """A text of one line with no blank around it, which nobody would see."""
    value = line(raw)
    if not value.strip():
        raise Fault("is nothing but blanks")
    if value != value.strip():
        raise Fault("has a blank at its start or end", f"write {value.strip()!r}")
    return value


def count(least: int = 0) -> Shape:
    """A shape: a whole number of at least ``least``."""

    @takes(type="integer", minimum=least)
    def read(raw: Any) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int):
            raise Fault(f"must be a whole number, not {said(raw)}")
        if raw < least:
            raise Fault(f"must be at least {least}, not {raw}")
        return raw

    return read


def size(convert: Callable[[str], int]) -> Shape:
    """A shape: a size such as 16GiB, as MiB."""

    @takes(type="string", pattern=_SIZE)
    def read(raw: Any) -> int:
        if not isinstance(raw, str):
            raise Fault(f"must be a size such as 16GiB, not {said(raw)}")
        try:
            return convert(raw)
        except ValueError as error:
            raise Fault(str(error)) from None

    return read


@takes(anyOf=[{"type": "integer", "minimum": 1}, {"type": "string", "pattern": _DURATION}])
def duration(raw: Any) -> int:
    """A duration such as 90m, 2h or 1-00:00:00, or a number of seconds, as seconds."""
    if isinstance(raw, bool) or not isinstance(raw, (int, str)):
        raise Fault(f"must be a duration such as 90m, not {said(raw)}")
    try:
        return units.seconds(raw)
    except ValueError as error:
        raise Fault(str(error)) from None


@takes(enum=[*LEVELS, *map(int, LEVELS)])
def level(raw: Any) -> str:
    """An SCM level of Taskcluster, as text."""
    if str(raw) not in LEVELS:
        raise Fault(f"must be a level (1, 2 or 3), not {said(raw)}")
    return str(raw)


@takes(type="string", pattern=NAME, format="regex")
def pattern(raw: Any) -> str:
    """A name or a regular expression, as keys of config.yml are."""
    value = a_name(raw)
    try:
        re.compile(value + "$")
    except (re.error, OverflowError, RecursionError) as error:
        what = f"{value!r} is no regular expression: {error}"
        raise Fault(what, "put a backslash before a character that is meant literally") from None
    return value


@takes(type="string", pattern=TEMPLATE)
def template(raw: Any) -> str:
    """A text that may hold ``{alias}``, ``{level}`` and ``{trust-domain}``, as in an alias."""
    value = a_name(raw)
    known = ("alias", "level", "trust-domain")
    hint = "it may hold {alias}, {level} and {trust-domain}, and no other brace"
    try:
        names = [name for _, name, _, _ in Formatter().parse(value) if name is not None]
        unknown = [name for name in names if name not in known]
        if not unknown:
            value.format(**dict.fromkeys(known, ""))
            return value
    except (ValueError, LookupError, AttributeError):
        raise Fault(f"{value!r} has a brace that can't be filled in", hint) from None
    raise Fault(f"{value!r} holds {{{unknown[0]}}}, which nothing fills in", hint)


# --- Mappings and lists ---------------------------------------------------------------------


def mapping(raw: Any) -> Mapping[Any, Any]:
    """A mapping; nothing at all is an empty one."""
    if raw is not None and not isinstance(raw, Mapping):
        raise Fault(f"must be a mapping, not {said(raw)}")
    return raw or {}


def optional(shape: Shape) -> Shape:
    """A shape that also takes null."""
    return formed(lambda raw: None if raw is None else shape(raw), Either((shape, null)))


def section(shapes: Mapping[str, Shape], needs: Sequence[str] = (), others: str = "") -> Shape:
    """A shape: a mapping with these keys, of which ``needs`` must be there.

    ``others`` is a hint for a key that is none of these, nor like one.
    """
    schema = vol.Schema({vol.Optional(key): shape for key, shape in shapes.items()})

    def read(raw: Any) -> dict[str, Any]:
        raw = mapping(raw)
        missing = [key for key in needs if raw.get(key) is None]
        faults: list[Fault] = [
            _unknown_key(key, raw[key], shapes, others) for key in raw if key not in shapes
        ]
        faults += [Fault(f"{key} is missing") for key in missing]
        value: dict[str, Any] = {}
        try:
            value = schema({k: v for k, v in raw.items() if k in shapes and k not in missing})
        except vol.MultipleInvalid as error:
            faults += faults_of(error)
        stop_at(faults)
        return value

    return formed(read, Section(shapes, needs))


def _unknown_key(key: Any, value: Any, known: Collection[str], others: str) -> Fault:
    hint = unglued(key, value) or did_you_mean(str(key), known, others or None)
    return _not_keyed(key) or Fault("unknown key", hint, at=[key])


def _not_keyed(key: Any) -> Fault | None:
    """A fault where a key says that something differs by context which can't."""
    if isinstance(key, str) and key[:3] == "by-" and key[3:] in KEYED_BY:
        return Fault(f"nothing can be keyed {key} here", "key the values below it", [key])
    return None


def table(shape: Shape, key: Shape = pattern) -> Shape:
    """A shape: a mapping whose keys are the user's own; ``key`` reads each of them."""

    def read(raw: Any) -> dict[str, Any]:
        faults: list[Fault] = [each for each in map(_not_keyed, mapping(raw)) if each]
        value: dict[str, Any] = {}
        for name, content in mapping(raw).items():
            if _not_keyed(name):
                continue
            try:
                known = read_key(name, key)
                value[known] = shape(content)
            except vol.Invalid as error:
                error.prepend([name])
                found = faults_of(error)
                for fault in found:
                    fault.hint = unglued(name, content) or fault.hint
                faults += found
        stop_at(faults)
        return value

    return formed(read, Table(shape, key, [f"by-{by}" for by in KEYED_BY]))


def read_key(raw: Any, shape: Shape) -> Any:
    """A key, by its shape; a fault of it says that it is the key's."""
    try:
        return shape(raw)
    except Fault as fault:
        fault.of_key = True
        raise


def list_of(shape: Shape) -> Shape:
    """A shape: a list, as a tuple."""

    def read(raw: Any) -> tuple[Any, ...]:
        if not isinstance(raw, (list, tuple)):
            raise Fault(f"must be a list, not {said(raw)}")
        faults: list[Fault] = []
        value = []
        for index, content in enumerate(raw):
            try:
                value.append(shape(content))
            except vol.Invalid as error:
                error.prepend([index])
                faults += faults_of(error)
        stop_at(faults)
        return tuple(value)

    return formed(read, Items(shape))


def some_of(shape: Shape, empty: str, hint: str = "") -> Shape:
    """A shape: a list that is not empty, as a tuple; ``empty`` is what is said of one that is."""
    items = list_of(shape)

    def read(raw: Any) -> tuple[Any, ...]:
        value: tuple[Any, ...] = items(raw)
        if not value:
            raise Fault(empty, hint)
        return value

    return formed(read, Items(shape, 1))


def some_levels(empty: str, hint: str) -> Shape:
    """A shape: SCM levels, at least one, as a set; ``empty`` is what is said of none."""
    levels = some_of(level, empty, hint)
    return formed(lambda raw: frozenset(levels(raw)), Either((levels,)))


def list_or_one(shape: Shape, empty: str, hint: str = "") -> Shape:
    """A shape: a list, or the only item of one by itself, as a tuple.

    ``empty`` is what is said of a list without items.
    """
    items = some_of(shape, empty, hint)
    return formed(
        lambda raw: (shape(raw),) if isinstance(raw, str) else items(raw), Either((shape, items))
    )
