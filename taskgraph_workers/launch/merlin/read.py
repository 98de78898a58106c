"""A Merlin spec, from its file to a :class:`~taskgraph_workers.launch.merlin.model.Spec`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskgraph_workers.errors import said
from taskgraph_workers.launch.merlin import schema
from taskgraph_workers.launch.merlin.blocks import batch, workers
from taskgraph_workers.launch.merlin.demand import Inherited
from taskgraph_workers.launch.merlin.document import Document
from taskgraph_workers.launch.merlin.model import Spec
from taskgraph_workers.launch.merlin.parameters import parameters
from taskgraph_workers.launch.merlin.samples import samples
from taskgraph_workers.launch.merlin.steps import Steps
from taskgraph_workers.launch.merlin.values import Reader
from taskgraph_workers.launch.merlin.variables import Variables


def read_spec(file: str, variables: Mapping[str, str]) -> Spec:
    """Read a spec. ``variables`` are those from the command line, over those of the spec.

    Raises LaunchError with every fault of the file at once, and the warnings among them. What
    doesn't hinder is in the ``notes`` of the result.
    """
    document = Document(file)
    schema.unknown(document, _texts(document.value), (), schema.TOP, "a spec")
    known = Variables(document, variables)
    reader = Reader(document, known, parameters(document, known))
    merlin = schema.mapping(document, document.value.get("merlin"), ("merlin",))
    schema.refused(document, merlin, ("merlin",), schema.MERLIN, "merlin")
    resources = _resources(document, merlin)
    found = samples(document, reader, merlin.get("samples"))
    reader.columns = found.columns
    name = _description(reader)
    header = batch(reader, document.value.get("batch"), ("batch",))
    steps = Steps(reader, Inherited(header.type, header.shell), found.there).read()
    path = ("merlin", "resources")
    overlap = reader.flag(resources.get("overlap"), (*path, "overlap"), False)
    groups = workers(reader, resources, [step.name for step in steps])
    return Spec(
        file=file,
        text=document.text,
        name=name,
        batch=header,
        steps=steps,
        workers=groups,
        overlap=overlap,
        values=reader.parameters,
        samples=found.number,
        workers_line=document.line((*path, "workers")),
        notes=document.close(),
    )


def _texts(value: dict[Any, Any]) -> dict[str, Any]:
    return {str(key): each for key, each in value.items()}


def _resources(document: Document, merlin: dict[str, Any]) -> dict[str, Any]:
    path = ("merlin", "resources")
    resources = schema.mapping(document, merlin.get("resources"), path)
    schema.unknown(document, resources, path, schema.RESOURCES, "merlin.resources")
    server = resources.get("task_server")
    if server not in (None, "celery"):
        document.error(f"only celery is a task_server, not {said(server)}", (*path, "task_server"))
    return resources


def _description(reader: Reader) -> str:
    """The study's name; both it and a description have to be there."""
    document = reader.document
    block = schema.mapping(document, document.value.get("description"), ("description",))
    for key in ("name", "description"):
        if not block.get(key):
            at = ("description", key) if key in block else ("description",)
            document.wrong(f"needs a {key}", at)
    return reader.text(block.get("name"), ("description", "name")) or ""
