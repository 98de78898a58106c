"""Proof that a ``workers-config`` says what the hand-written tables say: both, worked out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from taskgraph_workers import detect
from taskgraph_workers.adopt.by_hand import Outcome, outcome
from taskgraph_workers.adopt.hand import Hand
from taskgraph_workers.config import check
from taskgraph_workers.config.locate import Loader
from taskgraph_workers.config.names import is_plain
from taskgraph_workers.errors import ConfigError, PlacementError, Problem
from taskgraph_workers.model import Choice, Config, Context
from taskgraph_workers.resolve import resolve, unmet

#: The levels at which placements are compared: where code is tried, and where it is shipped.
LEVELS = ("1", "3")


@dataclass(frozen=True)
class Difference:
    """One thing that comes out differently, and where. ``kind`` is empty if kinds are unknown."""

    name: str
    profile: str
    level: str
    kind: str
    what: str
    by_hand: str
    here: str


@dataclass(frozen=True)
class Report:
    """How many placements were compared, and all differences; ``problems`` of the loader."""

    compared: int
    differences: tuple[Difference, ...]
    problems: tuple[Problem, ...] = ()
    unknown: tuple[str, ...] = ()


def verify(hand: Hand, text: str, classes: Sequence[str]) -> Report:
    """Compare every name, kind and class, at levels 1 and 3.

    ``text`` is a file with ``workers-config``. Raises :class:`ConfigError` where it has errors.
    """
    said = yaml.load(text, Loader=Loader)
    said = said.get("workers-config", said) if isinstance(said, Mapping) else said
    folder, file = os.path.split(os.path.abspath(hand.source.file))
    data = {**hand.data, "workers-config": said}
    config, problems = check(data, folder, hand.kinds or None, file)
    if config is None:
        raise ConfigError(*problems)
    names, unknown = asked(hand)
    compared, found = 0, []
    for run in _runs(hand, classes):
        for name in names:
            compared += 1
            found += _compare(hand, config, name, run)
    return Report(compared, tuple(found), tuple(problems), unknown)


def asked(hand: Hand) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that tasks may ask for, one for each pattern, and patterns without any."""
    names: list[str] = []
    unknown: list[str] = []
    for key in hand.names:
        name = key if is_plain(key) else _example(key)
        if is_plain(key) or re.match(key + "$", name):
            names.append(name)
        else:
            unknown.append(key)
    return tuple(dict.fromkeys(names)), tuple(unknown)


def _example(pattern: str) -> str:
    """A name that a simple pattern matches."""
    name = re.sub(r"\(([^()|]*)\|[^()]*\)\??", r"\1", pattern)
    return re.sub(r"\\(.)", r"\1", re.sub(r"(\.[*+?]|\.)", "x", name))


def _runs(hand: Hand, classes: Sequence[str]) -> Iterator[dict[str, str]]:
    """Every class and kind at each level, and every project and tasks-for that a key names."""
    tables = [hand.data.get(hand.keys.names), hand.data.get(hand.keys.machines)]
    others: list[dict[str, str]] = [{}]
    for by in ("project", "tasks-for"):
        others += [{by: branch} for branch in dict.fromkeys(_branches(tables, f"by-{by}"))]
    for name in classes:
        for level in LEVELS:
            for kind in hand.kinds or ("",):
                for other in others:
                    run = {hand.keys.by: name, "level": level, **other}
                    yield {**run, "kind": kind} if kind else run


def _branches(value: Any, key: str) -> Iterator[str]:
    """The plain branches of everything that is keyed like this."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            if name == key and isinstance(each, Mapping):
                yield from (branch for branch in each if is_plain(branch))
            yield from _branches(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _branches(each, key)


def _compare(hand: Hand, config: Config, name: str, run: Mapping[str, str]) -> list[Difference]:
    before, after = outcome(hand, name, run), _here(hand, config, name, run)
    pairs = [("pool", _why(before), _why(after))]
    if before.refused and after.refused:
        return []
    if not (before.refused or after.refused):
        pairs = [
            ("pool", before.pool, after.pool),
            ("implementation", before.implementation, after.implementation),
        ]
        both = dict.fromkeys([*before.env, *after.env])
        pairs += [(key, _set(before.env, key), _set(after.env, key)) for key in both]
    at = (name, run[hand.keys.by], run["level"], run.get("kind", ""))
    return [Difference(*at, *pair) for pair in pairs if pair[1] != pair[2]]


def _set(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "not set")


def _why(said: Outcome) -> str:
    return f"refused: {said.refused}" if said.refused else said.pool


def _here(hand: Hand, config: Config, name: str, run: Mapping[str, str]) -> Outcome:
    context = Context(
        level=run["level"],
        project=run.get("project", ""),
        tasks_for=run.get("tasks-for", ""),
        kind=run.get("kind", ""),
        trust_domain=str(hand.data.get("trust-domain", "")),
    )
    try:
        placement = resolve(config, name, Choice(run[hand.keys.by], "adopt"), context)
    except PlacementError as error:
        return Outcome(refused=error.problems[0].text)
    env = {key: value.value for key, value in placement.env.items() if value.value is not None}
    missing = unmet(placement, env)
    if missing:
        return Outcome(refused=missing[0].text)
    shown = {
        key: str(detect.render(value)) if isinstance(value, detect.Detect) else str(value)
        for key, value in env.items()
    }
    return Outcome(placement.pool, placement.implementation, shown)
