"""A comparison of two graphs as other programs read it: ``plan --json``, and the artifact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from taskgraph_workers.detect import Detect, render
from taskgraph_workers.errors import Path, dotted
from taskgraph_workers.graph.compare import Comparison, Move, Where

#: The profile of each kind, None for none.
Profiles = Mapping[str, Optional[str]]

#: The version of the shape.
VERSION = 1


def as_json(found: Comparison, before: Profiles, after: Profiles) -> dict[str, Any]:
    """The plan, without the version of its shape."""
    return {
        "from": _chosen(before),
        "to": _chosen(after),
        "moves": [_move_json(move) for move in found.moves],
        "added": list(found.added),
        "removed": list(found.removed),
        "unchanged": found.unchanged,
        "new_pools": list(found.new_pools),
        "scopes": list(found.scopes),
        "new_scopes": list(found.new_scopes),
    }


def _chosen(profiles: Profiles) -> str | dict[str, str | None] | None:
    """The profile of all kinds; where they differ, the profile by kind."""
    names = set(profiles.values())
    return next(iter(names), None) if len(names) < 2 else dict(sorted(profiles.items()))


def _move_json(move: Move) -> dict[str, Any]:
    return {
        "label": move.label,
        "kind": move.kind,
        "from": _where_json(move.before),
        "to": _where_json(move.after),
        "env": {name: [_value(each) for each in pair] for name, pair in move.env.items()},
        "other": {key_of(path): list(pair) for path, pair in move.other.items()},
    }


def _where_json(where: Where) -> dict[str, Any]:
    return {"pool": where.pool, "implementation": where.implementation}


def _value(value: Any) -> Any:
    return render(value) if isinstance(value, Detect) else value


def key_of(path: Path) -> str:
    """A path in a task's JSON, as in a task definition: ``payload.maxRunTime``.

    >>> key_of(("task", "payload", "maxRunTime")), key_of(("dependencies", "image"))
    ('payload.maxRunTime', 'dependencies.image')
    """
    return dotted(path[1:] if path[0] == "task" and len(path) > 1 else path)
