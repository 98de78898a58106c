"""What ``register()`` does in a process: put the transforms into Taskgraph's own sequences.

Taskgraph calls it once per process, not once per graph configuration, so no placement depends on
the configuration it is called with: each transform looks at the one it is given. (Graphs that we
make ourselves start from it, see :mod:`.registered`.) All of Taskgraph is imported inside, since
``taskgraph --diff`` loads its modules anew and calls this again.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from taskgraph_workers.config.load import misspelled
from taskgraph_workers.config.locate import Source
from taskgraph_workers.config.unread import content_of
from taskgraph_workers.errors import Problem, WorkersError
from taskgraph_workers.graph.errors import refuse
from taskgraph_workers.graph.parameters import extend_parameters
from taskgraph_workers.graph.registered import remember
from taskgraph_workers.graph.run import config_of, kinds_of

logger = logging.getLogger(__name__)


def register(graph_config: Any) -> None:
    """See :func:`taskgraph_workers.register`."""
    _hook_in()
    remember(graph_config)
    if "workers-config" in graph_config:
        extend_parameters()
    else:
        _warn_of_near_miss(graph_config)
    try:
        config = config_of(graph_config, kinds_of(graph_config))
    except WorkersError as error:
        refuse(error.problems)
    if config is not None and config.profiles:
        from taskgraph_workers.graph.actions import register_actions

        register_actions(graph_config)


def _warn_of_near_miss(graph_config: Any) -> None:
    """Nothing is changed without our key, so somebody who misspelled it would see nothing."""
    file = os.path.join(graph_config.root_dir, "config.yml")
    missed = misspelled(graph_config._config, Source(file, content_of(file)))
    if missed is not None:
        logger.warning("workers-config: %s", missed)


def _hook_in() -> None:
    from taskgraph import morph
    from taskgraph.transforms import run, task
    from taskgraph.util.verify import verifications

    from taskgraph_workers.graph import artifacts, checks, transforms

    if checks.move_index_tasks in morph.registered_morphs:
        return
    # There is no public way to the front of a sequence (taskgraph issue 492); the list has been
    # there, under this name, from Taskgraph 1 to the newest.
    if not all(isinstance(getattr(m.transforms, "_transforms", None), list) for m in (run, task)):
        refuse([_unknown_taskgraph()])
    run.transforms._transforms.insert(0, transforms.before_run)
    run.transforms._transforms.append(transforms.after_run)
    task.transforms._transforms.insert(0, transforms.place)
    morph.register_morph(checks.move_index_tasks)
    morph.register_morph(artifacts.write_plan)
    verifications.add("full_task_set")(checks.warn)


def _unknown_taskgraph() -> Problem:
    return Problem(
        "this Taskgraph keeps its transforms in a way that taskgraph-workers does not know",
        hint="use a version that the README names, or name "
        "taskgraph_workers.transforms:transforms in each kind.yml",
    )
