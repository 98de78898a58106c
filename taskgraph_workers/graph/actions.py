"""The action "run on other workers": the graph made again with another choice, and tasks from it.

Registered once per process, as Taskgraph registers; a callback takes everything from the graph
configuration that it is given. Tasks that ran stay as they are: what is created comes from a graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskgraph_workers.config import located, read_selection
from taskgraph_workers.errors import TOP, Problem, WorkersError
from taskgraph_workers.graph import artifacts
from taskgraph_workers.graph.compare import TaskJson, compare, where
from taskgraph_workers.graph.errors import refuse
from taskgraph_workers.graph.generate import Graph, Wanted, generate_from
from taskgraph_workers.graph.parameters import PARAMETER
from taskgraph_workers.graph.profiles import profiles_schema, usable
from taskgraph_workers.graph.registered import as_registered
from taskgraph_workers.graph.request import Request
from taskgraph_workers.graph.run import KindRun, config_of, kinds_of
from taskgraph_workers.model import Change, Config

#: The callbacks: for a task, and for a group.
TASK, GROUP = "run-on-other-workers", "run-group-on-other-workers"

_NO_TASK = "Tasks that ran, or run, stay as they are."
_OF_A_TASK = (
    "Make the graph again with another choice of workers, and create this task from it. " + _NO_TASK
)
_OF_A_GROUP = (
    "Make the graph again with another choice of workers, and create those tasks of this group "
    "from it that are then others, and those between them. Docker images and other cached tasks "
    "are only made again where their kind is named. " + _NO_TASK
)


def register_actions(graph_config: Any) -> None:
    """Offer the action, where there are profiles and the configuration does not switch it off."""
    from taskgraph.actions import registry

    config = config_of(graph_config)
    if config is None or not config.profiles or config.decision.action is None:
        return
    if TASK not in registry.callbacks:
        _register(config, TASK, _OF_A_TASK, _tags(config))
        _register(config, GROUP, _OF_A_GROUP, [])


def _register(config: Config, callback: str, description: str, context: list[Any]) -> None:
    from taskgraph.actions import registry

    action = config.decision.action
    assert action is not None  # register_actions looked
    registry.register_callback_action(
        name=TASK,
        cb_name=callback,
        title="Run on other workers",
        symbol="workers",
        description=description,
        order=action.order,
        context=context,
        permission=action.permission,
        available=lambda parameters: _refusal(config, str(parameters["level"])) is None,
        schema=input_schema,
    )(run_on_other_workers)


def _tags(config: Config) -> list[dict[str, str]]:
    """Tags that tasks of a graph have (taskgraph.transforms.task), and decision tasks have not."""
    tables = [config.aliases, *(each.layer.entries for each in config.profiles.values())]
    entries = [entry for table in tables for entry in table.values()]
    said = [each.fields.get("implementation") for each in entries if isinstance(each, Change)]
    known = sorted({each for each in said if isinstance(each, str)})
    return [{"worker-implementation": each} for each in known]


def _refusal(config: Config | None, level: str) -> Problem | None:
    """Why the action can't be used at all at a level, if so."""
    action = None if config is None else config.decision.action
    if config is None or action is None or not config.profiles:
        return Problem("there is no action to run tasks on other workers")
    path = (*TOP, "decision", "action", "levels")
    if action.levels is not None and level not in action.levels:
        return Problem(f"this action is not for level {level}", path)
    if not usable(config, level):
        return Problem(f"there is no profile for level {level}", (*TOP, "profiles"))
    return None


def input_schema(graph_config: Any) -> dict[str, Any]:
    """What the action asks for, as JSON Schema."""
    kinds = {"type": "string", "enum": list(kinds_of(graph_config))}
    return {
        "type": "object",
        "properties": {
            "profile": profiles_schema(graph_config),
            "kinds": {
                "type": "array",
                "title": "Kinds",
                "description": "Only these kinds go there; the others stay with what was chosen.",
                "items": kinds,
                "uniqueItems": True,
            },
            "workers": {
                "type": "object",
                "title": "Single workers",
                "description": "Worker names, each with what an entry of a profile says. "
                "Stronger than the profile.",
            },
            "downstream": {
                "type": "boolean",
                "title": "Downstream",
                "description": "The tasks of this group that depend on these, too.",
                "default": False,
            },
        },
        "required": ["profile"],
        "additionalProperties": False,
    }


def run_on_other_workers(
    parameters: Any, graph_config: Any, input: Any, task_group_id: str, task_id: str | None
) -> None:
    """The callback of both actions. Ends the run with every problem where it will not."""
    as_registered(graph_config)  # Taskgraph registers one that it loads apart from this
    try:
        order = Order.of(parameters, graph_config, input)
        _create(order, graph_config, task_group_id, task_id)
    except WorkersError as error:
        refuse(error.problems)


