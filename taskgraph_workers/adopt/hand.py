"""What a config.yml says by hand: names by class, and env by alias, in tables of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Union

import yaml

from taskgraph_workers.adopt.patterns import is_pattern
from taskgraph_workers.config.document import parse_file
from taskgraph_workers.config.locate import Source, find, oddities
from taskgraph_workers.config.names import LEVELS, fits, is_plain
from taskgraph_workers.errors import ConfigError, Path, Problem, did_you_mean
from taskgraph_workers.model import BUILT_IN, Keyed

#: A value that may differ; None where it can't be said in ``workers-config``, which is told.
Tree = Union[None, str, Keyed]

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

#: What else a value may be keyed by, and placement knows.
_CONTEXT = ("level", "project", "tasks-for", "kind")


@dataclass(frozen=True)
class Keys:
    """What the hand-written tables are called, and the env that their code wants.

    The names, and ``needs``, are those of mozilla/translations: its transform gives an alias's env
    to a task only where all of ``needs`` are in it.
    """

    names: str = "local-worker-aliases"
    machines: str = "worker-configuration"
    by: str = "worker-class"
    needs: tuple[str, ...] = ("GPUS", "WORKSPACE")


@dataclass(frozen=True)
class Hand:
    """The tables, read: ``names`` lead to aliases, ``env`` is by alias (or a pattern of them).

    ``problems`` are what was found on the way. What can't be said is left out of the tables.
    """

    source: Source
    data: Mapping[str, Any]
    keys: Keys = Keys()
    names: Mapping[str, Tree] = field(default_factory=dict)
    env: Mapping[str, Mapping[str, Tree]] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    node: yaml.Node | None = None

    @property
    def aliases(self) -> Mapping[str, Any]:
        """Taskgraph's own table."""
        return aliases_in(self.data)

    def located(self, problem: Problem) -> Problem:
        """The problem, with the line it stands on."""
        place = find(self.node, problem.path)
        found = problem._replace(path=place.path)
        return found.at(self.source.shown, place.line, place.column)

    def line(self, path: Path) -> int:
        """The line of a path, from 1; 0 where it is not there."""
        place = find(self.node, path)
        return place.line if len(place.path) == len(path) else 0

    def alias(self, name: str) -> str | None:
        """The key of the alias that a name is, or None."""
        found = keys_for(self.aliases, name)
        return found[0] if len(found) == 1 else None

    def env_of(self, alias: str) -> Mapping[str, Tree]:
        """The env that is written for an alias."""
        found = keys_for(self.env, alias)
        return self.env[found[0]] if len(found) == 1 else {}

    def trees(self) -> Iterator[tuple[Path, Tree]]:
        """Every value that may be keyed, and where it stands."""
        for name, tree in self.names.items():
            yield (self.keys.names, name), tree
        for key, env in self.env.items():
            for name, tree in env.items():
                yield (self.keys.machines, key, "env", name), tree


def keys_for(table: Collection[str], name: str) -> tuple[str, ...]:
    """The keys that match a name: the exact one, else patterns, else ``default``.

    As :func:`taskgraph_workers.match.find`, but a key that is no pattern matches itself alone.
    """
    if name in table:
        return (name,)
    found = tuple(key for key in table if fits(key, name))
    return found or (("default",) if "default" in table else ())


def aliases_in(data: Mapping[str, Any]) -> dict[str, Any]:
    """The table of aliases in a config.yml."""
    workers = data.get("workers")
    aliases = workers.get("aliases") if isinstance(workers, Mapping) else None
    table = aliases if isinstance(aliases, Mapping) else {}
    return {key: each for key, each in table.items() if isinstance(key, str)}


def for_class(tree: Tree, name: str, by: str) -> Tree:
    """What a value comes to for one class; None where its code would find no branch."""
    if not isinstance(tree, Keyed):
        return tree
    if tree.by == by:
        found = keys_for(tree.choices, name)
        return for_class(tree.choices[found[0]], name, by) if len(found) == 1 else None
    choices = {key: for_class(each, name, by) for key, each in tree.choices.items()}
    values = list(choices.values())
    same = "default" in choices and all(each == values[0] for each in values)
    return values[0] if same else Keyed(tree.by, choices)


def leaves(tree: Tree) -> Iterator[str]:
    """Every text that a value may come to."""
    if isinstance(tree, Keyed):
        for each in tree.choices.values():
            yield from leaves(each)
    elif tree is not None:
        yield tree


# --- Reading --------------------------------------------------------------------------------


