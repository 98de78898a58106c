"""``workers-config.dispatch``: what a start-training message may ask for, and its task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskgraph_workers.config.entries import Entries, env_name, env_text
from taskgraph_workers.config.forms import Either, Shape, about, formed, takes
from taskgraph_workers.config.keyed import keyed
from taskgraph_workers.config.names import Known
from taskgraph_workers.config.shapes import (
    NAME,
    a_name,
    count,
    duration,
    level,
    line,
    list_of,
    pattern,
    section,
    some_of,
    table,
)
from taskgraph_workers.model import Dispatch, RequestTask

#: What a value of ``dispatch.task`` may be keyed by.
TASK_KEYED_BY = ("image", "sku")


def dispatch(known: Known) -> Shape:
    """The shape of ``dispatch``: a :class:`Dispatch`."""
    task = _task_shape(known)
    local = section({"commands": about("What runs, by image.", table(_argv, a_name))})
    whole = section(
        {
            "level": about("The level that placement is told; 1 unless said.", level),
            "project": about("The project that placement is told.", a_name),
            "kind": about("The kind that placement is told.", a_name),
            "skus": about(
                "Machine types of messages, each with its worker name.",
                table(Entries(known).name, _sku),
            ),
            "images": about(
                "Images that may be asked for, as patterns of whole names.", list_of(pattern)
            ),
            "task": about(
                "What the task of a request is like.",
                formed(lambda raw: _task(task(raw)), Either((task,))),
            ),
            "local": about("Where no container engine works.", local),
        }
    )

    def read(raw: Any) -> Dispatch | None:
        value = whole(raw)
        commands = value.pop("local", {}).get("commands", {})
        return Dispatch(commands=commands, **value) if raw is not None else None

    return formed(read, Either((whole,)))


def _task_shape(known: Known) -> Shape:
    def by(shape: Shape) -> Shape:
        return keyed(shape, known, TASK_KEYED_BY)

    return section(
        {
            "max-run-time": about("How long it may run, such as 2h or seconds.", by(duration)),
            "retries": about("How often it is tried again.", by(count())),
            "scopes": about("Taskcluster scopes that it gets.", by(list_of(line))),
            "env": about("Variables that it gets.", by(table(by(env_text), env_name))),
        }
    )


def _task(value: Mapping[str, Any]) -> RequestTask:
    said = {key.replace("-", "_"): each for key, each in value.items()}
    if "max_run_time" in said:
        said["max_run_time_s"] = said.pop("max_run_time")
    return RequestTask(**said)


@takes(type="string", pattern=NAME)
def _sku(raw: Any) -> str:
    return str(raw) if type(raw) is int else a_name(raw)


_argv = some_of(line, "must be a command with its arguments, not an empty list")
