"""Global parameters: each a list of values; their rows are what one run of the study is of."""

from __future__ import annotations

from typing import Any

from taskgraph_workers.errors import Path, said
from taskgraph_workers.launch.merlin.document import Document
from taskgraph_workers.launch.merlin.schema import PARAMETER, mapping, unknown
from taskgraph_workers.launch.merlin.variables import Variables

_TOP: Path = ("global.parameters",)


def parameters(document: Document, variables: Variables) -> dict[str, tuple[str, ...]]:
    """The values of each parameter, as text. All have equally many."""
    found: dict[str, tuple[str, ...]] = {}
    for name, raw in mapping(document, document.value.get(_TOP[0]), _TOP).items():
        block = mapping(document, raw, (*_TOP, name))
        unknown(document, block, (*_TOP, name), PARAMETER, "a parameter")
        values = _values(document, block, (*_TOP, name))
        _label(document, block, (*_TOP, name))
        if values is not None:
            found[name] = tuple(variables.replace(str(value)) for value in values)
    rows = max(map(len, found.values()), default=1)
    for name, texts in found.items():
        if len(texts) != rows:
            what = f"has {len(texts)} values, and another parameter {rows}: all must have as many"
            document.wrong(what, (*_TOP, name))
    return found


def _values(document: Document, block: dict[str, Any], path: Path) -> list[Any] | None:
    values = block.get("values")
    if not isinstance(values, list):
        document.error(f"values must be a list, not {said(values)}", (*path, "values"))
        return None
    if not values:
        document.wrong("has no values: Merlin would run no task", (*path, "values"))
        return None
    return values


def _label(document: Document, block: dict[str, Any], path: Path) -> None:
    label = block.get("label")
    if not isinstance(label, str) or not label:
        what = f"label must be a text such as {path[-1]}.%%, not {said(label)}"
        document.error(what, (*path, "label"))
