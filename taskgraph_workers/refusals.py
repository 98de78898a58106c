"""What is said of a name that can't be placed: why, by which way, and how to mend it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from taskgraph_workers import match
from taskgraph_workers.errors import (
    DEAD_END,
    EXTENDS_LOOP,
    INCOMPLETE,
    LOOP,
    Path,
    PlacementError,
    Problem,
    did_you_mean,
    listed,
)
from taskgraph_workers.keyed import refused
from taskgraph_workers.model import ALIAS_FIELDS, Change, Config, Keyed, Profile, Value


def name_loop(config: Config, way: Sequence[str], where: Path) -> PlacementError:
    """Names that lead to each other; ``way`` ends in the first that comes again."""
    loop = way[way.index(way[-1]) : -1]
    ends = next((name for name in loop if match.find(config.aliases, name)), "")
    hint = "send one of them on to an alias"
    if ends:
        hint = f"to end the chain at {ends!r}, send it to itself: {ends}: {ends}"
    what = f"worker names lead to each other in a loop: {' -> '.join(way)}"
    return refused(what, where, hint, LOOP, loop)


def extends_loop(way: Sequence[str], path: Path) -> Problem:
    """Profiles that extend each other; ``way`` ends in the first that comes again."""
    what = f"profiles extend each other in a loop: {' -> '.join(way)}"
    loop = tuple(way[way.index(way[-1]) : -1])
    hint = "leave out `extends` where the chain is to end"
    return Problem(what, path, hint, code=EXTENDS_LOOP, names=loop)


def dead_end(
    config: Config,
    chain: Sequence[str],
    profiles: Sequence[Profile],
    where: Path,
    fields: Mapping[str, Value],
) -> PlacementError:
    """A chain that ends at no alias.

    ``profiles`` are the one that was chosen, if any, and those it extends; ``where`` is what sends
    the last name there; ``fields`` are those alias fields that entries give.
    """
    name, way = chain[-1], by_way_of(chain)
    if fields:
        near = did_you_mean(name, _placed(config, chain, profiles), "")
        send_on = "send it on: to: <a worker name>"
        missing = ", ".join(field for field in ALIAS_FIELDS if field not in fields)
        return refused(
            f"{name!r} is no alias{way}, so its entry must give {missing} too",
            next(iter(fields.values())).path,
            f"{near} or {send_on}" if near else f"or {send_on}",
            INCOMPLETE,
            chain,
        )
    under = f" under profile {profiles[0].name!r}" if profiles else " and no profile is chosen"
    what = f"{name!r} leads nowhere{under}{way}: it is no alias in workers.aliases"
    return refused(what, where, _instead(config, chain, profiles), DEAD_END, chain)


def _instead(config: Config, chain: Sequence[str], profiles: Sequence[Profile]) -> str:
    """A hint for a name that leads nowhere: who speaks of it, else the nearest name."""
    name = chain[-1]
    others = [p for p in config.profiles.values() if p not in profiles and name in p.layer.entries]
    if others:
        return f"profiles that speak of it: {listed(p.name for p in others)}"
    return worker_hint(name, _placed(config, chain, profiles), config.profiles)


def _placed(config: Config, chain: Sequence[str], profiles: Sequence[Profile]) -> set[str]:
    """Names that may have been meant in place of a chain's last: none of the chain is one."""
    # An entry that sends its name nowhere may itself be the one that is misspelled.
    entries = [pair for each in profiles for pair in each.layer.entries.items()]
    names = {*config.aliases.keys(), *(key for key, entry in entries if _leads(key, entry))}
    return names.difference(chain, ["default"])


def worker_hint(name: str, names: Iterable[str], profiles: Container[str]) -> str:
    """A hint for a worker name that there is not: that it is a profile, or the nearest name.

    >>> worker_hint("onprem", ["b-gpu", "b-cpu"], ["onprem"])
    "'onprem' is a profile; worker names: b-cpu, b-gpu"
    >>> worker_hint("b-gup", ["b-gpu", "b-cpu"], ["onprem"])
    "did you mean 'b-gpu'?"
    """
    names = list(names)
    if name in profiles:
        return f"{name!r} is a profile" + (f"; worker names: {listed(names)}" if names else "")
    return did_you_mean(name, names)


def _leads(name: str, entry: Change | Keyed | None) -> bool:
    if isinstance(entry, Keyed):
        return any(_leads(name, each) for each in entry.choices.values())
    return entry is not None and (entry.to not in (None, name) or bool(entry.fields))


def by_way_of(chain: Sequence[str]) -> str:
    """The chain, for a message about its first or last name; empty if there is no other.

    >>> by_way_of(["a", "b"]), by_way_of(["a"])
    (' (chain: a -> b)', '')
    """
    return f" (chain: {' -> '.join(chain)})" if len(chain) > 1 else ""
