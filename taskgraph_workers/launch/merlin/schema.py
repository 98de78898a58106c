"""Which keys a spec has, which of them are ours, and what Merlin does with all others: nothing.

The keys are those of Merlin 1.13: ``spec/merlinspec.json``, ``spec/all_keys.py``, and what
``study/batch.py`` and ``study/step.py`` look up besides. Merlin's own schema lets any other key
pass without a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from taskgraph_workers.errors import Path, did_you_mean, said, unglued
from taskgraph_workers.launch.merlin.document import Document

TOP = frozenset({"description", "batch", "env", "study", "global.parameters", "merlin", "user"})
ENV = frozenset({"variables", "labels", "sources", "dependencies"})
STEP = frozenset({"name", "description", "run"})
PARAMETER = frozenset({"values", "label", "name"})
MERLIN = frozenset({"resources", "samples"})
RESOURCES = frozenset({"task_server", "overlap", "workers"})
SAMPLES = frozenset({"generate", "level_max_dirs", "file", "column_labels"})
GENERATE = frozenset({"cmd"})

#: What Merlin reads of a batch block, as text (an empty one is no value).
BATCH_TEXTS = (
    "type",
    "queue",
    "bank",
    "shell",
    "flux_path",
    "flux_start_opts",
    "launch_pre",
    "launch_args",
    "worker_launch",
)
#: What we read of it besides, for the header of the script.
BATCH_OURS = ("name", "output", "reservation", "qos", "constraint")
BATCH = frozenset(
    {*BATCH_TEXTS, *BATCH_OURS, "nodes", "walltime", "dry_run", "flux_exec", "flux_exec_workers"}
)
WORKER = frozenset({"steps", "nodes", "batch", "args", "machines", "number"})
RUN = frozenset(
    {
        *("cmd", "restart", "task_queue", "shell", "max_retries", "retry_delay", "depends"),
        *("nodes", "procs", "cores per task", "gpus per task", "gpus", "cores"),
        *("batch", "slurm", "lsf", "flux", "bind", "bind gpus", "num resource set"),
        *("launch_distribution", "launch distribution", "exit_on_error", "walltime", "pre", "post"),
        *("reservation", "exclusive", "nested", "priority", "qos"),
        *("tasks per rs", "rs per node", "cpus per rs"),
    }
)


def mapping(document: Document, value: object, path: Path) -> dict[str, Any]:
    """A value that has to be a mapping, with its keys as text; nothing where there is none."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return {str(key): each for key, each in value.items()}
    document.wrong(f"must be a mapping, not {said(value)}", path)
    return {}


def unknown(
    document: Document, value: dict[str, Any], path: Path, known: frozenset[str], what: str
) -> None:
    """Warn of every key that Merlin drops since it doesn't know it."""
    for key, fault, hint in _dropped(value, known, what):
        document.warn(fault, (*path, key), hint)


def refused(
    document: Document, value: dict[str, Any], path: Path, known: frozenset[str], what: str
) -> None:
    """Refuse keys in blocks in which Merlin's own test specs call every other key a fault."""
    for key, fault, hint in _dropped(value, known, what):
        document.error(fault, (*path, key), hint)


def _dropped(
    value: dict[str, Any], known: frozenset[str], what: str
) -> Iterator[tuple[str, str, str]]:
    """Each key that Merlin doesn't know, with what is said of it, and a hint."""
    for key, each in value.items():
        if key not in known:
            fault = f"{key!r} is no key of {what}: Merlin drops it without a word"
            yield key, fault, unglued(key, each) or did_you_mean(key, known)
