"""Names that only lead on to another one: what is tried of that one holds for them, too.

So a chain of ten thousand names takes no more look-ups than it has links.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from taskgraph_workers import match
from taskgraph_workers.errors import PlacementError
from taskgraph_workers.keyed import pick
from taskgraph_workers.model import Config, Context, Layer
from taskgraph_workers.resolve import changes_for

#: Where a name leads that only leads on: the first that does more, and the last that sends there.
#: The end of names that lead to each other is empty.
End = tuple[str, str]


def next_of(
    config: Config, name: str, layers: Sequence[Layer], context: Context, names: Collection[str]
) -> str | None:
    """The name that this one leads on to, if nothing else is said of it; None otherwise.

    Placed, and told what to do, it is as that one, which is among ``names``.
    """
    if match.find(config.aliases, name) or match.find(config.workers.entries, name):
        return None
    try:
        said = [change for _, change in changes_for(config, name, layers, context)]
        to = pick(said[0].to, context, ())[0] if said else None
    except PlacementError:
        return None
    if to is None or to == name or to not in names or said[0].fields:
        return None
    if any(change.env or change.resources or change.worker for change in said):
        return None
    required = (match.any_matches(each.workers, name) for each in config.require)
    there = (match.any_matches(each.workers, to) for each in config.require)
    return to if all(a <= b for a, b in zip(required, there)) else None


def ends_of(onward: Mapping[str, str]) -> dict[str, End]:
    """Where each name leads, of names that lead on; each stands behind the one it leads to.

    >>> ends_of({"a": "b", "b": "gpu", "x": "y", "y": "x"})
    {'b': ('gpu', 'b'), 'a': ('gpu', 'b'), 'y': ('', 'x'), 'x': ('', 'x')}
    """
    ends: dict[str, End] = {}
    for first in onward:
        name, way = first, dict[str, None]()
        while name in onward and name not in ends and name not in way:
            way[name] = None
            name = onward[name]
        if name in way:
            end = ("", name)
        else:
            end = ends[name] if name in ends else (name, next(reversed(way), ""))
        ends.update(dict.fromkeys(reversed(way), end))
    return ends
