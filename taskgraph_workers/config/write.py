"""A configuration written as YAML: in the house's layout, with comments, read back as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable

import yaml

from taskgraph_workers.config.locate import Loader
from taskgraph_workers.errors import Path

#: Comment lines by the path of the key that they stand above; see :data:`AFTER`.
Comments = Mapping[Path, Sequence[str]]

#: As the last key of a path: comments behind the last key of that mapping.
AFTER = -1

#: As wide as a terminal that nobody has made wider.
WIDTH = 80

_INDENT = 4
#: What needs no quotes in any place, unless YAML reads it as something else than text.
_PLAIN = re.compile(r"[A-Za-z0-9_./(\\^$][A-Za-z0-9_./()\\^$*+|@~-]*", re.ASCII)


def to_yaml(
    value: Mapping[str, Any], comments: Comments | None = None, opened: Callable[[Path], bool] = any
) -> str:
    """A mapping as YAML, block style outside and, where it fits into a line, flow style inside.

    ``opened`` says of a path whether the mapping there is written in block style in any case (every
    one unless said). Keys of the second level are parted by blank lines.
    """
    if not value:
        return "{}\n"
    return "\n".join([*_Writer(comments or {}, opened).mapping(value, ()), ""])


class _Writer:
    def __init__(self, comments: Comments, opened: Callable[[Path], bool]) -> None:
        self.comments = comments
        self.opened = opened

    def mapping(self, value: Mapping[str, Any], path: Path) -> Iterator[str]:
        """The lines of a mapping in block style."""
        margin = " " * _INDENT * len(path)
        for index, (key, content) in enumerate(value.items()):
            at = (*path, key)
            if index and len(at) == 2:
                yield ""
            yield from (margin + line for line in self.comments.get(at, ()))
            yield from self._entry(f"{margin}{scalar(key)}:", content, at)
        yield from (margin + line for line in self.comments.get((*path, AFTER), ()))

    def _entry(self, head: str, content: Any, path: Path) -> Iterator[str]:
        line = f"{head} {flow(content)}"
        within = any(each[: len(path)] == path for each in self.comments if len(each) > len(path))
        whole = not isinstance(content, (Mapping, list)) or not (content or within)
        if whole or (len(line) <= WIDTH and not within and not self.opened(path)):
            yield line
            return
        yield head
        if isinstance(content, Mapping):
            yield from self.mapping(content, path)
        else:
            margin = " " * _INDENT * len(path)
            yield from (f"{margin}- {flow(each)}" for each in content)


def flow(value: Any) -> str:
    """A value in one line.

    >>> flow({"env": {"GPUS": "0", "A": None}, "levels": [1, "3"]})
    '{env: {GPUS: "0", A: null}, levels: [1, "3"]}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(k)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def scalar(value: Any) -> str:
    r"""A scalar; text is quoted where YAML, or a reader, could take it for something else.

    >>> [scalar(each) for each in ("b-gpu-4.*", "0", "yes", "{level}", "a b", r"x\\\\.*", 8, None)]
    ['b-gpu-4.*', '"0"', '"yes"', "'{level}'", '"a b"', "'x\\\\\\\\.*'", '8', 'null']
    """
    if not isinstance(value, str):
        return (
            "null"
            if value is None
            else str(value).lower()
            if value is True or value is False
            else str(value)
        )
    if _PLAIN.fullmatch(value) and "\\" not in value and _is_text(value):
        return value
    if value.isascii() and value.isprintable():
        if any(char in value for char in '\\"{'):
            return "'" + value.replace("'", "''") + "'"
        return f'"{value}"'
    # Everything that needs an escape: left to PyYAML, which knows them all.
    return str(yaml.safe_dump(value, default_style='"', width=1 << 30)).strip()


def _is_text(value: str) -> bool:
    """Whether YAML reads a plain scalar as the text that it is."""
    try:
        return bool(yaml.load(value, Loader=Loader) == value)
    except yaml.YAMLError:  # the marks at which documents begin and end
        return False
