"""What values of a configuration may look like: small readers that collect every fault.

A shape takes a value as YAML gave it and returns it typed, or raises ``vol.Invalid`` with a path
below that value. Voluptuous adds the keys above it and carries all faults up together.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, Callable, cast

import voluptuous as vol

from taskgraph_workers import units
from taskgraph_workers.errors import Path, Problem, did_you_mean
from taskgraph_workers.model import BUILT_IN, KEYED_BY, Keyed

Shape = Callable[[Any], Any]

#: In a fault's text: stands for the value as it is written in the file, and for its key.
WRITTEN, KEY = "\0", "\1"

_REGEX_CHARACTERS = set("\\*+?[](){}|^$")


class Fault(vol.Invalid):
    """One fault, with what voluptuous has no room for.

    ``lookup`` marks a name that nobody knows, which may be the fault of a file that is missing.
    ``value`` is what :data:`WRITTEN` stands for where the text of the file can't be had.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        at: Sequence[Any] = (),
        value: Any = None,
        lookup: bool = False,
    ) -> None:
        super().__init__(message, list(at))
        self.hint = hint
        self.value = value
        self.lookup = lookup


def faults_of(error: vol.Invalid) -> list[vol.Invalid]:
    """The single faults that an error of voluptuous carries."""
    return list(error.errors) if isinstance(error, vol.MultipleInvalid) else [error]


def path_of(fault: vol.Invalid) -> Path:
    """The keys that lead to a fault. A key of YAML may be anything that can be hashed."""
    return cast(Path, tuple(fault.path))


def stop_at(faults: Sequence[vol.Invalid]) -> None:
    """Raise the faults that were collected, if there are any."""
    if faults:
        raise vol.MultipleInvalid(list(faults))


def problem_of(fault: vol.Invalid, path: Path, written: str | None) -> Problem:
    """The problem that a fault at ``path`` and below is; ``written`` is the value in the file."""
    path = (*path, *path_of(fault))
    if not isinstance(fault, Fault):
        return Problem(str(fault.msg), path)
    if written is None:
        written = str(fault.value).lower() if isinstance(fault.value, bool) else str(fault.value)
    key = str(path[-1]) if path else ""
    message, hint = (
        each.replace(WRITTEN, written).replace(KEY, key) for each in (fault.msg, fault.hint)
    )
    return Problem(message, path, hint)


@dataclass(frozen=True)
class Known:
    """The names that a configuration can speak of. ``kinds`` is None where they are unknown."""

    aliases: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    profiles: frozenset[str] = frozenset()
    kinds: frozenset[str] | None = None

    def is_name(self, name: str) -> bool:
        """Whether an alias matches the name, or an entry of a profile is for exactly it."""
        if name in self.names or name in BUILT_IN:
            return True
        return any(fits(alias, name) for alias in self.aliases)


def fits(pattern: str, name: str) -> bool:
    """Whether a key matches a name; a key that is no regular expression matches only itself."""
    try:
        return pattern == name or re.match(pattern + "$", name) is not None
    except (re.error, OverflowError, RecursionError):
        return False


def is_plain(key: object) -> bool:
    """Whether a key of a table is a name, and no pattern and no default."""
    return isinstance(key, str) and key != "default" and not _REGEX_CHARACTERS & set(key)


