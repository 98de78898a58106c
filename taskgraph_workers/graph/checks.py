"""What is looked at once the whole graph is there: warnings, and tasks that a morph adds.

Verifications vanish with ``decision --no-verify``; so nothing that a run needs hangs on them.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from taskgraph_workers.detect import Detect
from taskgraph_workers.errors import Problem, WorkersError
from taskgraph_workers.graph.errors import refuse
from taskgraph_workers.graph.run import KindRun, config_of, kinds_folder, kinds_of
from taskgraph_workers.model import Choice, Config, Placement
from taskgraph_workers.resolve import task_env

logger = logging.getLogger(__name__)

#: The alias that Taskgraph's index morph asks for by itself, and its tasks' kind (taskgraph.morph).
INDEX_ALIAS = "misc"


def warn(
    task: Any, taskgraph: Any, scratch_pad: Any, graph_config: Any, parameters: Mapping[str, Any]
) -> None:
    """A verification of the full task set: log each warning once."""
    del scratch_pad
    if task is None and config_of(graph_config) is not None:
        for problem in dict.fromkeys(warnings(taskgraph, graph_config, parameters)):
            logger.warning("workers-config: %s", problem)


def warnings(taskgraph: Any, graph_config: Any, parameters: Mapping[str, Any]) -> Iterator[Problem]:
    """What a user should know of a full task set.

    Profiles at a level that is not theirs, and raw tasks that the choice would have moved, had they
    gone through Taskgraph's transforms.
    """
    config = config_of(graph_config)
    if config is None:
        return
    limited = any(profile.levels is not None for profile in config.profiles.values())
    kinds = sorted({task.kind for task in taskgraph.tasks.values()})
    raw = {kind for kind in kinds if not is_placed(graph_config, kind)}
    for kind in kinds if limited else sorted(raw):
        try:
            run = KindRun.of(graph_config, parameters, kind)
        except WorkersError as error:
            # A kind that is placed was refused for this; of another one it is worth knowing.
            yield from error.problems
            continue
        assert run is not None  # there is a configuration
        problem = run.level_problem()
        if problem is not None:
            yield run.located(problem)
        if kind in raw:
            yield from _bypassing(run, _pools(taskgraph, kind))


def _pools(taskgraph: Any, kind: str) -> Counter[str]:
    """How many tasks of a kind each pool has."""
    tasks = (task.task for task in taskgraph.tasks.values() if task.kind == kind)
    return Counter(f"{task.get('provisionerId')}/{task.get('workerType')}" for task in tasks)


def _as_written(run: KindRun) -> dict[str, list[str]]:
    """The aliases that lead to each pool, without any choice."""
    plain = KindRun(Config(aliases=run.config.aliases), run.context, Choice())
    found: dict[str, list[str]] = {}
    for name in run.config.aliases:
        with contextlib.suppress(WorkersError):  # a pattern for a key: no name of its own
            found.setdefault(plain.place(name).pool, []).append(name)
    return found


def _bypassing(run: KindRun, pools: Mapping[str, int]) -> Iterator[Problem]:
    written = {pool: names for pool, names in _as_written(run).items() if pool in pools}
    for pool, target in sorted(dict(_moves(run, written)).items()):
        yield Problem(
            f"kind {run.context.kind!r} does not go through the `run` and `task` transforms: "
            f"{pools[pool]} of its tasks stay on {pool}, which the choice moves to {target}",
            hint="name taskgraph_workers.transforms:transforms among its transforms, "
            "or set the pool where the kind does",
        )


def _moves(run: KindRun, aliases: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    """From which of these pools the choice sends an alias to which other one."""
    for pool, names in aliases.items():
        for name in names:
            with contextlib.suppress(WorkersError):
                target = run.place(name).pool
                if target != pool:
                    yield pool, target


def is_placed(graph_config: Any, kind: str) -> bool:
    """Whether a kind's tasks go through our transforms, by its kind.yml."""
    from taskgraph.util.yaml import load_yaml

    file = os.path.join(kinds_folder(graph_config), kind, "kind.yml")
    if not _may_name_a_loader(file):
        return True
    config = load_yaml(file)
    if config.get("loader", "taskgraph.loader.default:loader") == "taskgraph.loader.default:loader":
        return True
    return _names_us(config)


