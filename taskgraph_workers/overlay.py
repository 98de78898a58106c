"""Values laid one over the other, each remembering what it overrode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from taskgraph_workers.keyed import pick, pick_within
from taskgraph_workers.model import Change, Context, Value


class Overlay:
    """What changes say, part by part: of a key the last that spoke, over those before it."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.fields: dict[str, Value] = {}
        self.env: dict[str, Value] = {}
        self.resources: dict[str, Value] = {}
        self.worker: dict[str, Value] = {}

    def lay(self, source: str, change: Change) -> None:
        """Lay one change, of the layer or table that ``source`` names, over what is there.

        Raises :class:`~taskgraph_workers.errors.PlacementError` where a keyed value has no branch
        here.
        """
        for part in ("fields", "env", "resources", "worker"):
            at = change.path if part == "fields" else (*change.path, part)
            values, at = pick(getattr(change, part), self.context, at)
            onto, picked = getattr(self, part), pick_within if part == "worker" else pick
            for name, raw in (values or {}).items():
                value, where = picked(raw, self.context, (*at, name))
                # Null removes a key; an alias field can't be removed, so it is not spoken of.
                if value is not None or part != "fields":
                    onto[name] = Value(value, source, where, onto.get(name))


def over(weak: Mapping[str, Value], strong: Mapping[str, Value]) -> dict[str, Value]:
    """Values of ``strong`` over those of ``weak``, remembering what they overrode."""
    return {**weak, **{n: _based(value, weak.get(n)) for n, value in strong.items()}}


def _based(value: Value, weaker: Value | None) -> Value:
    under = value.overrode
    return replace(value, overrode=weaker if under is None else _based(under, weaker))
