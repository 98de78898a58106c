"""The shapes of entries: what one key of ``workers``, or of a profile's ``workers``, may say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Union

import voluptuous as vol

from taskgraph_workers import detect, units
from taskgraph_workers.config.faults import KEY, Fault, faults_of, misread, stop_at
from taskgraph_workers.config.forms import (
    Either,
    Json,
    Shape,
    Table,
    Whatever,
    about,
    formed,
    null,
    takes,
)
from taskgraph_workers.config.keyed import keyed
from taskgraph_workers.config.names import Known
from taskgraph_workers.config.shapes import (
    NAME,
    TEMPLATE,
    a_name,
    count,
    line,
    mapping,
    optional,
    section,
    size,
    table,
    template,
    text,
)
from taskgraph_workers.errors import Path, said
from taskgraph_workers.model import ALIAS_FIELDS, ENV_NAME, KEYED_BY, POOL_FIELDS, Change, Keyed
from taskgraph_workers.refusals import worker_hint

#: What an entry's ``worker`` may not hold, since the entry has a key of its own for it.
_NOT_IN_WORKER = ("env", "implementation", "os")

Entry = Union[None, Change, Keyed]

# What JSON Schema can say of an entry that is a string: a name, or a pool.
_TEXT = [{"pattern": r"^[^/\s]([^/\n]*[^/\s])?$"}, {"pattern": TEMPLATE}]

#: What each key of an entry is for, and each of ``resources``.
_ABOUT = {
    "to": "Another worker name.",
    "provisioner": "In place of the alias's. {alias}, {level}, {trust-domain} are filled in.",
    "worker-type": "In place of the alias's. {alias}, {level}, {trust-domain} are filled in.",
    "implementation": "In place of the alias's, such as docker-worker or generic-worker.",
    "os": "In place of the alias's: the operating system of the worker's host.",
    "env": "Variables by name: a string, null to remove one, or {detect: ...} to leave it to the "
    "machine. A task's own env is stronger.",
    "resources": "What the machine has.",
    "worker": "Laid over the task's own worker, key by key; null removes a key.",
}
_RESOURCES = {
    "cores": "How many CPU cores.",
    "gpus": "How many GPUs.",
    "memory": "The main memory, such as 64GiB.",
    "gpu-memory": "The memory of one GPU, such as 16GiB.",
    "disk": "The disk space for tasks, such as 1TB.",
    "gpu-model": "The model of the GPUs.",
}

_AT_LEAST = {
    "description": "The least value that is good enough.",
    "type": "integer",
    "minimum": 1,
}
#: What JSON Schema can say of :func:`taskgraph_workers.detect.parse`.
_DETECT = [
    {
        "type": "object",
        "properties": {"detect": {"enum": list(names)}, **others},
        "required": ["detect"],
        "additionalProperties": False,
    }
    for names, others in (
        (("inherited",), {}),
        (("gpu-indices", "gpu-count"), {"at-least": _AT_LEAST}),
        (
            ("gpu-memory",),
            {
                "share": {
                    "description": "The part of the memory to take.",
                    "type": "number",
                    "minimum": 1 / detect.WHOLE,
                    "maximum": 1,
                },
                "of": {
                    "description": "Which memory: smallest, unless said.",
                    "enum": list(detect.OF),
                },
                "at-least": _AT_LEAST,
            },
        ),
    )
]


class Entries:
    """The shapes of entries in a configuration that can speak of the names ``known``."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.env = keyed(table(keyed(env_value, known), env_name), known)
        machine_has = {
            **dict.fromkeys(("cores", "gpus"), count()),
            **dict.fromkeys(("memory", "gpu-memory", "disk"), size(units.mib_floor)),
            "gpu-model": a_name,
        }
        self.resources = keyed(
            section(
                {
                    key: about(_RESOURCES[key], keyed(optional(shape), known))
                    for key, shape in machine_has.items()
                }
            ),
            known,
        )
        whatever = formed(self.worker, Table(self._anything(), line, _NOT_IN_WORKER))
        shapes = {
            "to": optional(self.name),
            "worker": whatever,
            **dict.fromkeys(ALIAS_FIELDS, template),
        }
        said = {
            **{key: keyed(shape, known) for key, shape in shapes.items()},
            "env": self.env,
            "resources": self.resources,
        }
        said = {key: about(_ABOUT[key], shape) for key, shape in said.items()}
        self._machine = section({key: said[key] for key in ("env", "resources")})
        self._move = section(said)
        self.machine = keyed(formed(self._read_machine, Either((self._machine,))), known)
        self.move = keyed(formed(self._read_move, Either((null, _a_text, self._move))), known)

    def table(self) -> Shape:
        """The ``workers`` of a profile, or of a run's overrides."""
        return table(self.move)

    @takes(type="string", pattern=NAME)
    def name(self, raw: Any) -> str:
        """A worker name that there is."""
        name = a_name(raw)
        if self.known.is_name(name):
            return name
        raise self._no_name(name)

    def worker(self, raw: Any) -> dict[str, Any]:
        """What is laid over the ``worker`` of a task."""
        faults: list[Fault] = [
            Fault(f"{key} can't stand in worker", f"write {key}: beside worker:", [key])
            for key in _NOT_IN_WORKER
            if key in mapping(raw)
        ]
        value = {}
        try:
            value = self._anything()(
                {k: v for k, v in mapping(raw).items() if k not in _NOT_IN_WORKER}
            )
        except vol.Invalid as error:
            faults += faults_of(error)
        stop_at(faults)
        return value

    def _anything(self) -> Shape:
        """Any value that can stand in a task, keyed at whatever depth."""

        def read(raw: Any) -> Any:
            if isinstance(raw, Mapping):
                return table(nested, line)(raw)
            if isinstance(raw, (list, tuple)):
                return list(table(nested, lambda index: index)(dict(enumerate(raw))).values())
            finite = not isinstance(raw, float) or math.isfinite(raw)
            if raw is None or (isinstance(raw, (str, int, float)) and finite):
                return raw
            raise misread("must be what JSON can hold", raw)

        nested = keyed(read, self.known)
        return formed(read, Whatever(KEYED_BY))

    def _no_name(self, name: str, also: str = "") -> Fault:
        hint = worker_hint(name, self.known.offered, self.known.profiles)
        return Fault(f"there is no worker name {name!r}{also}", hint, lookup=True)

    def _read_machine(self, raw: Any) -> Entry:
        return Change((), **self._machine(raw))

    def _read_move(self, raw: Any) -> Entry:
        if raw is None:
            return None
        if isinstance(raw, str) and raw:
            return self._read_text(a_name(raw))
        if not isinstance(raw, Mapping):
            what = f"must be a worker name, a pool, or a mapping, not {said(raw)}"
            raise Fault(what, "null drops what a profile that this one extends says" * (raw == ""))
        value = self._move(raw)
        fields = {key: value.pop(key) for key in ALIAS_FIELDS if key in value}
        return Change((), fields=fields, **value)

    def _read_text(self, name: str) -> Change:
        """A name if there is such a name, else a pool."""
        if self.known.is_name(name):
            return Change((), to=name)
        parts = name.split("/")
        if len(parts) != 2 or not all(parts):
            raise self._no_name(name, ", and it is no pool (provisioner/worker-type)")
        return Change((), fields=dict(zip(POOL_FIELDS, map(template, parts))))


