"""What the hand-written tables come to in the entries of ``workers-config``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Callable

from taskgraph_workers.adopt.hand import Hand, Tree, for_class, keys_for, leaves
from taskgraph_workers.adopt.patterns import cover
from taskgraph_workers.config.names import fits, is_plain
from taskgraph_workers.model import ALIAS_FIELDS, BUILT_IN, Keyed

#: One entry of a profile as YAML has it: a name, a mapping, or None.
Raw = Any

#: An entry of ``workers``: its key, its env, and the aliases that it is about.
Machine = tuple[str, Mapping[str, Tree], tuple[str, ...]]


def machines(hand: Hand) -> list[Machine]:
    """The entries of ``workers``: aliases with the same env under the fewest keys."""
    reached = [leaf for tree in hand.names.values() for leaf in leaves(tree)]
    aliases = [key for key in hand.aliases if is_plain(key)]
    written = [key for key in hand.env if is_plain(key) and hand.alias(key) is not None]
    every = dict.fromkeys([*written, *aliases, *reached])
    names = {*every, *(key for key in hand.names if is_plain(key))}
    found: list[Machine] = []
    for env, same in _by_env(hand, every):
        for key, matched in cover(same, names.difference(same), _patterns(hand)):
            found.append((key, env, matched))
    return found


def unused(hand: Hand) -> Iterator[str]:
    """Keys of the table of env that are for no alias."""
    every = {*filter(is_plain, hand.aliases), *(x for t in hand.names.values() for x in leaves(t))}
    for key in hand.env:
        plain = is_plain(key) or key == "default"
        used = hand.alias(key) is not None if is_plain(key) else any(fits(key, n) for n in every)
        if not used and not (key == "default" and plain):
            yield key


def _by_env(hand: Hand, names: Iterable[str]) -> list[tuple[Mapping[str, Tree], list[str]]]:
    groups: list[tuple[Mapping[str, Tree], list[str]]] = []
    for name in names:
        env = hand.env_of(name)
        same = next((each for known, each in groups if known == env), None)
        if same is not None:
            same.append(name)
        elif env:
            groups.append((env, [name]))
    return groups


def _patterns(hand: Hand) -> list[str]:
    return [key for key in hand.env if not is_plain(key) and key != "default"]


class Entries:
    """The entries of profiles, one profile for each class.

    The chain of placement goes on from name to name, where hand-written code looks up once. So an
    entry whose alias is a name of the table, too, says all about the machine itself; and one whose
    chain meets env of its own asked name says what env it is.
    """

    def __init__(self, hand: Hand, classes: Sequence[str], found: Sequence[Machine]) -> None:
        self.hand = hand
        self.classes = classes
        self.machines = {key: env for key, env, _ in found}

    def by_class(self) -> dict[str, dict[str, Raw]]:
        """For each class, all its entries by name."""
        table: dict[str, dict[str, Raw]] = {name: {} for name in self.classes}
        for name, tree in self.hand.names.items():
            trees = {each: for_class(tree, each, self.hand.keys.by) for each in self.classes}
            entry = self._entry(name)
            for each, said in trees.items():
                if said is not None:
                    table[each][name] = self.raw(said, partial(entry, each))
        return table

    def raw(self, tree: Tree, leaf: Callable[[str], Raw]) -> Raw:
        """A value as YAML has it. What differs by class differs by profile."""
        if not isinstance(tree, Keyed):
            return None if tree is None else leaf(tree)
        choices, by = tree.choices, tree.by
        if by == self.hand.keys.by:
            taken = {key for name in self.classes for key in keys_for(choices, name)}
            choices, by = {key: each for key, each in choices.items() if key in taken}, "profile"
        branches = {key: self.raw(each, leaf) for key, each in choices.items()}
        values = list(branches.values())
        if all(each == values[0] for each in values) and "default" in branches:
            return values[0]
        return {f"by-{by}": branches}

    def env(self, env: Mapping[str, Tree]) -> dict[str, Raw]:
        """Env as YAML has it."""
        return {name: self.raw(tree, str) for name, tree in env.items()}

    def is_inline(self, name: str) -> bool:
        """Whether the entries of a name say all about the machine, as its alias is sent on."""
        return any(self._goes_on(name, alias) for alias in self._ends(name))

    def _ends(self, name: str) -> list[str]:
        by = self.hand.keys.by
        trees = (for_class(self.hand.names[name], each, by) for each in self.classes)
        return list(dict.fromkeys(leaf for tree in trees for leaf in leaves(tree)))

    def _goes_on(self, name: str, alias: str) -> bool:
        """Whether the table sends the alias on, as a name, for any class."""
        found = keys_for(self.hand.names, alias)
        if alias in (name, *BUILT_IN) or not found:
            return False
        tree = self.hand.names[found[0]]
        return any(for_class(tree, each, self.hand.keys.by) != alias for each in self.classes)

    def _entry(self, name: str) -> Callable[[str, str], Raw]:
        """What makes an entry of a profile for this name out of an alias.

        A child lays its entry over its parent's, so all of them say the same keys.
        """
        inline = self.is_inline(name)
        names: dict[str, None] = {}
        for alias in self._ends(name):
            wanted = self.hand.env_of(alias)
            given = self._given(*((name,) if inline else (alias, name)))
            different = (k for k in (*wanted, *given) if inline or wanted.get(k) != given.get(k))
            names.update(dict.fromkeys(different))

        def entry(profile: str, alias: str) -> Raw:
            if not (inline or names):
                return alias
            said = self._fields(alias) if inline else {"to": alias}
            env = self.hand.env_of(alias)
            mine = {k: for_class(env.get(k), profile, self.hand.keys.by) for k in names}
            return {**said, "env": self.env(mine)} if names else said

        return entry

    def _given(self, *chain: str) -> dict[str, Tree]:
        """What ``workers`` gives to a chain, whose alias comes first."""
        given: dict[str, Tree] = {}
        for name in chain:
            for key in keys_for(self.machines, name)[:1]:
                given.update(self.machines[key])
        return given

    def _fields(self, alias: str) -> dict[str, Raw]:
        """The fields of an alias, which holds its own name from here on."""
        fields = self.hand.aliases[str(self.hand.alias(alias))]
        return {key: _named(fields[key], alias) for key in ALIAS_FIELDS if key in fields}


def _named(value: Any, alias: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _named(each, alias) for key, each in value.items()}
    return value.replace("{alias}", alias) if isinstance(value, str) else value


def profiles(entries: Mapping[str, Mapping[str, Raw]]) -> dict[str, dict[str, Any]]:
    """A profile for each class, in order: each extends the one before that it is most like."""
    found: dict[str, dict[str, Any]] = {}
    for name, mine in entries.items():
        others = {other: _difference(mine, entries[other]) for other in found}
        nearest = min(others, key=lambda other: len(others[other]), default=None)
        said = dict(mine) if nearest is None else others[nearest]
        found[name] = {} if nearest is None else {"extends": nearest}
        if said:
            found[name]["workers"] = said
    return found


def _difference(mine: Mapping[str, Raw], theirs: Mapping[str, Raw]) -> dict[str, Raw]:
    changed = {k: said for k, said in mine.items() if k not in theirs or theirs[k] != said}
    return {**changed, **{key: None for key in theirs if key not in mine}}