def said(value: object) -> str:
    """A value as a message names it: by what YAML made of it."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, (list, tuple)) else f"a {type(value).__name__}"


# --- Scalars --------------------------------------------------------------------------------


def text(raw: Any) -> str:
    """A string that is not empty."""
    if isinstance(raw, str):
        if not raw or re.search(r"[\x00-\x08\x0b-\x1f\x7f]", raw):
            raise Fault("must be a text that can be printed, and is not" if raw else "is empty")
        return raw
    if raw is None or isinstance(raw, (Mapping, list, tuple)):
        raise Fault(f"must be a text, not {said(raw)}" if raw is not None else "is empty")
    raise Fault(
        f"must be a text, and YAML reads {WRITTEN} as {said(raw)}",
        f'put it in quotes: "{WRITTEN}"',
        value=raw,
    )


def line(raw: Any) -> str:
    """A text of one line."""
    value = text(raw)
    if "\n" in value:
        raise Fault("must be one line")
    return value


def count(least: int = 0) -> Shape:
    """A shape: a whole number of at least ``least``."""

    def read(raw: Any) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int):
            raise Fault(f"must be a whole number, not {said(raw)}")
        if raw < least:
            raise Fault(f"must be at least {least}, not {raw}")
        return raw

    return read


def size(convert: Callable[[str], int]) -> Shape:
    """A shape: a size such as 16GiB, as MiB."""

    def read(raw: Any) -> int:
        if not isinstance(raw, str):
            raise Fault(f"must be a size such as 16GiB, not {said(raw)}")
        try:
            return convert(raw)
        except ValueError as error:
            raise Fault(str(error)) from None

    return read


def duration(raw: Any) -> int:
    """A duration such as 90m, 2h or 1-00:00:00, or a number of seconds, as seconds."""
    if isinstance(raw, bool) or not isinstance(raw, (int, str)):
        raise Fault(f"must be a duration such as 90m, not {said(raw)}")
    try:
        return units.seconds(raw)
    except ValueError as error:
        raise Fault(str(error)) from None


def level(raw: Any) -> str:
    """An SCM level of Taskcluster, as text."""
    if isinstance(raw, bool) or str(raw) not in ("1", "2", "3"):
        raise Fault(f"must be a level (1, 2 or 3), not {said(raw)}")
    return str(raw)


def pattern(raw: Any) -> str:
    """A name or a regular expression, as keys of config.yml are."""
    value = line(raw)
    try:
        re.compile(value + "$")
    except (re.error, OverflowError, RecursionError) as error:
        what = f"{value!r} is no regular expression: {error}"
        raise Fault(what, "put a backslash before a character that is meant literally") from None
    return value


def template(raw: Any) -> str:
    """A text that may hold ``{alias}``, ``{level}`` and ``{trust-domain}``, as in an alias."""
    value = line(raw)
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
    return lambda raw: None if raw is None else shape(raw)


def section(shapes: Mapping[str, Shape], needs: Sequence[str] = ()) -> Shape:
    """A shape: a mapping with these keys, of which ``needs`` must be there."""
    schema = vol.Schema({vol.Optional(key): shape for key, shape in shapes.items()})

    def read(raw: Any) -> dict[str, Any]:
        raw = mapping(raw)
        missing = [key for key in needs if raw.get(key) is None]
        faults: list[vol.Invalid] = [_unknown_key(key, shapes) for key in raw if key not in shapes]
        faults += [Fault(f"{key} is missing") for key in missing]
        value: dict[str, Any] = {}
        try:
            value = schema({k: v for k, v in raw.items() if k in shapes and k not in missing})
        except vol.MultipleInvalid as error:
            faults += error.errors
        stop_at(faults)
        return value

    return read


def _unknown_key(key: Any, known: Collection[str]) -> Fault:
    if isinstance(key, str) and key[:3] == "by-" and key[3:] in KEYED_BY:
        return Fault(f"nothing can be keyed {key} here", at=[key])
    return Fault("unknown key", did_you_mean(str(key), known), at=[key])


def table(shape: Shape, key: Shape = pattern) -> Shape:
    """A shape: a mapping whose keys are the user's own; ``key`` reads each of them."""

    def read(raw: Any) -> dict[str, Any]:
        faults: list[vol.Invalid] = []
        value: dict[str, Any] = {}
        for name, content in mapping(raw).items():
            try:
                known = key(name)
                value[known] = None
                value[known] = shape(content)
            except vol.Invalid as error:
                error.prepend([name])
                faults += faults_of(error)
        stop_at(faults)
        return value

    return read


def list_of(shape: Shape) -> Shape:
    """A shape: a list, as a tuple."""

    def read(raw: Any) -> tuple[Any, ...]:
        if not isinstance(raw, (list, tuple)):
            raise Fault(f"must be a list, not {said(raw)}")
        faults: list[vol.Invalid] = []
        value = []
        for index, content in enumerate(raw):
            try:
                value.append(shape(content))
            except vol.Invalid as error:
                error.prepend([index])
                faults += faults_of(error)
        stop_at(faults)
        return tuple(value)

    return read


def one_or_more(shape: Shape) -> Shape:
    """A shape: a list, or the only item of one by itself."""
    items = list_of(shape)
    return lambda raw: (shape(raw),) if isinstance(raw, str) else items(raw)


# --- Values that differ by context ----------------------------------------------------------


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

    return read


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
    near = did_you_mean(key, allowed)
    what = f"a value can't be keyed {key} here: only {', '.join(allowed)}"
    raise Fault(what, near if near.startswith("did") else "", [key])


def _maps(raw: Any) -> bool:
    return isinstance(raw, Mapping)


def _branches(raw: Any, field: str, read: Shape, known: Known) -> dict[str, Any]:
    if not isinstance(raw, Mapping) or not raw:
        raise Fault(f"must be a mapping with a branch or more, not {said(raw or None)}")
    if list(raw) == ["default"]:
        raise Fault("holds default alone, which is unnecessary", "write the value itself")
    names = {"kind": known.kinds, "profile": known.profiles}.get(field)
    faults: list[vol.Invalid] = []
    choices: dict[str, Any] = {}
    for key, content in raw.items():
        try:
            branch = _branch(key, field, names)
            if branch in choices:
                raise Fault(f"there are two branches for {branch!r}")
            choices[branch] = None
            choices[branch] = read(content)
        except vol.Invalid as error:
            error.prepend([key])
            faults += faults_of(error)
    stop_at(faults)
    return choices


def _branch(key: Any, field: str, names: Iterable[str] | None) -> str:
    branch = pattern(str(key) if type(key) is int else key)
    if names is None or branch == "default" or any(fits(branch, name) for name in names):
        return branch
    raise Fault(f"there is no {field} {branch!r}", did_you_mean(branch, names), lookup=True)
