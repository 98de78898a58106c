"""Where a key path stands: its file, line and column, looked up only when something is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from taskgraph_workers.errors import ALIASES, TOP, TWICE, Path, Problem

#: libyaml's parser where PyYAML was built with it: ten times faster.
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_MERGE = "tag:yaml.org,2002:merge"


class Source(NamedTuple):
    """One YAML file: its name, and its bytes where they could be read."""

    file: str
    content: bytes | None = None

    @property
    def shown(self) -> str:
        """The name as people are shown it: from the current directory where that is shorter."""
        if not os.path.isabs(self.file):
            return self.file
        try:
            return min(os.path.relpath(self.file), self.file, key=len)
        except (OSError, ValueError):
            return self.file

    def compose(self) -> yaml.Node | None:
        """The nodes of the file, with their positions; None where it can't be read."""
        if self.content is None:
            return None
        try:
            node: yaml.Node | None = yaml.compose(self.content, Loader=Loader)
        except (yaml.YAMLError, RecursionError):
            return None
        return node


class Place(NamedTuple):
    """Where a path leads in a file: the path as it is written there, as far as it is; line and
    column from 1, those of the key; and the value, if it is a scalar, as it is written.
    """

    path: Path
    line: int = 0
    column: int = 0
    written: str | None = None


def find(node: yaml.Node | None, path: Path) -> Place:
    """The place of a path, or of as much of it as is there."""
    place = Place(())
    for index, key in enumerate(path):
        child = _child(node, key) if node is not None else None
        if child is None:
            # Nothing can be written below a scalar: `b-x: b-y` has no key `to`.
            rest = () if isinstance(node, yaml.ScalarNode) else map(_shown, path[index:])
            return place._replace(path=(*place.path, *rest))
        name, mark, node = child
        written = node.value if isinstance(node, yaml.ScalarNode) else None
        place = Place((*place.path, name), mark.line + 1, mark.column + 1, written)
    return place


def _shown(key: object) -> str | int:
    """A key whose writing is not at hand. YAML makes keys of other types than strings, too."""
    return key if isinstance(key, str) or type(key) is int else str(key).lower()


#: A key as it is written, its mark, and the node of its value.
Child = tuple[Any, yaml.Mark, yaml.Node]


def _child(node: yaml.Node, key: object) -> Child | None:
    if isinstance(node, yaml.SequenceNode):
        if isinstance(key, int) and key < len(node.value):
            return key, node.value[key].start_mark, node.value[key]
        return None
    if not isinstance(node, yaml.MappingNode):
        return None
    # The last of several equal keys is the one whose value counts.
    for name, value in reversed(node.value):
        if name.tag != _MERGE and is_key(name, key):
            return name.value, name.start_mark, value
    for name, value in node.value:
        if name.tag == _MERGE:
            for each in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                found = _child(each, key)
                if found is not None:
                    return found
    return None


def is_key(node: yaml.Node, key: object) -> bool:
    """Whether the key written here is this one: ``3`` is found by 3 and by "3"."""
    if not isinstance(node, yaml.ScalarNode):
        return False
    return node.value == str(key) or scalar(node) == key


def scalar(node: yaml.ScalarNode) -> object:
    """What YAML makes of a scalar."""
    try:
        value: object = yaml.constructor.SafeConstructor().construct_document(node)
    except (yaml.YAMLError, ValueError, OverflowError):
        return node.value
    return value


def oddities(node: yaml.Node | None) -> Iterator[Problem]:
    """What is odd about a text and can't be seen in its value; line and column are filled in.

    A key that stands twice in one mapping (YAML takes the last), and numbers that YAML 1.1 reads
    otherwise than people do: 1:30 to the base 60, 010 to the base 8.
    """
    if node is not None:
        yield from _oddities(node, (), set())


def _oddities(node: yaml.Node, path: Path, seen: set[int]) -> Iterator[Problem]:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, each in enumerate(node.value):
            yield from _misread(each, each.start_mark, (*path, index))
            yield from _oddities(each, (*path, index), seen)
    elif isinstance(node, yaml.MappingNode):
        first: dict[object, int] = {}
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode) or name.tag == _MERGE:
                continue
            key, mark, at = scalar(name), name.start_mark, (*path, name.value)
            if key in first:
                what = f"this key stands on line {first[key]} already; YAML takes the last only"
                yield Problem(what, at, code=TWICE).at("", mark.line + 1, mark.column + 1)
            first.setdefault(key, mark.line + 1)
            yield from _misread(value, mark, at)
            yield from _oddities(value, at, seen)


def _misread(node: yaml.Node, mark: yaml.Mark, path: Path) -> Iterator[Problem]:
    if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:int":
        return
    written = node.value
    if ":" in written or re.match("[-+]?0.", written):
        what = f"YAML reads {written} as the number {scalar(node)}"
        hint = f'put it in quotes if that is not meant: "{written}"'
        at = (mark.line + 1, mark.column + 1)
        yield Problem(what, path, hint, "warning", line=at[0], column=at[1])


class Trace(NamedTuple):
    """The files a configuration was read from, and which key path came from which of them.

    ``sources[0]`` is config.yml. ``origins`` gives, for key paths below ``workers-config`` that
    came from an included file, the file's index and the path in it; what is below it came along.
    """

    sources: tuple[Source, ...]
    origins: Mapping[Path, tuple[int, Path]] = {}

    def origin(self, path: Path) -> tuple[int, Path]:
        """The file that a path came from, and the path in it."""
        if path[:1] == TOP:
            for length in range(len(path), 0, -1):
                found = self.origins.get(path[1:length])
                if found is not None:
                    return found[0], (*found[1], *path[length:])
        return 0, path

    def locate(self, problems: Iterable[Problem]) -> list[Problem]:
        """The problems with file, line and column; those that have a file already as they are."""
        nodes: dict[int, yaml.Node | None] = {}
        return [self._locate(problem, nodes) for problem in problems]

    def _locate(self, problem: Problem, nodes: dict[int, yaml.Node | None]) -> Problem:
        ours = problem.path[:1] == TOP or problem.path[:2] == ALIASES
        if problem.file or not ours:
            return problem
        place, source = self.place(problem.path, nodes)
        return problem._replace(
            path=place.path, file=source.shown, line=place.line, column=place.column
        )

    def place(self, path: Path, nodes: dict[int, yaml.Node | None]) -> tuple[Place, Source]:
        """Where a path stands. ``nodes`` keeps what was composed, for the next call."""
        index, own = self.origin(path)
        if index not in nodes:
            nodes[index] = self.sources[index].compose()
        return find(nodes[index], own), self.sources[index]
