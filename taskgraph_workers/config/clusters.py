"""``workers-config.clusters``: where workers are launched, and how many of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Callable

from taskgraph_workers import units
from taskgraph_workers.config.entries import env_name, env_value
from taskgraph_workers.config.faults import Fault
from taskgraph_workers.config.forms import Either, Shape, about, formed, takes
from taskgraph_workers.config.shapes import (
    NAME,
    a_name,
    count,
    duration,
    line,
    list_of,
    section,
    size,
    some_of,
    table,
)
from taskgraph_workers.errors import Path, did_you_mean, said
from taskgraph_workers.machines import Cluster, Group, Header, Node

#: The schedulers that a cluster may have without any other package.
SCHEDULERS = ("slurm", "flux", "lsf", "pbs")

# Keys that the model has under another name, or with its unit.
_FIELDS = {"job-name": "name", "walltime": "walltime_s", "margin": "margin_s"}

_POOL = re.compile(r"[^\s/]+/[^\s/]+")


def clusters() -> Shape:
    """The shape of ``clusters``: a mapping from names to what :func:`build` takes."""
    has = section(_machine("What a node has", units.mib_floor))
    node = formed(lambda raw: Node(**_in_mib(has(raw))), Either((has,)))
    cluster = section(
        {
            "scheduler": about("The batch scheduler; a package may register others.", _scheduler),
            "node": about("One node.", node),
            "queue": about("The queue or partition for the job.", a_name),
            "bank": about("The account that the job is charged to.", a_name),
            "walltime": about("How long the job may run, such as 90m or 1-00:00:00.", duration),
            "margin": about("How long before that workers are asked to end.", duration),
            "requeue": about("How often the job may go back into its queue then.", count()),
            "job-name": about("The name of the job.", a_name),
            "output": about("Its output file; {id} is the job's id.", a_name),
            "reservation": about("The reservation that the job runs in.", a_name),
            "qos": about("The quality of service that it asks for.", a_name),
            "constraint": about("What its nodes must have, as the scheduler says it.", a_name),
            "setup": about("Shell lines to run first.", list_of(line)),
            "directives": about("Header lines of the scheduler's own, as they are.", list_of(line)),
            "groups": about("Identical workers to launch, by name.", table(_group(), a_name)),
        },
        needs=("scheduler",),
        others="a header line of the scheduler's own goes into directives, as it is",
    )
    return table(cluster, a_name)


def _group() -> Shape:
    return section(
        {
            **_machine("What each worker needs", units.mib_ceil),
            "pool": about("The pool that they claim from: provisioner/worker-type.", pool),
            "number": about("How many, or auto.", _number),
            "command": about("What starts one: a shell line, or its words.", _command),
            "env": about(
                "Variables of each worker, in place of what its pool says: a string, null for "
                "none, or {detect: ...}.",
                table(env_value, env_name),
            ),
        },
        needs=("command",),
    )


def _machine(whose: str, to_mib: Callable[[str], int]) -> dict[str, Shape]:
    return {
        "cores": about(f"{whose}: CPU cores.", count()),
        "gpus": about(f"{whose}: GPUs.", count()),
        "memory": about(f"{whose}: memory, such as 64GiB.", size(to_mib)),
    }


def _in_mib(machine: Mapping[str, Any]) -> dict[str, Any]:
    """What was read of a machine, with the unit in the name, as the model has it."""
    return {"memory_mib" if key == "memory" else key: value for key, value in machine.items()}


def build(name: str, value: Mapping[str, Any], path: Path) -> Cluster:
    """A cluster out of what the shape read at this path."""
    groups = {
        each: Group(each, path=(*path, "groups", each), **_in_mib(words))
        for each, words in value.get("groups", {}).items()
    }
    rest = {_FIELDS.get(key, key): each for key, each in value.items()}
    rest["groups"] = groups
    header = Header(**{key: rest.pop(key) for key in Header._fields if key in rest})
    return Cluster(name, path=path, header=header, **rest)


@takes(type="string", pattern=r"^[^\s/]+/[^\s/]+$")
def pool(raw: Any) -> str:
    """A pool, ``provisioner/worker-type``."""
    value = line(raw)
    if not _POOL.fullmatch(value):
        raise Fault(f"{value!r} is no pool", "write provisioner/worker-type")
    return value


@takes(anyOf=[{"enum": list(SCHEDULERS)}, {"type": "string", "pattern": NAME}])
def _scheduler(raw: Any) -> str:
    """The name of one of ours, else of one that a package registers, which is not loaded here."""
    value = a_name(raw)
    if value not in SCHEDULERS:
        from taskgraph_workers import schedulers

        known = schedulers.names()
        if value not in known:
            raise Fault(f"there is no scheduler {value!r}", did_you_mean(value, known))
    return value


@takes(anyOf=[{"type": "integer", "minimum": 1}, {"const": "auto"}])
def _number(raw: Any) -> int | None:
    if raw == "auto":
        return None
    if isinstance(raw, str):
        raise Fault(f"must be a number of workers or auto, not {said(raw)}")
    return int(count(1)(raw))


_words = some_of(line, "must be a command, not an empty list")
_command = formed(
    lambda raw: line(raw) if isinstance(raw, str) else _words(raw), Either((line, _words))
)
