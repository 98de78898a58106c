"""One mapping out of config.yml's ``workers-config`` and the files that it includes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from taskgraph_workers.config.locate import Loader, Source, Trace, find, oddities
from taskgraph_workers.config.unread import (
    FAILURES,
    TOO_DEEP,
    content_of,
    missing,
    too_deep,
    too_large,
    unreadable,
)
from taskgraph_workers.errors import TOP, ConfigError, Path, Problem, said

#: Where what several files say is put together rather than replaced.
_JOINED = {("require",), ("protect", "workers"), ("protect", "kinds")}

#: Mappings that are one value, although they are mappings.
_WHOLE = {("select", "default")}

#: What is said where a file could not be read: it may be the one that says what they are.
_NOT_LOOKED_UP = "names are not looked up until the include can be read"

#: For each path, the index of its source, and its path in there.
Origins = dict[Path, tuple[int, Path]]


@dataclass
class Part:
    """What one file says, with all that it includes. ``origins`` are as in :class:`Trace`."""

    value: dict[Any, Any]
    origins: Origins

    def origin(self, path: Path) -> tuple[int, Path]:
        """Where the value at a path came from."""
        for length in range(len(path), -1, -1):
            found = self.origins.get(path[:length])
            if found is not None:
                return found[0], (*found[1], *path[length:])
        raise AssertionError("a part knows at least where its top came from")


@dataclass
class Document:
    """The whole: ``value``, where it came from, and what was wrong with the files.

    ``read`` holds every file that was looked for, with its bytes, or None where there is none;
    ``incomplete`` says that a file could not be read, so that it may be the one that says what
    names there are.
    """

    value: dict[Any, Any] = field(default_factory=dict)
    trace: Trace = field(default_factory=lambda: Trace((Source("config.yml"),)))
    problems: list[Problem] = field(default_factory=list)
    read: dict[str, bytes | None] = field(default_factory=dict)
    incomplete: bool = False


def document(raw: Mapping[Any, Any], source: Source, folders: tuple[str, ...]) -> Document:
    """Read what ``workers-config`` includes, and put it together.

    ``raw`` is the value of ``workers-config``; relative names are looked for in ``folders``.
    """
    reader = _Reader(source)
    whole = reader.part(raw, 0, TOP, folders, ())
    origins = {path: origin for path, origin in whole.origins.items() if path and origin[0]}
    reader.document.value = whole.value
    reader.document.trace = Trace(tuple(reader.sources), origins)
    return reader.document


class _Reader:
    def __init__(self, source: Source) -> None:
        self.sources = [source]
        self.document = Document()
        self.nodes: dict[int, yaml.Node | None] = {}

    def part(
        self,
        raw: Mapping[Any, Any],
        index: int,
        prefix: Path,
        folders: tuple[str, ...],
        above: tuple[str, ...],
    ) -> Part:
        """What a mapping says, over what it includes. ``above`` are the files that led here."""
        own = {key: value for key, value in raw.items() if key != "include"}
        merged = Part({}, {(): (index, prefix)})
        for at, name in self._names(raw.get("include"), index, (*prefix, "include")):
            included = self._include(name, (index, at), folders, above)
            if included is not None:
                merged = _over(included, merged)
        result = _over(Part(own, {(): (index, prefix)}), merged)
        result.origins[()] = (index, prefix)
        return result

    def _names(self, raw: Any, index: int, at: Path) -> list[tuple[Path, str]]:
        if raw is None:
            return []
        names = [(at, raw)] if isinstance(raw, str) else raw
        if isinstance(names, list):
            if names is raw:
                names = [((*at, place), name) for place, name in enumerate(raw)]
            for place, name in names:
                if not isinstance(name, str) or not name:
                    self._fault(f"must be the name of a file, not {said(name)}", index, place)
            return [(place, name) for place, name in names if isinstance(name, str) and name]
        self._fault(f"must be a list of file names, not {said(raw)}", index, at)
        return []

    def _include(
        self, name: str, at: tuple[int, Path], folders: tuple[str, ...], above: tuple[str, ...]
    ) -> Part | None:
        tried = [os.path.normpath(os.path.join(folder, name)) for folder in folders]
        for file in tried:
            self.document.read[file] = content = content_of(file)
            if content is not None:
                break
        else:
            self._fault(f"there is no file {name!r} that can be read", *at, hint=_looked(tried))
            self._left_out()
            return None
        real = os.path.realpath(file)
        if real in above:
            self._fault(f"{name!r} includes itself, by way of what it includes", *at)
            return None
        self.sources.append(Source(file, content))
        raw, prefix = self._parse(len(self.sources) - 1)
        if raw is None:
            return None
        inside = tuple(dict.fromkeys((os.path.dirname(file), os.path.dirname(real))))
        return self.part(raw, len(self.sources) - 1, prefix, inside, (*above, real))

    def _parse(self, index: int) -> tuple[Mapping[Any, Any] | None, Path]:
        """The mapping that a file holds, and the key above it; None where it holds none."""
        source = self.sources[index]
        try:
            raw = parse(source)
        except Unreadable as error:
            self.document.problems.append(error.problem)
            self._left_out()
            return None, ()
        for problem in oddities(source.compose()):
            self.document.problems.append(problem.at(source.shown, problem.line, problem.column))
        prefix: Path = TOP if raw.keys() == {"workers-config"} else ()
        raw = raw["workers-config"] if prefix else raw
        if raw is None or isinstance(raw, Mapping):
            return raw or {}, prefix
        self._fault(f"must be a mapping, not {said(raw)}", index, prefix)
        self._left_out()
        return None, prefix

    def _fault(self, message: str, index: int, path: Path, hint: str = "") -> None:
        if index not in self.nodes:
            self.nodes[index] = self.sources[index].compose()
        place = find(self.nodes[index], path)
        problem = Problem(message, place.path, hint).at(
            self.sources[index].shown, place.line, place.column
        )
        self.document.problems.append(problem)

    def _left_out(self) -> None:
        """Note that the problem told last leaves out a file; the first of them says what of it."""
        if not self.document.incomplete:
            problem = self.document.problems.pop()
            hint = "; ".join(filter(None, [problem.hint, _NOT_LOOKED_UP]))
            self.document.problems.append(problem._replace(hint=hint))
        self.document.incomplete = True


class Unreadable(Exception):
    """A file that can't be read as YAML, or not as a mapping. ``problem`` says where and why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def parse_file(source: Source) -> dict[Any, Any]:
    """As :func:`parse`, of a file that has to be there. Raises :class:`ConfigError`."""
    if source.content is None:
        raise ConfigError(missing(source.file, source.shown))
    try:
        return parse(source)
    except Unreadable as error:
        raise ConfigError(error.problem) from None