def read(source: Source, keys: Keys = Keys(), kinds: Collection[str] = ()) -> Hand:
    """The tables in a config.yml; ``kinds`` are the project's, if they are known.

    Raises :class:`ConfigError` where the file can't be read or has no such tables.
    """
    data = parse_file(source)
    if keys.names not in data and keys.machines not in data:
        hint = did_you_mean(keys.names, data, "--names-key and --env-key say other names")
        what = f"has neither {keys.names} nor {keys.machines}"
        raise ConfigError(Problem(what, hint=hint, file=source.shown))
    reader = _Reader(source, data, keys, kinds)
    names = {name: reader.name(name, raw) for name, raw in reader.table((keys.names,))}
    env = {key: reader.machine(key, raw) for key, raw in reader.table((keys.machines,))}
    reader.odd()
    hand = Hand(source, data, keys, names, env, tuple(kinds), (), reader.node)
    located = tuple(hand.located(problem) for problem in reader.problems)
    return Hand(source, data, keys, names, env, tuple(kinds), located, reader.node)


class _Reader:
    def __init__(
        self, source: Source, data: Mapping[str, Any], keys: Keys, kinds: Collection[str]
    ) -> None:
        self.data = data
        self.keys = keys
        self.aliases = aliases_in(data)
        self.branches = {"level": LEVELS, "kind": tuple(kinds)}
        self.node = source.compose()
        self.problems: list[Problem] = []

    def table(self, path: Path) -> Iterator[tuple[str, Any]]:
        """The entries of a mapping, and a problem for what is none."""
        raw: Any = self.data
        for key in path:
            raw = raw.get(key)
        if raw is not None and not isinstance(raw, Mapping):
            self._leave(path, "is no mapping")
            return
        for key, content in (raw or {}).items():
            if not isinstance(key, str):
                self._leave((*path, key), "is no text as a key")
            elif not is_pattern(key):
                self._leave((*path, key), "is no regular expression")
            else:
                if not is_plain(key):
                    self._note(
                        (*path, key), "is read as a regular expression, as in workers.aliases"
                    )
                yield key, content

    def name(self, name: str, raw: Any) -> Tree:
        """Where a name leads."""
        return self._tree(raw, (self.keys.names, name), self._alias)

    def machine(self, key: str, raw: Any) -> dict[str, Tree]:
        """The env of an alias."""
        path: Path = (self.keys.machines, key)
        if not isinstance(raw, Mapping):
            self._leave(path, "is no mapping")
            return {}
        for other in raw:
            if other != "env":
                self._leave((*path, other), "has no counterpart in workers-config")
        env: dict[str, Tree] = {}
        for name, value in self.table((*path, "env")) if raw.get("env") is not None else ():
            at = (*path, "env", name)
            if not _ENV_NAME.fullmatch(name):
                self._leave(at, "is no name for an environment variable")
                continue
            tree = self._tree(value, at, self._text)
            if tree is not None:
                env[name] = tree
        return env

    def _tree(self, raw: Any, path: Path, leaf: Any) -> Tree:
        keys = list(raw) if isinstance(raw, Mapping) else []
        if len(keys) != 1 or not str(keys[0]).startswith("by-"):
            result: Tree = leaf(raw, path)
            return result
        path, choices, by = (*path, keys[0]), raw[keys[0]], keys[0][3:]
        if not isinstance(choices, Mapping) or not choices:
            self._leave(path, "has no branches")
            return None
        if by not in (self.keys.by, *_CONTEXT):
            self._leave(path, "is nothing that placement knows; its default is taken")
            return self._tree(choices.get("default"), (*path, "default"), leaf)
        known = self.branches.get(by)
        found: dict[str, Tree] = {}
        for key, each in choices.items():
            at = (*path, key)
            if not is_pattern(str(key)):
                self._leave(at, "is no regular expression")
            elif known and key != "default" and not any(fits(str(key), name) for name in known):
                self._leave(at, f"is no {by} that there is")
            else:
                found[str(key)] = self._tree(each, at, leaf)
        return Keyed(by, found) if found else None

    def _alias(self, raw: Any, path: Path) -> str | None:
        if not isinstance(raw, str):
            self._leave(path, "leads to no alias")
            return None
        if raw in BUILT_IN or len(keys_for(self.aliases, raw)) == 1:
            return raw
        hint = did_you_mean(raw, self.aliases)
        self._leave(path, f"leads to {raw!r}, which is no alias in workers.aliases", hint)
        return None

    def _text(self, raw: Any, path: Path) -> str | None:
        if isinstance(raw, str):
            return raw
        if raw is None or isinstance(raw, (Mapping, list)):
            self._leave(path, "is no text, which env holds")
            return None
        written = find(self.node, path).written
        if written is None or written == str(raw):
            self._note(path, f"is the number {raw}, which tasks refuse as env: quoted here")
            return str(raw)
        what = f"is {str(raw).lower()} to YAML, which tasks refuse as env: here it is {written!r}"
        self._leave(path, what)
        return written

    def odd(self) -> None:
        """What is odd about the text of the tables."""
        for problem in oddities(self.node):
            if problem.path[:1] in ((self.keys.names,), (self.keys.machines,)):
                self.problems.append(problem)

    def _leave(self, path: Path, what: str, hint: str = "") -> None:
        self.problems.append(Problem(what, path, hint))

    def _note(self, path: Path, what: str) -> None:
        self.problems.append(Problem(what, path, severity="warning"))
