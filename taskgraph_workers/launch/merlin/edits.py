"""Changes to the text of a YAML file that leave all else as it is: comments, order, spelling."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import yaml

from taskgraph_workers.config.locate import Loader
from taskgraph_workers.errors import Path

#: What ends a line for YAML 1.1, whose positions these are.
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_PLAIN = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)


class Impossible(ValueError):
    """A change that can't be made in this text without touching something else."""


class Editor:
    """One text, its nodes, and the changes to it.

    Every change is made twice, in the text and in the values that the text stands for;
    :meth:`result` refuses a text that does not stand for these values. Positions are those of the
    first text, but for :meth:`current`.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.root: yaml.Node | None = yaml.compose(text, Loader=Loader)
        self.value: Any = yaml.load(text, Loader=Loader)
        self._lines = _BREAK.split(text)
        self._breaks = [*_BREAK.findall(text), ""]
        self._shared = Counter(id(node) for node in _nodes(self.root))
        self._removed: set[int] = set()
        self._edits: list[tuple[int, int, int, str]] = []

    def mapping(self, path: Path) -> yaml.MappingNode:
        """The mapping at a path. Raises Impossible where there is none, or others share it."""
        node = self.root
        for key in path:
            found = _child(node, key)
            if found is None:
                raise Impossible
            node = found[1]
        if not isinstance(node, yaml.MappingNode) or self._shared[id(node)] != 1:
            raise Impossible
        return node

    def has(self, path: Path) -> bool:
        """Whether a key is written where it belongs (not brought in by ``<<``)."""
        return _child(self.mapping(path[:-1]), path[-1]) is not None

    def written(self, path: Path) -> str:
        """A scalar as it is written; nothing where it is none."""
        found = _child(self.mapping(path[:-1]), path[-1])
        return str(found[1].value) if found and isinstance(found[1], yaml.ScalarNode) else ""

    def current(self, path: Path) -> Any:
        """The value of a key, with the changes so far; None where there is none."""
        return self._values(path[:-1]).get(path[-1])

    def key_at(self, path: Path, line: int) -> str | None:
        """The key of a mapping that stands on a line."""
        keys = (name for name, _ in self.mapping(path).value if name.start_mark.line + 1 == line)
        return next((str(name.value) for name in keys), None)

    def set(self, path: Path, value: str | int) -> None:
        """Replace the value of a key, or add the key."""
        mapping, key = self.mapping(path[:-1]), str(path[-1])
        found = _child(mapping, key)
        if found is None:
            self._add(mapping, key, value)
        else:
            self._replace(found[1], _yaml(value))
        self._values(path[:-1])[key] = value

    def rename(self, path: Path, name: str, value: str | int | None = None) -> None:
        """Give a key another name, and another value where one is given."""
        mapping = self.mapping(path[:-1])
        found = _child(mapping, path[-1])
        if found is None or _child(mapping, name) is not None:
            raise Impossible
        self._replace(found[0], _yaml(name))
        if value is not None:
            self._replace(found[1], _yaml(value))
        values = self._values(path[:-1])
        old = values.pop(path[-1])
        values[name] = old if value is None else value

    def substitute(self, path: Path, old: str, new: str) -> None:
        """Replace a part of a text by another, and leave the rest of it as it is written."""
        found = _child(self.mapping(path[:-1]), path[-1])
        if found is None or found[1].start_mark.line != found[1].end_mark.line:
            raise Impossible
        start, end = found[1].start_mark, found[1].end_mark
        at = self._lines[start.line].find(old, start.column, end.column)
        if at < 0:
            raise Impossible
        self._edits.append((start.line, at, at + len(old), new))
        values = self._values(path[:-1])
        values[path[-1]] = values[path[-1]].replace(old, new)

    def remove(self, path: Path) -> None:
        """Take a key away, with the line that it has for itself."""
        found = _child(self.mapping(path[:-1]), path[-1])
        if found is None or found[0].start_mark.line != found[1].end_mark.line:
            raise Impossible
        line = found[0].start_mark.line
        before = self._lines[line][: found[0].start_mark.column]
        after = self._lines[line][found[1].end_mark.column :].strip()
        if before.strip() or (after and not after.startswith("#")):
            raise Impossible
        self._removed.add(line)
        del self._values(path[:-1])[path[-1]]

    def result(self) -> str:
        """The text with all changes. Raises Impossible where it came out otherwise than meant."""
        lines, breaks = list(self._lines), list(self._breaks)
        for line, start, end, text in sorted(self._edits, reverse=True):
            lines[line] = lines[line][:start] + text + lines[line][end:]
        # A line that was added behind one that is taken away is a part of it.
        for number in self._removed:
            _, added, lines[number] = lines[number].partition("\n")
            breaks[number] *= bool(added)
        first = self._breaks[0] or "\n"
        text = "".join(line.replace("\n", end or first) + end for line, end in zip(lines, breaks))
        try:
            value = yaml.load(text, Loader=Loader)
        except yaml.YAMLError:
            raise Impossible from None
        if value != self.value:
            raise Impossible
        return text

    def _values(self, path: Path) -> dict[Any, Any]:
        value = self.value
        for key in path:
            value = value[key]
        found: dict[Any, Any] = value
        return found

    def _replace(self, node: yaml.Node, text: str) -> None:
        start, end = node.start_mark, node.end_mark
        if start.line != end.line:
            raise Impossible
        self._edits.append((start.line, start.column, end.column, text))

    def _add(self, mapping: yaml.MappingNode, key: str, value: str | int) -> None:
        """Add a key behind the last one whose value ends on its line, else before the first."""
        said = f"{_yaml(key)}: {_yaml(value)}"
        if not mapping.value:
            raise Impossible
        if mapping.flow_style:
            last = mapping.value[-1][1].end_mark
            self._edits.append((last.line, last.column, last.column, f", {said}"))
            return
        indent = " " * mapping.start_mark.column
        for name, child in reversed(mapping.value):
            if name.start_mark.line == child.end_mark.line and _is_single(child):
                line = name.start_mark.line
                end = len(self._lines[line])
                self._edits.append((line, end, end, f"\n{indent}{said}"))
                return
        first = mapping.start_mark
        if self._lines[first.line][: first.column].strip():
            raise Impossible
        self._edits.append((first.line, 0, 0, f"{indent}{said}\n"))


def _is_single(node: yaml.Node) -> bool:
    return not isinstance(node, yaml.ScalarNode) or node.style not in ("|", ">")


def _yaml(value: str | int) -> str:
    """A value as YAML: text without quotes where it is text without them."""
    if isinstance(value, int):
        return str(value).lower()
    plain = _PLAIN.fullmatch(value.replace(" ", "_")) and yaml.safe_load(value) == value
    if plain:
        return value
    import json

    return json.dumps(value, ensure_ascii=False)


def _child(node: yaml.Node | None, key: object) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key], node.value[key]
    if isinstance(node, yaml.MappingNode):
        for name, value in reversed(node.value):
            if isinstance(name, yaml.ScalarNode) and name.value == key:
                return name, value
    return None


def _nodes(node: yaml.Node | None) -> Iterator[yaml.Node]:
    """Every node, as often as it is referred to; what is below it once."""
    seen: set[int] = set()
    left = [node] if node is not None else []
    while left:
        each = left.pop()
        yield each
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, yaml.SequenceNode):
            left += each.value
        elif isinstance(each, yaml.MappingNode):
            left += [part for pair in each.value for part in pair]
