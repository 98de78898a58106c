"""A plan as a page shows it: tasks of one kind and one way together, each value in words."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from taskgraph_workers.graph.markup import visible
from taskgraph_workers.units import duration_text

#: The most characters of one value that are shown.
LONGEST = 1000

#: Where two long values differ, so many of what they begin with in common are shown.
CONTEXT = 80

_DIGITS = re.compile("([0-9]+)")

# From here on a value in JSON gets lines of its own.
_WIDE = 60

#: What people read where no profile is chosen.
NO_PROFILE = "no profile"


@dataclass(frozen=True)
class Value:
    """A value as people read it: the task's own text, or (``note``) words of ours."""

    text: str
    note: bool = False

    @property
    def long(self) -> bool:
        """Whether it takes lines of its own."""
        return len(self.text) > _WIDE or "\n" in self.text


@dataclass(frozen=True)
class Row:
    """One thing before and after. ``what`` is ``pool``, ``implementation``, ``env`` or ``other``.

    ``name`` is that of the env variable, or the key path.
    """

    what: str
    name: str
    before: Value
    after: Value

    @property
    def changes(self) -> bool:
        """Whether it tells a difference."""
        return self.after != UNCHANGED

    @property
    def long(self) -> bool:
        """Whether it takes more than a line."""
        return self.before.long or self.after.long


@dataclass(frozen=True)
class Group:
    """The tasks of one kind that go from one pool to another, or that change where they are.

    ``rows`` are all that is told of any of them; a task is its label and the indices of its rows.
    """

    before: str
    after: str
    kind: str
    rows: tuple[Row, ...]
    tasks: tuple[tuple[str, tuple[int, ...]], ...]

    @cached_property
    def counts(self) -> Counter[int]:
        """How many tasks have each row, by its index."""
        return Counter(at for _, rows in self.tasks for at in rows)

    @cached_property
    def shared(self) -> frozenset[int]:
        """The indices of the rows of every task."""
        return frozenset(at for at, count in self.counts.items() if count == len(self.tasks))


NOT_SET = Value("not set", note=True)
UNCHANGED = Value("unchanged", note=True)


def groups(moves: list[Mapping[str, Any]]) -> list[Group]:
    """Moves of ``plan --json`` by pools and kind; what stays in its pool comes last."""
    ordered = sorted(moves, key=lambda move: (_key(move), _natural(str(move["label"]))))
    return [_group(list(alike)) for _, alike in groupby(ordered, key=_key)]


def _key(move: Mapping[str, Any]) -> tuple[bool, str, str, str]:
    before, after = move["from"]["pool"], move["to"]["pool"]
    return before == after, before, after, move["kind"]


def _natural(label: str) -> list[tuple[int, str]]:
    """A key by which ``train-9`` comes before ``train-10``."""
    parts = enumerate(_DIGITS.split(label))
    # Every second part is a number: the longer the larger, whatever its length.
    return [(len(part.lstrip("0")) if at % 2 else 0, part) for at, part in parts]


def _group(moves: list[Mapping[str, Any]]) -> Group:
    numbers: dict[Row, int] = {}
    tasks = tuple(
        (str(move["label"]), tuple(numbers.setdefault(row, len(numbers)) for row in _rows(move)))
        for move in moves
    )
    first = moves[0]
    pools = str(first["from"]["pool"]), str(first["to"]["pool"])
    return Group(*pools, str(first["kind"]), tuple(numbers), tasks)


def _rows(move: Mapping[str, Any]) -> Iterator[Row]:
    for what in ("pool", "implementation"):
        before, after = (_plain(move[side][what]) for side in ("from", "to"))
        yield Row(what, what, before, UNCHANGED if before == after else after)
    for name, (before, after) in move["env"].items():
        yield Row("env", str(name), *_clipped(env_value(before), env_value(after)))
    for path, (before, after) in move["other"].items():
        words = _duration if path == "payload.maxRunTime" else _plain
        yield Row("other", str(path), *_clipped(words(before), words(after)))


