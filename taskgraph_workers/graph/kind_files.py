"""Where a kind.yml says what a task asks for: its file, line and column."""

from __future__ import annotations

import os
from collections.abc import Iterator

import yaml

from taskgraph_workers.config.locate import Source
from taskgraph_workers.config.unread import content_of
from taskgraph_workers.errors import Path, Problem

#: A scalar: the keys that lead to it, what is written, and the mark of its key.
Written = tuple[Path, str, yaml.Mark]


class KindFile:
    """One kind.yml, read again for the places in it."""

    def __init__(self, folder: str) -> None:
        file = os.path.join(folder, "kind.yml")
        self._source = Source(os.path.abspath(file), content_of(file))
        self._written: list[Written] | None = None

    def at(self, problem: Problem, key: str, value: object = None, task: str = "") -> Problem:
        """The problem, at the place where ``key`` stands with this value; a transform may give it.

        What ``task`` says of itself comes before what stands elsewhere in the file; where nothing
        there has the value, the file alone is named.
        """
        hits = [each for each in self._all() if key in each[0] and value in (None, each[1])]
        hits.sort(key=lambda each: task not in each[0])
        problem = problem._replace(file=self._source.shown)
        if not hits:
            return problem._replace(path=())
        path, _, mark = hits[0]
        return problem._replace(path=path, line=mark.line + 1, column=mark.column + 1)

    def _all(self) -> list[Written]:
        if self._written is None:
            node = self._source.compose()
            self._written = [] if node is None else list(_scalars(node, (), node.start_mark, set()))
        return self._written


def _scalars(node: yaml.Node, path: Path, mark: yaml.Mark, above: set[int]) -> Iterator[Written]:
    if id(node) in above:  # an anchor inside itself
        return
    inside = above | {id(node)}
    if isinstance(node, yaml.ScalarNode):
        yield path, node.value, mark
    elif isinstance(node, yaml.SequenceNode):
        for index, each in enumerate(node.value):
            yield from _scalars(each, (*path, index), each.start_mark, inside)
    elif isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            key = name.value if isinstance(name, yaml.ScalarNode) else "?"
            yield from _scalars(value, (*path, key), name.start_mark, inside)