def unregistered(graph_config: Any) -> Problem | None:
    """What is wrong where there is a configuration, and nothing of ours takes part in a run."""
    from taskgraph.transforms import run, task
    from taskgraph.util.yaml import load_yaml

    from taskgraph_workers.graph.transforms import place

    config = config_of(graph_config)
    if config is None or any(_holds(each.transforms, place) for each in (run, task)):
        return None
    folder = kinds_folder(graph_config)
    for kind in kinds_of(graph_config):
        with contextlib.suppress(Exception):  # a kind that can't be loaded is told as such
            if _names_us(load_yaml(os.path.join(folder, kind, "kind.yml"))):
                return None
    own = graph_config["taskgraph"].get("register")
    problem = Problem(
        "nothing registers taskgraph-workers, so no task of this project is placed by it",
        ("taskgraph", "register") if own else ("taskgraph",),
        f"call taskgraph_workers.register(graph_config) at the end of {own}"
        if own
        else "add register: taskgraph_workers:register",
    )
    there, source = config.trace.place(problem.path, {})
    return problem._replace(file=source.shown, line=there.line, column=there.column)


def _names_us(kind: Mapping[str, Any]) -> bool:
    """Whether ours is among the transforms that a kind.yml names, or inside of one."""
    from taskgraph.util.python_path import find_object

    from taskgraph_workers.graph.transforms import place

    said = kind.get("transforms") or ()
    names = (f"{each}:transforms" if ":" not in each else each for each in said)
    return any(_holds(find_object(each), place) for each in names)


def _may_name_a_loader(file: str) -> bool:
    """Whether the word is in a kind.yml at all: most kinds have the default one, and are long."""
    with open(file, "rb") as text:
        return b"loader" in text.read()


def _holds(transform: Any, wanted: Any) -> bool:
    inner = getattr(transform, "_transforms", ())
    return transform is wanted or any(_holds(each, wanted) for each in inner)


def move_index_tasks(
    taskgraph: Any, label_to_taskid: Any, parameters: Mapping[str, Any], graph_config: Any
) -> tuple[Any, Any]:
    """A morph: place the index tasks that Taskgraph's own morph added.

    No transform sees them; the alias ``misc`` alone decides where they go. Ends the run where it
    is sent to an implementation that can't run them.
    """
    added = [t for t in taskgraph.tasks.values() if t.kind == INDEX_ALIAS and _indexes(t)]
    try:
        placement = _index_placement(graph_config, parameters) if added else None
    except WorkersError as error:
        refuse(error.problems)
    if placement is not None:
        for task in added:
            task.task["provisionerId"] = placement.fields["provisioner"].value
            task.task["workerType"] = placement.fields["worker-type"].value
            env, _ = task_env(placement, task.task["payload"]["env"])
            # Their program is Taskgraph's own, and counts no GPUs.
            told = {name: value for name, value in env.items() if not isinstance(value, Detect)}
            task.task["payload"]["env"] = told
    return taskgraph, label_to_taskid


def _indexes(task: Any) -> bool:
    return bool(task.label.startswith("index-task-"))


def _index_placement(graph_config: Any, parameters: Mapping[str, Any]) -> Placement | None:
    run = KindRun.of(graph_config, parameters, INDEX_ALIAS)
    if run is None:
        return None
    placement = run.place(INDEX_ALIAS)
    if placement.silent:
        return None
    if placement.implementation != "docker-worker":
        hint = f"leave {INDEX_ALIAS!r} where it is: {INDEX_ALIAS}: {INDEX_ALIAS}"
        problem = Problem(
            f"index tasks are made for docker-worker, and {INDEX_ALIAS!r} is placed on "
            f"{placement.pool}, which is {placement.implementation}",
            placement.fields["implementation"].path,
            hint,
        )
        raise WorkersError(run.located(problem))
    return placement
