"""What a decision task writes down besides: the plan against the default choice.

Written by a morph, which runs in every decision task: verifications vanish with ``--no-verify``.
By then Taskgraph has written the full graph among the artifacts, so that only the graph under the
default choice is left to be made.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from taskgraph_workers.config.environment import inside_task
from taskgraph_workers.graph.parameters import no_variable, without_choice
from taskgraph_workers.graph.run import KindRun, config_of, kinds_of

if TYPE_CHECKING:  # every run loads this module, and few write a plan
    from taskgraph_workers.graph.compare import Comparison
    from taskgraph_workers.graph.plan_json import Profiles

logger = logging.getLogger(__name__)

#: The artifacts are public/workers-plan.json and public/workers-plan.html.
NAME = "workers-plan"

_FULL_GRAPH = "full-task-graph.json"


def write_plan(
    taskgraph: Any, label_to_taskid: Any, parameters: Mapping[str, Any], graph_config: Any
) -> tuple[Any, Any]:
    """A morph that changes no task: in a decision task, write what the choice may change."""
    with only_warned():
        if _is_decision() and _is_wanted(graph_config, parameters):
            _write(graph_config, parameters)
    return taskgraph, label_to_taskid


def write(found: Comparison, before: Profiles, after: Profiles) -> None:
    """Write a plan among the artifacts of this task. ``before`` and ``after`` are by kind."""
    from taskgraph.decision import ARTIFACTS_DIR, write_artifact

    from taskgraph_workers.graph.plan_html import render
    from taskgraph_workers.graph.plan_json import VERSION, as_json

    plan = {"version": VERSION, **as_json(found, before, after)}
    write_artifact(f"{NAME}.json", plan)
    (ARTIFACTS_DIR / f"{NAME}.html").write_text(render(plan), encoding="utf-8")


@contextmanager
def only_warned() -> Iterator[None]:
    """What goes wrong with a plan is a warning: it must not keep any task from being created."""
    try:
        yield
    except Exception as error:  # a graph of the project's own code, and a disk
        logger.warning("workers-config: the plan can't be written: %s", error)


def _is_decision() -> bool:
    """Whether this is a decision task, and not `taskgraph morphed`: it has written its graph."""
    if not inside_task():
        return False
    from taskgraph.decision import ARTIFACTS_DIR

    return bool((ARTIFACTS_DIR / _FULL_GRAPH).is_file())


def _is_wanted(graph_config: Any, parameters: Mapping[str, Any]) -> bool:
    config = config_of(graph_config)
    if config is None or not config.profiles or not config.decision.plan:
        return False
    unsaid = without_choice(parameters, config)
    kinds = kinds_of(graph_config)
    chosen = [_choice(graph_config, parameters, kind) for kind in kinds]
    with no_variable():
        return chosen != [_choice(graph_config, unsaid, kind) for kind in kinds]


def _choice(graph_config: Any, parameters: Mapping[str, Any], kind: str) -> Any:
    """What is chosen, whoever chose it."""
    run = KindRun.of(graph_config, parameters, kind)
    return None if run is None else (run.choice.profile, run.choice.overrides)


def _write(graph_config: Any, parameters: Mapping[str, Any]) -> None:
    from taskgraph.decision import read_artifact

    from taskgraph_workers.graph.compare import compare
    from taskgraph_workers.graph.generate import Wanted, generate_from, profiles_of

    logger.info("making the graph under the default choice, too, for %s", NAME)
    # Verified once is enough, and a project may have switched that off.
    wanted = Wanted(root=root_of(graph_config), unsaid=True, verify=False)
    default = generate_from(wanted, parameters)
    after = read_artifact(_FULL_GRAPH)
    found = compare(as_read(default.tasks), after, default.scheduler_id)
    kinds = {task["kind"] for task in after.values()}
    write(found, default.profiles, profiles_of(graph_config, parameters, kinds))


def root_of(graph_config: Any) -> str:
    """The root as the command was given it, which is what each task's ``metadata.source`` says."""
    return str(os.path.relpath(graph_config.root_dir))


def as_read(tasks: Mapping[str, Any]) -> Any:
    """Tasks as an artifact holds them: a tuple is a list there, and every key a text."""
    from taskgraph.util import json

    read: Any = json.loads(json.dumps(tasks))
    return read
