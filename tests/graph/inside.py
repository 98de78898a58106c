"""Placement inside this process: a real graph configuration, and the transforms called by hand."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taskgraph.config import load_graph_config
from taskgraph.transforms.base import TransformConfig

from tests.graph.project import ALIASES, PARAMETERS, Project

Task = dict[str, Any]


def graph_config(folder: Path, workers_config: Any, aliases: Mapping[str, Any] = ALIASES) -> Any:
    """What Taskgraph makes of a project's config.yml."""
    project = Project(folder)
    project.config(workers_config, aliases)
    project.kind("train", {})
    return load_graph_config(str(project.root))


def transform_config(graph: Any, kind: str = "train", **parameters: Any) -> TransformConfig:
    """What the transforms of one kind are given."""
    params = {**PARAMETERS, **parameters}
    return TransformConfig(kind, "", {}, params, {}, graph, write_artifacts=False)


def put_through(step: Any, config: TransformConfig, *tasks: Task) -> list[Task]:
    """What comes out of a transform for copies of these tasks."""
    return list(step(config, [copy.deepcopy(task) for task in tasks]))