def env_value(value: Any) -> Value:
    """A value of env; what the machine finds out is told, and what it looks for.

    >>> env_value({"detect": "gpu-memory", "share": 0.75}).text
    'detected on the machine (gpu-memory, share 0.75)'
    """
    if not isinstance(value, Mapping) or "detect" not in value:
        return _plain(value)
    if value["detect"] == "inherited":
        return Value("inherited from the worker", note=True)
    more = [f"{key} {each}" for key, each in value.items() if key != "detect"]
    return Value(f"detected on the machine ({', '.join([value['detect'], *more])})", note=True)


def _plain(value: Any) -> Value:
    if value is None:
        return NOT_SET
    if value == "":
        return Value("empty", note=True)
    if isinstance(value, str):
        return Value(value)
    if isinstance(value, Mapping) and set(value) in ({"task-reference"}, {"artifact-reference"}):
        return Value(str(next(iter(value.values()))))
    text = json.dumps(value, ensure_ascii=False)
    return Value(json.dumps(value, ensure_ascii=False, indent=2) if len(text) > _WIDE else text)


def _duration(value: Any) -> Value:
    """Seconds, and the largest unit that leaves no rest.

    >>> _duration(5400).text
    '5400 s (90 min)'
    """
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        return _plain(value)
    exact, text = f"{value} s", duration_text(value)
    return Value(exact if text == exact else f"{exact} ({text})")


def _clipped(before: Value, after: Value) -> tuple[Value, Value]:
    """Both, where they are too long from shortly before the first difference on."""
    if max(len(before.text), len(after.text)) <= LONGEST:
        return before, after
    pairs = enumerate(zip(before.text, after.text))
    alike = next((at for at, (a, b) in pairs if a != b), min(len(before.text), len(after.text)))
    start = max(0, alike - CONTEXT)
    return _clip(before, start), _clip(after, start)


def _clip(value: Value, start: int) -> Value:
    text = value.text
    if value.note or len(text) <= LONGEST:
        return value
    end = start + LONGEST
    shown = ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
    return Value(shown)


# --- what the page's script reads ---


def as_data(group: Group) -> dict[str, Any]:
    """A group for the script: a value is a text, or (a note) a list of one."""
    rows = [
        [row.what, visible(row.name), _cell(row.before), _cell(row.after)] for row in group.rows
    ]
    return {
        "where": [visible(each) for each in (group.kind, group.before, group.after)],
        "rows": rows,
        "shared": sorted(group.shared),
        "tasks": [[visible(label, line=True), list(own)] for label, own in group.tasks],
    }


def listed_data(labels: list[str]) -> dict[str, Any]:
    """Tasks of which nothing is told but the label, for the script."""
    tasks = [[visible(str(label), line=True), []] for label in labels]
    return {"where": [], "rows": [], "shared": [], "tasks": tasks}


def _cell(value: Value) -> str | list[str]:
    text = visible(value.text)
    return [text] if value.note else text


# --- the choices ---


def profile_of(chosen: Any, kind: str | None = None) -> str:
    """The profile of a kind, as ``plan --json`` gives it for a side; without one, of most kinds."""
    if isinstance(chosen, Mapping):
        most = Counter(chosen.values()).most_common(1)
        chosen = chosen.get(kind) if kind in chosen else most[0][0] if most else None
    return str(chosen) if chosen else NO_PROFILE


def exceptions(before: Any, after: Any) -> Iterator[tuple[str, str, str]]:
    """The kinds whose profiles are not those of most: kind, profile before, profile after."""
    most = profile_of(before), profile_of(after)
    kinds = {kind for side in (before, after) if isinstance(side, Mapping) for kind in side}
    for kind in sorted(kinds):
        own = profile_of(before, kind), profile_of(after, kind)
        if own != most:
            yield str(kind), *own