@dataclass(frozen=True)
class Order:
    """What to make: the parameters of the graph that is there, the choice, and which tasks."""

    parameters: Any
    choice: Any
    request: Request

    @classmethod
    def of(cls, parameters: Any, graph_config: Any, said: Any) -> Order:
        """From what a person said. Raises WorkersError where the profile is not for this level."""
        config, level = config_of(graph_config), str(parameters["level"])
        problem = _refusal(config, level)
        if problem is not None:
            raise WorkersError(problem if config is None else located(problem, config))
        assert config is not None  # or there had been a problem
        request, kinds = Request.read(said), kinds_of(graph_config)
        choice = request.choice(parameters)
        read_selection(choice, "the action's input", (), config, kinds)
        chosen = {**parameters, PARAMETER: choice}
        for kind in request.kinds or kinds:
            run = KindRun.of(graph_config, chosen, kind)
            problem = None if run is None else run.level_problem()
            if run is not None and problem is not None:
                raise WorkersError(run.located(problem))
        return cls(parameters, choice, request)


def _create(order: Order, graph_config: Any, group_id: str, task_id: str | None) -> None:
    """Create the tasks. Both graphs are made here, so that nothing but the choice differs."""
    from taskgraph.actions.util import create_tasks, fetch_graph_and_labels
    from taskgraph.decision import write_artifact
    from taskgraph.parameters import Parameters
    from taskgraph.taskgraph import TaskGraph

    decision, _, task_ids = fetch_graph_and_labels(
        order.parameters, graph_config, task_group_id=group_id
    )
    root = artifacts.root_of(graph_config)
    before = generate_from(Wanted(root=root), order.parameters)
    after = generate_from(Wanted(root=root, choice=order.choice), order.parameters)
    labels = _labels(order.request, before.tasks, after.tasks, task_ids, task_id)
    _, made = TaskGraph.from_json(after.tasks)
    after_them = made.graph.transitive_closure(labels, reverse=True).nodes
    if order.request.downstream:
        labels |= after_them & task_ids.keys()
    # What lies between two of them is made of other things now; Taskgraph creates it, too.
    labels |= after_them & made.graph.transitive_closure(labels).nodes
    with artifacts.only_warned():
        _write_plan(before, after, labels)
    parameters = Parameters(strict=False, **{**order.parameters, PARAMETER: order.choice})
    write_artifact("parameters.yml", dict(parameters))
    create_tasks(graph_config, labels, made, task_ids, parameters, decision)


def _labels(
    request: Request,
    before: Mapping[str, TaskJson],
    after: Mapping[str, TaskJson],
    task_ids: Mapping[str, str],
    task_id: str | None,
) -> set[str]:
    """The tasks to create. Raises WorkersError where there is none."""
    others = {move.label: move.kind for move in compare(before, after).moves if move.runs_otherwise}
    if task_id is not None:
        return {_label(task_id, after, others)}
    found = {
        label
        for label, kind in others.items()
        if label in task_ids
        and (kind in request.kinds if request.kinds else not _is_cached(after[label]))
    }
    if not found:
        raise WorkersError(Problem("no task of this group would run elsewhere, or otherwise"))
    return found


def _label(task_id: str, after: Mapping[str, TaskJson], others: Mapping[str, str]) -> str:
    """The label of a task, as Taskgraph's own actions find it."""
    from taskgraph.util.taskcluster import get_task_definition

    definition = get_task_definition(task_id)
    label = str(definition["metadata"]["name"])
    if label not in after:
        raise WorkersError(Problem(f"there is no task {label!r} in the graph with this choice"))
    # An earlier action may have had it elsewhere than the decision task would.
    if label not in others and where({"task": definition}).pool == where(after[label]).pool:
        hint = "to run it once more as it is, retrigger it"
        raise WorkersError(Problem(f"task {label!r} is the same with this choice", hint=hint))
    return label


def _is_cached(task: TaskJson) -> bool:
    return bool(task["attributes"].get("cached_task"))


def _write_plan(before: Graph, after: Graph, labels: set[str]) -> None:
    """What becomes of the tasks that are created."""
    was = {label: before.tasks[label] for label in labels if label in before.tasks}
    now = {label: after.tasks[label] for label in labels}
    kinds = {task["kind"] for task in now.values()}
    profiles = (
        {kind: each for kind, each in graph.profiles.items() if kind in kinds}
        for graph in (before, after)
    )
    artifacts.write(compare(was, now, after.scheduler_id), *profiles)
