"""Why a file can't be read as YAML: what is told of it, and where it stands."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping

import yaml

from taskgraph_workers.config.locate import Source
from taskgraph_workers.errors import Problem

#: More than any configuration says: a few lines of YAML can stand for billions of values.
_MOST_VALUES = 250_000

#: More bytes than any configuration has; a device such as /dev/zero has no end.
_MOST_BYTES = 16 * 1024**2

#: What is said of a value that goes deeper.
TOO_DEEP = "goes deeper than any configuration does, or contains itself"

#: Deeper than any configuration goes. YAML can build values that contain themselves.
_DEEPEST = 60

#: What :func:`unreadable` can tell of: whatever reading YAML raises.
FAILURES = (yaml.YAMLError, ValueError, OverflowError, RecursionError)


def unreadable(error: BaseException, source: Source) -> Problem:
    """The problem that an error of the YAML reader is."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        if error.problem == "but found another document":
            what = "only one document of a file is read, and a second one starts here"
            return _at(source, mark, what, "put it in a file of its own, and include that too")
        return _at(source, mark, f"not readable as YAML: {error.problem or error.context}")
    if isinstance(error, yaml.reader.ReaderError):
        return _no_text(source, _reason(error))
    node = next(_unmade(source.compose(), set()), None)
    return _at(source, node.start_mark if node else None, f"not readable as YAML: {_reason(error)}")


def _reason(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _at(source: Source, mark: yaml.Mark | None, what: str, hint: str = "") -> Problem:
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return Problem(what, hint=hint).at(source.shown, line, column)


def _no_text(source: Source, reason: str) -> Problem:
    """The problem that the bytes of a file are no text, or hold what can't be printed."""
    content, hint = source.content or b"", ""
    wide = content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    encoding = "utf-16" if wide else "utf-8"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        before = content[: error.start].decode(encoding, "ignore")
        reason = f"byte 0x{content[error.start]:02x} is not {encoding.upper()}"
        hint = "save the file as UTF-8"
    else:
        found = yaml.reader.Reader.NON_PRINTABLE.search(text)
        before = text[: found.start()] if found else ""
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return Problem(f"not readable as YAML: {reason}", hint=hint).at(source.shown, line, column)


def _unmade(node: yaml.Node | None, seen: set[int]) -> Iterator[yaml.Node]:
    """The scalars that no value can be made of, such as the 13th month."""
    if isinstance(node, yaml.ScalarNode):
        try:
            yaml.constructor.SafeConstructor().construct_document(node)
        except FAILURES:
            yield node
    elif node is not None and id(node) not in seen:
        seen.add(id(node))
        for each in _inside(node):
            yield from _unmade(each, seen)


def _inside(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def too_large(source: Source) -> Problem | None:
    """A problem where a file is larger than any configuration, by itself or by its anchors."""
    if len(source.content or b"") > _MOST_BYTES:
        return _at(source, None, f"is larger than any configuration: over {_MOST_BYTES} bytes")
    node = source.compose()
    if node is None or _size(node, {}) <= _MOST_VALUES:
        return None
    what = f"stands for more than {_MOST_VALUES} values, counting what anchors repeat"
    return _at(source, node.start_mark, what)


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node stands for. One that contains itself counts once in there."""
    if id(node) not in known:
        known[id(node)] = 1
        known[id(node)] += sum(_size(each, known) for each in _inside(node))
    return known[id(node)]


def content_of(file: str) -> bytes | None:
    """The bytes of a file, or None where it can't be read.

    Of one that :func:`too_large` refuses there are no more than that takes.
    """
    try:
        with open(file, "rb") as opened:
            return opened.read(_MOST_BYTES + 1)
    except (OSError, ValueError):
        return None


def missing(file: str, shown: str) -> Problem:
    """Why there is no content of a file: mostly that there is no such file."""
    try:
        with open(file, "rb"):
            pass
    except PermissionError as error:
        return Problem(f"can't be read: {error.strerror}", file=shown)
    except (OSError, ValueError):
        pass
    return Problem("there is no such file that can be read", file=shown)


def too_deep(value: object) -> bool:
    """Whether a value nests deeper than any configuration, as one that contains itself does."""
    return _depth(value, _DEEPEST, {}) > _DEEPEST


def _depth(value: object, left: int, known: dict[int, int]) -> int:
    """How deep a value nests, looking ``left`` deeper; what anchors repeat is looked at once."""
    if not isinstance(value, (Mapping, list, tuple)):
        return 0
    if id(value) not in known:
        known[id(value)] = _DEEPEST + 1  # as long as it is looked at: it may contain itself
        inside = value.values() if isinstance(value, Mapping) else value
        below = (_depth(each, left - 1, known) for each in inside) if left else [_DEEPEST]
        known[id(value)] = 1 + max(below, default=0)
    return known[id(value)]
