"""The target of a decision task that starts a training (.cron.yml)."""

from __future__ import annotations

from typing import Any


def register() -> None:
    """Make the target known to Taskgraph."""
    from taskgraph.target_tasks import register_target_task

    register_target_task("train")(train)


def train(full_task_graph: Any, parameters: Any, graph_config: Any) -> list[str]:
    """All tasks of the pipeline, which run on nothing but somebody's wish."""
    del parameters, graph_config
    return [
        label
        for label, task in full_task_graph.tasks.items()
        if "action" in task.attributes.get("run_on_tasks_for", ())
    ]
