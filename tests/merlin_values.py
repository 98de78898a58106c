"""Specs as values, for what comes after reading: each with what a test is about, and no more."""

from __future__ import annotations

from typing import Any

from taskgraph_workers.errors import Problem
from taskgraph_workers.launch.merlin.model import Batch, Spec, Step, Worker
from taskgraph_workers.launch.model import Ask, Demand


def a_step(name: str, queue: str = "merlin", **fields: Any) -> Step:
    """A step; what ``Demand`` knows goes there, the rest is the step's own."""
    of_demand = {key: fields.pop(key) for key in tuple(fields) if key in DEMAND}
    fields["parameters"] = frozenset(fields.get("parameters", ()))
    return Step(name, Demand(name, **of_demand), queue, **fields)


DEMAND = {"nodes", "cores", "gpus", "memory_mib", "launcher", "walltime_s", "written_nodes"}


def a_worker(name: str, *steps: str, **fields: Any) -> Worker:
    return Worker(name, steps=steps or ("all",), **fields)


def a_spec(*parts: Step | Worker, **fields: Any) -> Spec:
    """A spec of these steps and workers, in their order."""
    steps = tuple(part for part in parts if isinstance(part, Step))
    workers = tuple(part for part in parts if isinstance(part, Worker))
    values = {"file": "spec.yaml", "text": "", "name": "study", "batch": Batch()}
    return Spec(steps=steps, workers=workers or None, **{**values, **fields})


def told(problems: tuple[Problem, ...] | Ask) -> str:
    """All that is said, as people see it."""
    found = problems.notes if isinstance(problems, Ask) else problems
    return "\n".join(map(str, found))
