"""The transforms: at the head and the end of Taskgraph's ``run``, and at the head of ``task``.

Where ``workers-config`` says nothing they hand the tasks on as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taskgraph_workers.graph.placer import Placer, Task


def before_run(config: Any, tasks: Iterable[Task]) -> Iterable[Task]:
    """At the head of ``run``, which looks the implementation up by the worker name."""
    placer = Placer.of(config)
    return tasks if placer is None else placer.before_run(tasks)


def after_run(config: Any, tasks: Iterable[Task]) -> Iterable[Task]:
    """At the end of ``run``: a project's transforms before ``task`` see the asked name."""
    placer = Placer.of(config)
    return tasks if placer is None else placer.after_run(tasks)


def place(config: Any, tasks: Iterable[Task]) -> Iterable[Task]:
    """At the head of ``task``, or in a sequence of the project's own: everything."""
    placer = Placer.of(config)
    return tasks if placer is None else placer.place(tasks)
