"""The batch blocks, and the workers with theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskgraph_workers.errors import Path, did_you_mean, said
from taskgraph_workers.launch.merlin import schema, strict
from taskgraph_workers.launch.merlin.model import SCHEDULERS, Batch, Worker
from taskgraph_workers.launch.merlin.notes import WORKERS
from taskgraph_workers.launch.merlin.values import Reader
from taskgraph_workers.machines import Header


def batch(reader: Reader, raw: object, path: Path) -> Batch:
    """A batch block: that of the spec, or a worker's own."""
    document = reader.document
    block = schema.mapping(document, raw, path)
    schema.unknown(document, block, path, schema.BATCH, "a batch block")
    strict.check(document, block, path, strict.BATCH)
    texts = {
        key: reader.fixed(block.get(key), (*path, key))
        for key in (*schema.BATCH_TEXTS, *schema.BATCH_OURS)
        if key in block
    }
    kind = texts.pop("type", None) or "local"
    if kind not in SCHEDULERS:
        what = f"{kind!r} is no type that Merlin knows: no task would run"
        hint = did_you_mean(kind, SCHEDULERS)
        document.warn(what, (*path, "type"), hint, never=())
    for key in ("reservation", "qos", "constraint"):
        if key in texts:
            what = f"Merlin drops {key!r}; launch puts it into the header of the script"
            document.warn(what, (*path, key))
    walltime = reader.walltime(block.get("walltime"), (*path, "walltime"))
    if kind == "lsf" and walltime is not None:
        document.warn("Merlin does not use a walltime with type lsf", (*path, "walltime"))
    for key in ("dry_run", "flux_exec_workers"):
        reader.flag(block.get(key), (*path, key), False)
    said: dict[str, Any] = {key: texts.pop(key) for key in Header._fields if key in texts}
    nodes = _nodes(reader, block.get("nodes"), (*path, "nodes"))
    return Batch(
        type=kind,
        header=Header(nodes=nodes, walltime_s=walltime, **said),
        other={key: value for key, value in block.items() if key not in schema.BATCH},
        line=document.line(path) if block else 0,
        **texts,
    )


def _nodes(reader: Reader, raw: object, path: Path) -> int | None:
    """A number of nodes; ``all`` is as if none were written."""
    if isinstance(raw, str) and reader.variables.replace(raw).strip() == "all":
        what = "Merlin refuses nodes: all; it is read as if no nodes were written"
        reader.document.warn(what, path, "leave it out")
        return None
    return reader.number(raw, path)


def workers(reader: Reader, block: dict[str, Any], steps: list[str]) -> tuple[Worker, ...] | None:
    """The workers of ``merlin.resources``; None where the spec names none."""
    raw = block.get("workers")
    if raw is None:
        return None
    if not isinstance(raw, dict) or not raw:
        what = f"must be a mapping with at least one worker, not {said(raw)}"
        if raw == {}:
            what = "names no worker: Merlin refuses that"
        reader.document.wrong(what, WORKERS, "leave it out to have one for all steps")
        return None
    found: dict[str, Worker] = {}
    for key, value in schema.mapping(reader.document, raw, WORKERS).items():
        path = (*WORKERS, key)
        name = reader.fixed(key, path)
        if name is None:
            continue
        if name in found:
            what = f"there is a worker {name!r} on line {found[name].line} already"
            reader.document.error(what, path)
        found[name] = _worker(reader, name, value, path, steps)
    _numbered(reader, found)
    return tuple(found.values())


def _numbered(reader: Reader, found: Mapping[str, Worker]) -> None:
    """Say once, of the key that is ours, what it is to Merlin."""
    name = next((name for name, worker in found.items() if worker.number is not None), None)
    if name is not None:
        what = "Merlin itself ignores number, and starts nodes x concurrency workers"
        reader.document.warn(what, (*WORKERS, name, "number"))


def _worker(reader: Reader, name: str, raw: object, path: Path, steps: list[str]) -> Worker:
    document = reader.document
    if raw is None:
        document.wrong("says nothing: Merlin fails on that", path, f"write {name}: {{}}")
    block = schema.mapping(document, raw, path)
    schema.unknown(document, block, path, schema.WORKER, "a worker")
    strict.check(document, block, path, strict.WORKER)
    own = block.get("batch")
    return Worker(
        name=name,
        args=reader.text(block.get("args"), (*path, "args")) or "",
        steps=_steps(reader, block.get("steps"), (*path, "steps"), steps),
        nodes=_nodes(reader, block.get("nodes"), (*path, "nodes")),
        number=reader.number(block.get("number"), (*path, "number")),
        batch=None if own is None else batch(reader, own, (*path, "batch")),
        machines=reader.texts(block.get("machines"), (*path, "machines")) or (),
        line=document.line(path),
        lines={key: document.line((*path, key)) for key in block},
    )


def _steps(reader: Reader, raw: object, path: Path, steps: list[str]) -> tuple[str, ...]:
    """The steps of a worker, which have to be there."""
    found = reader.texts(raw, path)
    if found is None:
        return ("all",)
    if not found:
        reader.document.wrong("names no step: Merlin fails on that", path, "write [all]")
    for place, step in enumerate(found):
        if step != "all" and step not in steps:
            hint = did_you_mean(step, steps)
            reader.document.error(f"there is no step {step!r}", (*path, place), hint)
    if "all" in found[1:]:
        reader.document.warn(
            "Merlin fails where all is not the first of the steps", path, "write [all]"
        )
    return found