@takes(type="string", pattern=f"^{ENV_NAME.pattern}$")
def env_name(raw: Any) -> str:
    """A name of an environment variable, as POSIX shells take it."""
    name = text(raw)
    if not ENV_NAME.fullmatch(name):
        hint = "only letters, digits and _, and no digit first"
        raise Fault("is no name for an environment variable", hint)
    return name


@takes(anyOf=[{"type": ["string", "null"]}, *_DETECT])
def env_value(raw: Any) -> Any:
    """A value of env: text, null to remove the name, or ``{detect: ...}``."""
    if raw is None or isinstance(raw, str):
        return raw
    if isinstance(raw, Mapping):
        return _detect(raw)
    if isinstance(raw, (list, tuple)):
        raise Fault(f"must be a string or {{detect: ...}}, not {said(raw)}")
    raise misread("must be a string", raw, f"{KEY}: ")


def _detect(raw: Mapping[Any, Any]) -> detect.Detect:
    if "detect" not in raw:
        raise Fault("must be a string or {detect: ...}, not a mapping without detect")
    try:
        return detect.parse(raw)
    except ValueError as error:
        raise Fault(str(error)) from None


_a_text = formed(a_name, Json({"type": "string", "anyOf": _TEXT}))


@takes(type="string")
def env_text(raw: Any) -> str:
    """A value of env where nothing can be removed or detected."""
    return raw if raw == "" else text(raw)


def placed(entry: Entry, path: Path) -> Entry:
    """The entry, knowing that it stands at ``path``."""
    if isinstance(entry, Keyed):
        by = f"by-{entry.by}"
        choices = {key: placed(each, (*path, by, key)) for key, each in entry.choices.items()}
        return Keyed(entry.by, choices)
    return None if entry is None else replace(entry, path=path)


def placed_all(entries: Mapping[str, Entry], path: Path) -> dict[str, Entry]:
    """A table of entries, each knowing its path."""
    return {key: placed(entry, (*path, key)) for key, entry in entries.items()}


def targets(entry: Entry) -> Iterable[str]:
    """Every name that an entry may send on to, whatever the context."""
    for change in changes([entry]):
        yield from _branches(change.to)


def _branches(value: str | Keyed | None) -> Iterable[str]:
    if isinstance(value, Keyed):
        for each in value.choices.values():
            yield from _branches(each)
    elif value is not None:
        yield value


def changes(entries: Iterable[Entry]) -> Iterable[Change]:
    """Every change that entries may come to, whatever the context."""
    for entry in entries:
        if isinstance(entry, Keyed):
            yield from changes(entry.choices.values())
        elif entry is not None:
            yield entry
