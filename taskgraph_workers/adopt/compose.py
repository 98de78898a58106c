"""The ``workers-config`` that says what the hand-written tables say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from taskgraph_workers.adopt.entries import Entries, Machine, Raw, machines, profiles, unused
from taskgraph_workers.adopt.hand import Hand, Tree, keys_for, leaves
from taskgraph_workers.adopt.notes import Note, Notes
from taskgraph_workers.adopt.patterns import cover
from taskgraph_workers.config.names import fits, is_plain
from taskgraph_workers.config.write import AFTER, to_yaml
from taskgraph_workers.errors import TOP, ConfigError, Path, Problem, did_you_mean
from taskgraph_workers.model import Keyed

#: The profile for classes that nothing names, where nobody says what they are called.
UNNAMED = "default"

#: What an alias has in its name if its tasks can do nothing without env.
_GPU = "gpu"


@dataclass(frozen=True)
class Wanted:
    """What the tables don't say: the class of their default branches, more classes, and the
    parameter that holds the choice of a run.
    """

    default: str | None = None
    classes: tuple[str, ...] = ()
    parameter: str | None = None


@dataclass(frozen=True)
class Adopted:
    """The result: its ``text``, the classes (now profiles), what was found on the way, and the
    lines of comments that were left behind.
    """

    text: str
    classes: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    left: tuple[int, ...] = ()


def compose(hand: Hand, wanted: Wanted = Wanted()) -> Adopted:
    """Say it in ``workers-config``. Raises :class:`ConfigError` for a class nobody could choose."""
    classes = _classes(hand, wanted)
    found = machines(hand)
    entries = Entries(hand, classes, found)
    table = _without_idle(entries.by_class())
    value: dict[str, Any] = {}
    if found:
        value["workers"] = {key: {"env": entries.env(env)} for key, env, _ in found}
    if hand.names:
        value["profiles"] = profiles(table)
        value["select"] = {"default": classes[0]}
        if wanted.parameter:
            value["select"]["parameter"] = wanted.parameter
    require = _require(hand)
    if require:
        value["require"] = require
    notes = _Carried(hand, found, value.get("profiles", {}), table)
    notes.carry()
    if hand.names and not wanted.parameter:
        notes.comments["workers-config", "select", AFTER] = _PARAMETER
    problems = [*hand.problems, *_told(hand, entries, wanted)]
    text = to_yaml({"workers-config": value}, notes.comments, _opened)
    return Adopted(text, classes, tuple(problems), notes.left())


#: What stands where the parameter would be.
_PARAMETER = ("# parameter: the dotted path of the parameter that holds a run's choice",)


def _opened(path: Path) -> bool:
    """What is written over several lines although it may fit into one."""
    return len(path) < 3 or (path[1] == "profiles" and len(path) < 5)


# --- Classes --------------------------------------------------------------------------------


def _classes(hand: Hand, wanted: Wanted) -> tuple[str, ...]:
    """The classes, the base first: that of the default branches, else the first that is named."""
    keys = [key for tree in _by_class(hand) for key in tree.choices]
    named = [key for key in dict.fromkeys(keys) if is_plain(key)]
    base = wanted.default
    if base is None and (UNNAMED in keys or not named):
        base = UNNAMED
    elif base is not None and keys and UNNAMED not in keys and not _speaks_of(keys, base):
        hint = did_you_mean(base, named)
        raise ConfigError(Problem(f"no branch is for the class {base!r}", hint=hint))
    ordered = [] if base is None else [base]
    return tuple(dict.fromkeys([*ordered, *named, *wanted.classes]))


def _by_class(hand: Hand) -> list[Keyed]:
    """Every place where something differs by class."""
    return [each for _, tree in hand.trees() for each in _keyed(tree) if each.by == hand.keys.by]


def _keyed(tree: Tree) -> list[Keyed]:
    if not isinstance(tree, Keyed):
        return []
    return [tree, *(each for choice in tree.choices.values() for each in _keyed(choice))]


def _speaks_of(keys: Sequence[str], name: str) -> bool:
    return any(fits(key, name) for key in keys)


def _told(hand: Hand, entries: Entries, wanted: Wanted) -> list[Problem]:
    classes = entries.classes
    found = [_unused(hand, key) for key in unused(hand)]
    found += [hand.located(each) for each in _never_taken(hand, classes)]
    found += [hand.located(each) for each in _not_given(hand)]
    found += _refused(hand, entries)
    if classes[0] == UNNAMED and not wanted.default and hand.names:
        what = f"nothing names the class of the default branches; its profile is {UNNAMED!r} here"
        hint = "--default NAME, with the name that runs choose it by"
        found.append(Problem(what, hint=hint, severity="warning"))
    return found


def _unused(hand: Hand, key: str) -> Problem:
    hint = did_you_mean(key, hand.aliases)
    what = "is for no alias in workers.aliases, so it is left out"
    return hand.located(Problem(what, (hand.keys.machines, key), hint))


def _never_taken(hand: Hand, classes: Sequence[str]) -> list[Problem]:
    """Branches that no class leads into, and that say something else than those that one does."""
    found = []
    for path, tree in hand.trees():
        for at, each in _places(tree, path):
            if each.by != hand.keys.by:
                continue
            taken = {key for name in classes for key in keys_for(each.choices, name)}
            values = [each.choices[key] for key in taken]
            for key, said in each.choices.items():
                if key not in taken and said not in values:
                    what = "no class is known that takes this branch, so it is left out"
                    found.append(Problem(what, (*at, key), "--class NAME adds one"))
    return found


def _places(tree: Tree, path: Path) -> list[tuple[Path, Keyed]]:
    if not isinstance(tree, Keyed):
        return []
    at = (*path, f"by-{tree.by}")
    below = [x for key, each in tree.choices.items() for x in _places(each, (*at, key))]
    return [(at, tree), *below]


def _not_given(hand: Hand) -> list[Problem]:
    """Env that hand-written code withholds, since not all is in it that it wants."""
    found = []
    for key, env in hand.env.items():
        missing = [name for name in hand.keys.needs if name not in env]
        if env and missing:
            what = f"is given to no task by code that wants {' and '.join(hand.keys.needs)}"
            what += f" (there is no {missing[0]}); here it is given"
            hint = "--needs '' if your code gives it, too"
            found.append(Problem(what, (hand.keys.machines, key, "env"), hint))
    return found


def _without_idle(table: dict[str, dict[str, Raw]]) -> dict[str, dict[str, Raw]]:
    """Without names that lead to themselves under every class: nothing needs to be said."""
    names = {name for each in table.values() for name in each}
    idle = {name for name in names if all(each.get(name) == name for each in table.values())}
    return {
        profile: {name: said for name, said in each.items() if name not in idle}
        for profile, each in table.items()
    }


# --- What tasks can't do without ------------------------------------------------------------


def _require(hand: Hand) -> list[dict[str, Any]]:
    """Hand-written code refuses an alias with ``gpu`` in its name where its env is incomplete."""
    names = _guarded(hand)
    if not names:
        return []
    every = {*filter(is_plain, hand.aliases), *filter(is_plain, hand.names), *_ends(hand)}
    others = [
        name
        for name in every.difference(names)
        if not (_led_into(hand, name, names) if name in hand.names else _complete(hand, name))
    ]
    keys = [f".*{_GPU}.*"]
    if len(names) == 1 or any(fits(keys[0], other) for other in others):
        keys = [key for key, _ in cover(names, others)]
    return [{"workers": keys if len(keys) > 1 else keys[0], "env": list(hand.keys.needs)}]


def _guarded(hand: Hand) -> list[str]:
    """The aliases whose tasks are refused without env: none, where no alias has that env.

    Not one that is also a name of the table and leads elsewhere: a requirement counts all names
    that lead to an alias.
    """
    names = [name for name in _ends(hand) if _GPU in name and hand.alias(name) is not None]
    while True:
        left = [n for n in names if n not in hand.names or _led_into(hand, n, names)]
        if left == names:
            break
        names = left
    return names if hand.keys.needs and any(_complete(hand, name) for name in names) else []


def _ends(hand: Hand) -> list[str]:
    """Every alias that a name leads to."""
    return list(dict.fromkeys(leaf for tree in hand.names.values() for leaf in leaves(tree)))


def _led_into(hand: Hand, name: str, names: Sequence[str]) -> bool:
    """Whether a name of the table leads to these aliases only."""
    return all(leaf in names for leaf in leaves(hand.names[name]))


def _complete(hand: Hand, alias: str) -> bool:
    return all(key in hand.env_of(alias) for key in hand.keys.needs)


def _refused(hand: Hand, entries: Entries) -> list[Problem]:
    """Names that hand-written code refuses for want of env, and that nothing here refuses."""
    needs, guarded = hand.keys.needs, _guarded(hand)
    what = f"leads to an alias with {_GPU!r} in its name and not all of {' and '.join(needs)},"
    what += " which code that wants them refuses; here it is placed"
    hint = "--needs '' if your code places it, too"
    return [
        hand.located(Problem(what, (hand.keys.names, name), hint))
        for name, tree in hand.names.items()
        if any(
            _GPU in leaf
            and not _complete(hand, leaf)
            and (leaf not in guarded or entries.is_inline(name))
            for leaf in leaves(tree)
        )
    ]


# --- Comments -------------------------------------------------------------------------------


class _Carried:
    """The comments, each put above the entry that says now what it is about."""

    def __init__(
        self,
        hand: Hand,
        found: Sequence[Machine],
        said: Mapping[str, Mapping[str, Any]],
        table: Mapping[str, Mapping[str, Raw]],
    ) -> None:
        self.hand = hand
        self.machines = found
        self.said = said
        self.table = table
        self.notes = Notes((hand.source.content or b"").decode("utf-8-sig", "replace"))
        self.comments: dict[Path, Sequence[str]] = {}
        self.headers: list[int] = []

    def carry(self) -> None:
        """Take along what can be."""
        about, behind = self._of_table(self.hand.keys.names, list(self.hand.names))
        for name, notes in about.items():
            self._name(name, notes)
        first = next(iter(self.said), None)
        if first is not None and behind and self.said[first].get("workers"):
            self._add((*TOP, "profiles", first, "workers", AFTER), behind)
        about, behind = self._of_table(self.hand.keys.machines, list(self.hand.env))
        for key, _, names in self.machines:
            for name in dict.fromkeys(k for each in names for k in keys_for(self.hand.env, each)):
                self._add((*TOP, "workers", key), about.pop(name, []))
        if self.machines:
            self._add((*TOP, "workers", AFTER), behind)

    def left(self) -> tuple[int, ...]:
        """The lines of comments about the tables that were not taken along."""
        return tuple(sorted(set(self.headers).difference(self.notes.taken)))

    def _of_table(self, key: str, names: Sequence[str]) -> tuple[dict[str, list[Note]], list[Note]]:
        place = _key_node(self.hand.node, key)
        if place is None or not place[1].value:
            return {}, []
        top, table = place
        line, end = top.start_mark.line + 1, _end(table)
        column = table.value[0][0].start_mark.column + 1
        header = self.notes.header(line)
        inner = [note for note in self.notes.between(line, end) if note.column > 1]
        self.headers += [note.line for note in (*header, *inner)]
        lines = {name: self.hand.line((key, name)) for name in names}
        lines = {name: at for name, at in lines.items() if line <= at < end}
        return self.notes.of_table(lines, column, end)

    def _name(self, name: str, notes: Sequence[Note]) -> None:
        """Notes on a branch go where the class says something of its own, else to the name."""
        whose = [(note, self._owner(name, note)) for note in notes]
        holders = [profile for profile in self.said if name in self._workers(profile)]
        if not holders:
            return
        for note, owner in whose:
            profile = owner if owner in holders else holders[0]
            self._add((*TOP, "profiles", profile, "workers", name), [note])

    def _workers(self, profile: str) -> Mapping[str, Raw]:
        said: Mapping[str, Raw] = self.said[profile].get("workers", {})
        return said

    def _owner(self, name: str, note: Note) -> str | None:
        """The class that a note inside an entry is about; None where it is about the name."""
        if note.line <= self.hand.line((self.hand.keys.names, name)):
            return None
        keys = self._branches(name)
        if not note.alone:
            return next((key for line, key in keys if line == note.line), None)
        return next((key for line, key in keys if line > note.line), None)

    def _branches(self, name: str) -> list[tuple[int, str | None]]:
        """The lines of all branches in an entry, each with its class; None for ``by-...``."""
        found: list[tuple[int, str | None]] = []
        for at, each in _places(self.hand.names[name], (self.hand.keys.names, name)):
            found.append((self.hand.line(at), None))
            mine = each.by == self.hand.keys.by
            found += [(self.hand.line((*at, key)), key if mine else None) for key in each.choices]
        return sorted(found, key=lambda each: each[0])

    def _add(self, path: Path, notes: Sequence[Note]) -> None:
        if notes:
            self.comments[path] = (*self.comments.get(path, ()), *self.notes.take(notes))


def _key_node(node: yaml.Node | None, key: str) -> tuple[yaml.Node, yaml.MappingNode] | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    found = (pair for pair in reversed(pairs) if pair[0].value == key)
    return next((pair for pair in found if isinstance(pair[1], yaml.MappingNode)), None)


def _end(table: yaml.MappingNode) -> int:
    """The line after a table, with the comments behind it."""
    mark = table.end_mark
    return int(mark.line) + (1 if mark.column == 0 and not table.flow_style else 2)
