"""What no single value shows: loops, patterns that clash, what is never used.

What comes of the whole is tried out in :mod:`.trial`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from taskgraph_workers import match
from taskgraph_workers.config.contexts import keyed_below
from taskgraph_workers.config.names import LEVELS, Known, fits
from taskgraph_workers.config.selection import names_of
from taskgraph_workers.config.tables import Table, layer_tables
from taskgraph_workers.config.trial import Trial
from taskgraph_workers.errors import (
    ALIASES,
    AMBIGUOUS,
    NO_BRANCH,
    TOP,
    Path,
    Problem,
    did_you_mean,
    listed,
)
from taskgraph_workers.model import Config
from taskgraph_workers.refusals import extends_loop


def problems(config: Config, known: Known, left_out: Sequence[Path]) -> list[Problem]:
    """The problems of a configuration whose single values are right.

    What is not right was left out of it, at the paths ``left_out``: what may come of that is not
    told. Every path is one of the configuration as a whole; see :class:`.locate.Trace`.
    """
    if any(path in (TOP, (*TOP, "profiles")) for path in left_out):
        return []
    found = list(_bad_aliases(config))
    if found:
        return found
    names = names_of(config, known)
    found += _extends_loops(config)
    found += _clashes(config, names)
    found += _never_used(config, names, known.offered)
    found += _chosen_nowhere(config, known, left_out)
    found += Trial(config, names, left_out).problems()
    return found


def _bad_aliases(config: Config) -> Iterator[Problem]:
    for key in config.aliases:
        try:
            match.matches(key, "")
        except (re.error, OverflowError, RecursionError) as error:
            what = f"{key!r} is no regular expression, which Taskgraph takes it for: {error}"
            yield Problem(what, (*ALIASES, key))


def _chosen_nowhere(config: Config, known: Known, left_out: Sequence[Path]) -> Iterator[Problem]:
    """Kinds and levels for which ``select.default`` has no branch: of these we know that they are.

    No error, as every run may name its profile itself. Level 2 comes up nearly nowhere.
    """
    at = (*TOP, "select", "default")
    if any(path[:2] == at[:2] for path in left_out):
        return
    sure = {"kind": known.kinds or (), "level": [level for level in LEVELS if level != "2"]}
    for path, keyed in keyed_below(config.select.default, at):
        without = [each for each in sure.get(keyed.by, ()) if not match.find(keyed.choices, each)]
        if without:
            yield Problem(
                f"no branch for {keyed.by} {listed(without)}, and no default, so a run is refused "
                "there unless it chooses a profile itself",
                path,
                f"there is: {listed(keyed.choices)}; `default: null` chooses none",
                "warning",
                code=NO_BRANCH,
                names=(keyed.by,),
            )


def _extends_loops(config: Config) -> Iterator[Problem]:
    told: set[str] = set()
    # A profile that is left out as a whole is named here all the same.
    extends = {name: each.extends for name, each in config.profiles.items()}
    for name, profile in config.profiles.items():
        way = [name]
        while way[-1] not in way[:-1]:
            onto = extends.get(way[-1])
            if onto is None:
                break
            way.append(onto)
        if len(way) > 1 and way[-1] == name and name not in told:
            told.update(way)
            yield extends_loop(way, (*profile.path, "extends"))


def _clashes(config: Config, names: Collection[str]) -> Iterator[Problem]:
    others = [(ALIASES, config.aliases), ((*TOP, "workers"), config.workers.entries)]
    for path, entries in [*others, *layer_tables(config).values()]:
        told = set()
        table = Table(entries)
        for name in names:
            found = match.find(table, name)
            if len(found) > 1 and found not in told:
                told.add(found)
                what, hint = str(match.Ambiguous(name, found)), "write the name itself as a key"
                yield Problem(what, (*path, found[-1]), hint, code=AMBIGUOUS, names=found)


def _never_used(
    config: Config, names: Collection[str], offered: Collection[str]
) -> Iterator[Problem]:
    known = {"default", *names}
    patterns: list[tuple[Path, str]] = [
        ((*TOP, "workers", key), key) for key in config.workers.entries
    ]
    patterns += [((*each.path, "workers"), key) for each in config.require for key in each.workers]
    for path, key in patterns:
        if key not in known and not any(match.matches(key, name) for name in names):
            what = f"no worker name is matched by {key!r}, so this is never used"
            yield Problem(what, path, did_you_mean(key, offered), "warning")
    yield from _protects_nothing(config, names, offered)
    if config.dispatch is not None:
        for image in config.dispatch.commands:
            if not any(fits(pattern, image) for pattern in config.dispatch.images):
                what = "this image is not allowed by dispatch.images, so its command is never run"
                at = (*config.dispatch.path, "local", "commands", image)
                yield Problem(what, at, severity="warning")


def _protects_nothing(
    config: Config, names: Collection[str], offered: Collection[str]
) -> Iterator[Problem]:
    """Names to protect that look misspelled. Others may be there for aliases yet to come."""
    for index, key in enumerate(config.protected_workers):
        if not any(match.matches(key, name) for name in names):
            hint = did_you_mean(key, offered, "")
            if hint:
                what = f"no worker name is matched by {key!r}, so this protects nothing"
                yield Problem(what, (*TOP, "protect", "workers", index), hint, "warning")