def parse(source: Source) -> dict[Any, Any]:
    """The mapping that a file holds; an empty file holds an empty one.

    Raises :class:`Unreadable`.
    """
    try:
        large = too_large(source)
        raw = None if large else yaml.load(source.content or b"", Loader=Loader)
    except FAILURES as error:
        raise Unreadable(unreadable(error, source)) from None
    if large:
        raise Unreadable(large)
    if raw is None or (isinstance(raw, dict) and not too_deep(raw)):
        return raw or {}
    what = TOO_DEEP if isinstance(raw, dict) else f"must hold a mapping, not {said(raw)}"
    node = source.compose()
    line, column = (node.start_mark.line + 1, node.start_mark.column + 1) if node else (1, 1)
    raise Unreadable(Problem(what).at(source.shown, line, column))


def _looked(tried: list[str]) -> str:
    return "looked for " + " and ".join(Source(file).shown for file in dict.fromkeys(tried))


# --- Merging --------------------------------------------------------------------------------


def _over(strong: Part, weak: Part) -> Part:
    """One part laid over another: mappings key by key, some lists joined, the rest replaced."""
    origins = dict(strong.origins)
    value = _merged(strong.value, weak.value, (), (weak, origins))
    return Part(value, origins)


def _merged(strong: Any, weak: Any, path: Path, into: tuple[Part, Origins]) -> Any:
    if path in _JOINED and _lists(strong, weak):
        return _joined(strong, weak, path, into)
    if not _merges(strong, path) or not _merges(weak, path):
        return strong
    value = dict(strong)
    for key, weaker in weak.items():
        if key in strong:
            value[key] = _merged(strong[key], weaker, (*path, key), into)
        else:
            value[key] = weaker
            _adopt((*path, key), (*path, key), into)
    return value


def _merges(value: Any, path: Path) -> bool:
    if not isinstance(value, Mapping) or path in _WHOLE:
        return False
    return not any(key == "detect" or str(key).startswith("by-") for key in value)


def _lists(*values: Any) -> bool:
    return all(isinstance(value, (list, str)) for value in values)


def _joined(strong: Any, weak: Any, path: Path, into: tuple[Part, Origins]) -> list[Any]:
    first = strong if isinstance(strong, list) else [strong]
    more = weak if isinstance(weak, list) else [weak]
    for index in range(len(more)):
        _adopt((*path, index), (*path, len(first) + index), into)
    return first + more


def _adopt(was: Path, path: Path, into: tuple[Part, Origins]) -> None:
    """Note that the value at ``path`` is what the weaker part says at ``was``."""
    weak, origins = into
    for below, origin in weak.origins.items():
        if below[: len(was)] == was:
            origins[path + below[len(was) :]] = origin
    origins[path] = weak.origin(was)
