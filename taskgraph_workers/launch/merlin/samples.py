"""The samples of a study: their columns, and how many there are where that can be told."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from taskgraph_workers.launch.merlin import schema
from taskgraph_workers.launch.merlin.document import Document
from taskgraph_workers.launch.merlin.values import Reader

_TOP = ("merlin", "samples")
#: A larger file of samples is not counted.
_MOST_BYTES = 64 * 1024**2
_SHAPE = re.compile(rb"'shape': *\((\d+)")


class Samples(NamedTuple):
    """``number`` is None where the spec doesn't tell, 0 where it has no samples."""

    there: bool = False
    columns: tuple[str, ...] = ()
    number: int | None = 0


def samples(document: Document, reader: Reader, block: object) -> Samples:
    """Read ``merlin.samples``."""
    raw = schema.mapping(document, block, _TOP)
    if block is None or not raw:
        return Samples()
    schema.refused(document, raw, _TOP, schema.SAMPLES, "merlin.samples")
    generate = schema.mapping(document, raw.get("generate"), (*_TOP, "generate"))
    schema.refused(document, generate, (*_TOP, "generate"), schema.GENERATE, "samples.generate")
    if raw.get("generate") is not None and not generate.get("cmd"):
        document.wrong("needs a cmd", (*_TOP, "generate"))
    columns = reader.texts(raw.get("column_labels"), (*_TOP, "column_labels"))
    if not columns:
        document.error("samples need column_labels: Merlin fails without them", _TOP)
    for column in columns or ():
        if column in reader.parameters:
            what = f"{column!r} is a global parameter, and can't name a column of the samples too"
            document.error(what, (*_TOP, "column_labels"))
    file = reader.text(raw.get("file"), (*_TOP, "file"))
    if file is None:
        what = "samples need a file, unless merlin run is given one by --samplesfile"
        document.warn(what, _TOP)
    return Samples(True, columns or (), _count(file))


def _count(file: str | None) -> int | None:
    """How many samples a file holds: ``.npy``, ``.csv``, ``.tab``; None where that isn't known."""
    if file is None or "$(" in file:
        return None
    file = os.path.expandvars(os.path.expanduser(file))
    try:
        if os.path.getsize(file) > _MOST_BYTES:
            return None
        with open(file, "rb") as opened:
            content = opened.read(512) if file.endswith(".npy") else opened.read()
    except (OSError, ValueError):
        return None
    if file.endswith(".npy"):
        found = _SHAPE.search(content) if content.startswith(b"\x93NUMPY") else None
        return int(found[1]) if found else None
    if not file.endswith((".csv", ".tab")):
        return None
    return sum(bool(line.split(b"#")[0].strip()) for line in content.splitlines())
