"""A spec's YAML: its values, where each of them stands, and all that is wrong with it."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Any

import yaml

from taskgraph_workers.config.locate import Loader, Source, find, oddities
from taskgraph_workers.config.unread import (
    FAILURES,
    TOO_DEEP,
    content_of,
    missing,
    too_deep,
    too_large,
    unreadable,
)
from taskgraph_workers.errors import TWICE, Path, Problem, said
from taskgraph_workers.launch.model import NEVER_RUNS, OF_KEY, LaunchError

# A shorter file without anchors is not looked at for its size: that would read it twice.
_LONG = 1024**2


class Document:
    """One spec: ``value`` as YAML reads it, ``text`` as it is written, and its ``problems``.

    Raises LaunchError where the file can't be read at all.
    """

    def __init__(self, file: str) -> None:
        self.source = Source(file, content_of(file))
        self.node: yaml.Node | None = None
        self.problems: list[Problem] = []
        self.value = self._read()
        self.text = (self.source.content or b"").decode("utf-8-sig", "replace")

    def _read(self) -> dict[Any, Any]:
        if self.source.content is None:
            raise LaunchError(missing(self.source.file, self.source.shown))
        try:
            large = self._too_large(self.source.content)
            self.node = None if large else yaml.compose(self.source.content, Loader=Loader)
            raw = None if self.node is None else self._value(self.node)
        except FAILURES as error:
            raise LaunchError(unreadable(error, self.source)) from None
        if large:
            raise LaunchError(large)
        if self.source.content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            what = "is UTF-16, and Merlin reads UTF-8 alone"
            raise LaunchError(
                Problem(what, hint="save the file as UTF-8").at(self.source.shown, 1, 1)
            )
        if raw is None or (isinstance(raw, dict) and not too_deep(raw)):
            return raw or {}
        what = TOO_DEEP if isinstance(raw, dict) else f"must hold a mapping, not {said(raw)}"
        raise LaunchError(Problem(what).at(self.source.shown, 1, 1))

    def _too_large(self, content: bytes) -> Problem | None:
        """Anchors alone can make a short file stand for more than memory holds."""
        return too_large(self.source) if b"&" in content or len(content) > _LONG else None

    def _value(self, node: yaml.Node) -> Any:
        """What a node stands for, without reading the text a second time."""
        # First of all: making a value of a node writes what `<<` brings into it.
        for problem in oddities(node):
            self._odd(problem)
        return yaml.constructor.SafeConstructor().construct_document(node)

    def _odd(self, problem: Problem) -> None:
        """Keep what the YAML alone shows, but for walltimes: what reads these tells it."""
        if problem.path[-1:] == ("walltime",) and problem.severity == "warning":
            return
        if problem.path[:1] in (("user",), ("description",)) and problem.severity == "warning":
            return
        if problem.code == TWICE:
            # A fault for us; but Merlin takes the last of them.
            problem = problem._replace(severity="warning")
        self.problems.append(problem.at(self.source.shown, problem.line, problem.column))

    def line(self, path: Path) -> int:
        """The line of the key (or item) at a path; 0 where nothing is written."""
        return self._place(path)[0]

    def written(self, path: Path) -> str | None:
        """A scalar as it is written, before YAML made anything of it."""
        return find(self.node, path).written

    def error(self, message: str, path: Path, hint: str = "") -> None:
        """Note something that can't be launched."""
        self._note(Problem(message, path, hint))

    def wrong(self, message: str, path: Path, hint: str = "") -> None:
        """The same with a message that goes on from the last key, as in "must be a list"."""
        self._note(Problem(message, path, hint, code=OF_KEY))

    def warn(
        self, message: str, path: Path, hint: str = "", never: Sequence[str] | None = None
    ) -> None:
        """Note something that the user should know; ``never`` are steps that it keeps from running.

        Without any in it, it keeps all of them.
        """
        problem = Problem(message, path, hint, "warning")
        if never is not None:
            problem = problem._replace(code=NEVER_RUNS, names=tuple(never))
        self._note(problem)

    def _note(self, problem: Problem) -> None:
        line, column = self._place(problem.path)
        located = problem.at(self.source.shown, line, column)
        if located not in self.problems:
            self.problems.append(located)

    def _place(self, path: Path) -> tuple[int, int]:
        node = self.node
        mark = None
        for key in path:
            found = _child(node, key)
            if found is None:
                # A key that comes by way of `<<`, or is no string.
                place = find(self.node, path)
                return place.line, place.column
            mark, node = found
        return (mark.line + 1, mark.column + 1) if mark else (0, 0)

    def close(self) -> tuple[Problem, ...]:
        """The warnings, in the order of their lines. Raises LaunchError with all if one is none."""
        problems = sorted(self.problems, key=lambda each: (each.line, each.column))
        if any(problem.severity == "error" for problem in problems):
            raise LaunchError(*problems)
        return tuple(problems)


def _child(node: yaml.Node | None, key: object) -> tuple[yaml.Mark, yaml.Node] | None:
    """As :func:`~taskgraph_workers.config.locate.find` looks, for what is written plainly."""
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key].start_mark, node.value[key]
    if isinstance(node, yaml.MappingNode):
        for name, value in reversed(node.value):
            if name.value == key:
                return name.start_mark, value
    return None
