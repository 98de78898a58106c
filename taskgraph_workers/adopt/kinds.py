"""Env that the kinds of a project set themselves, which hand-written code replaces and we don't."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import yaml

from taskgraph_workers.config.locate import Source
from taskgraph_workers.errors import Problem

_HINT = "take it out of the kind, if the machine knows better"


def own_env(source: Source, names: Collection[str]) -> Iterator[Problem]:
    """A warning for each of these names that stands below an ``env`` in a kind.yml."""
    seen: set[int] = set()
    for name in _keys(source.compose(), False, seen):
        if name.value in names:
            what = f"a task's own {name.value} wins over the machine's, and by hand it loses"
            problem = Problem(what, hint=_HINT, severity="warning")
            yield problem.at(source.shown, name.start_mark.line + 1, name.start_mark.column + 1)


def _keys(node: yaml.Node | None, in_env: bool, seen: set[int]) -> Iterator[yaml.ScalarNode]:
    """Every key right below an ``env``, at whatever depth that is."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _keys(each, False, seen)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if in_env and isinstance(key, yaml.ScalarNode):
                yield key
            yield from _keys(value, key.value == "env", seen)
