"""Merlin specs as text, and what reading them gives."""

from __future__ import annotations

import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from taskgraph_workers.launch.merlin.model import Spec, Step
from taskgraph_workers.launch.merlin.read import read_spec
from taskgraph_workers.launch.model import Demand, LaunchError

HEAD = "description: {name: n, description: d}\n"
STUDY = "study:\n- {name: s, description: d, run: {cmd: echo}}\n"


def read(text: str, /, **variables: str) -> Spec:
    """What is read of a spec."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "spec.yaml"
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return read_spec(str(file), variables)


def study(run: str, type: str = "slurm", more: str = "") -> Spec:
    """A spec of one step with this run."""
    inside = textwrap.indent(textwrap.dedent(run).strip(), "    ")
    step = f"study:\n- name: s\n  description: d\n  run:\n{inside}\n"
    return read(f"{HEAD}batch: {{type: {type}}}\n{more}\n{step}")


def step(run: str, type: str = "slurm", more: str = "") -> Step:
    return study(run, type, more).steps[0]


def demand(run: str, type: str = "slurm", more: str = "") -> Demand:
    found = step(run, type, more).demand
    assert found is not None
    return found


def size(run: str, type: str = "slurm", more: str = "") -> tuple[int, int, int]:
    """Nodes, and the cores and GPUs on each."""
    found = demand(run, type, more)
    return found.nodes, found.cores, found.gpus


def notes(spec: Spec) -> list[str]:
    """Each warning: line, path and message."""
    return [line(problem) for problem in spec.notes]


def faults(text: str, /, **variables: str) -> list[str]:
    """Each fault of a spec that is refused, but for its warnings: line, path and message."""
    try:
        read(text, **variables)
    except LaunchError as error:
        return [line(each) for each in error.problems if each.severity == "error"]
    return []


def hints(problems: Any) -> list[str]:
    return [each.hint for each in problems]


def line(problem: Any) -> str:
    path = ".".join(map(str, problem.path))
    return f"{problem.line}: {path}: {problem.message}"
