"""A graph, made in this process, by Taskgraph's own API: for a root, parameters and a choice.

Several may be made one after another. What ``register()`` does happens once per process, which is
all it needs (see :mod:`taskgraph_workers.graph.register`); what it did to the configuration holds
for each (:mod:`taskgraph_workers.graph.registered`). A process has one root, as in Taskgraph.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from taskgraph_workers.config import read_selection
from taskgraph_workers.errors import ConfigError, Problem, WorkersError
from taskgraph_workers.graph.checks import unregistered
from taskgraph_workers.graph.compare import TaskJson
from taskgraph_workers.graph.errors import Refused
from taskgraph_workers.graph.parameters import PARAMETER, no_variable, without_choice
from taskgraph_workers.graph.registered import as_registered
from taskgraph_workers.graph.run import KindRun, config_of, kinds_of

logger = logging.getLogger(__name__)

#: The graph that ``--target`` stands for, and the one without it.
TARGET, FULL = "target_task_graph", "full_task_graph"

# Errors of Taskgraph whose text says it all.
_SPEAKING = ("Exception", "SchemaValidationError", "ParameterMismatch")


class GraphError(WorkersError):
    """A graph could not be made; its ``__cause__`` is why, if the message does not say it all."""


@dataclass(frozen=True)
class Wanted:
    """What graph to make.

    ``parameters`` is what ``taskgraph -p`` takes; None for the defaults. ``choice`` (a profile, or
    anything else that the parameter ``workers`` takes) is laid over them as that parameter; None
    leaves it to them, and ``unsaid`` takes away all that they choose. ``said_by`` names the choice
    to people. Taskgraph's verifications are left out unless ``verify``.
    """

    root: str
    parameters: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    choice: Any = None
    unsaid: bool = False
    said_by: str = f"parameter {PARAMETER}"
    which: str = FULL
    verify: bool = True


@dataclass(frozen=True)
class Graph:
    """A graph: its tasks as ``Task.to_json()`` gives them, and what it was made from.

    ``parameters`` are those it was asked for with, before the choice was laid over them.
    ``profiles`` says which profile each kind is placed under (None: under none). ``kinds`` are all
    of the project's. ``scheduler_id`` is what Taskgraph gives the tasks when it creates them.
    """

    tasks: Mapping[str, TaskJson]
    kinds: tuple[str, ...]
    parameters: Mapping[str, Any]
    profiles: Mapping[str, str | None]
    scheduler_id: str


def check(wanted: Wanted) -> tuple[str, ...]:
    """Look at what can be seen without making the graph; returns the names of the kinds.

    Raises WorkersError for a wrong configuration or choice, and for parameters that are no file.
    """
    from taskgraph.config import load_graph_config

    with failing():
        graph_config = load_graph_config(wanted.root)
        kinds = kinds_of(graph_config)
        _check_choice(graph_config, wanted, kinds)
        check_file(wanted.parameters)
        return kinds


def generate(wanted: Wanted, like: Graph | None = None) -> Graph:
    """Make a graph; with ``like``, from the very parameters of that one (its time, for instance).

    The environment variable for a local look plays no part. What the project prints goes to
    standard error. Raises WorkersError, with each problem, where the configuration or the choice
    is wrong, and GraphError where anything else fails; its ``__cause__`` is what Taskgraph, or the
    project, raised, and None where the message says it all.
    """
    return generate_from(wanted, {} if like is None else like.parameters)


def generate_from(wanted: Wanted, parameters: Mapping[str, Any]) -> Graph:
    """As :func:`generate`, from these parameters; where there are none, from those it names."""
    with failing(), no_variable(), redirect_stdout(sys.stderr):
        return _generate(wanted, parameters)


@contextmanager
def failing() -> Iterator[None]:
    """Raise WorkersErrors as they are, and what anything else is as a GraphError."""
    try:
        yield
    except Refused as refused:
        raise GraphError(Problem(str(refused))) from None
    except WorkersError:
        raise
    except (Exception, SystemExit) as error:
        raise GraphError(Problem(describe(error))) from error


def _generate(wanted: Wanted, said: Mapping[str, Any]) -> Graph:
    from taskgraph.generator import TaskGraphGenerator

    check_file(wanted.parameters)
    source = _Parameters(wanted, said)
    generator = TaskGraphGenerator(
        root_dir=wanted.root, parameters=source, enable_verifications=wanted.verify
    )
    graph_config = generator.graph_config
    tasks = {task.label: task.to_json() for task in getattr(generator, wanted.which)}
    used = generator.parameters
    missing = unregistered(graph_config)
    if missing is not None:
        logger.warning("workers-config: %s", missing)
    return Graph(
        tasks=tasks,
        kinds=kinds_of(graph_config),
        parameters=source.said,
        profiles=profiles_of(graph_config, used, {task["kind"] for task in tasks.values()}),
        scheduler_id=f"{graph_config['trust-domain']}-level-{used['level']}",
    )


class _Parameters:
    """Taskgraph's parameters for a graph; ``said`` are those without the choice laid over them."""

    def __init__(self, wanted: Wanted, said: Mapping[str, Any]) -> None:
        self.wanted = wanted
        self.said = said

    def __call__(self, graph_config: Any) -> Any:
        from taskgraph.parameters import Parameters, parameters_loader

        wanted = self.wanted
        as_registered(graph_config)  # called after register(), before anything is made of it
        if not self.said:
            load = parameters_loader(
                wanted.parameters, strict=False, overrides=dict(wanted.overrides)
            )
            self.said = dict(load(graph_config))
        # Taskgraph itself changes a list in here (`filters`).
        used = deepcopy(dict(self.said))
        if wanted.unsaid:
            used = without_choice(used, config_of(graph_config))
        if wanted.choice is not None:
            used[PARAMETER] = wanted.choice
        parameters = Parameters(strict=False, repo_root=graph_config.vcs_root, **used)
        parameters.check()
        return parameters


def _check_choice(graph_config: Any, wanted: Wanted, kinds: tuple[str, ...]) -> None:
    """Refuse a wrong choice now, in the words of whoever made it. Raises WorkersError."""
    config = config_of(graph_config)
    if wanted.choice is None:
        return
    if config is None:
        file = os.path.join(wanted.root, "config.yml")
        hint = "add one, or leave the choice out"
        raise ConfigError(
            Problem(
                "there is no workers-config, so there is nothing to choose", hint=hint, file=file
            )
        )
    read_selection(wanted.choice, wanted.said_by, (wanted.said_by,), config, kinds)


def check_file(spec: str | None) -> None:
    """Raises WorkersError for parameters that are no file: Taskgraph takes it for a URL."""
    if spec and not os.path.exists(spec) and "=" not in spec and "://" not in spec:
        raise WorkersError(Problem("there is no such file of parameters", file=spec))


def profiles_of(
    graph_config: Any, parameters: Mapping[str, Any], kinds: Iterable[str]
) -> dict[str, str | None]:
    """Which profile each kind is placed under, None for none. Raises WorkersError."""
    runs = {kind: KindRun.of(graph_config, parameters, kind) for kind in sorted(kinds)}
    return {kind: None if run is None else run.choice.profile for kind, run in runs.items()}


def describe(error: BaseException) -> str:
    """What went wrong, on one line where the error has one.

    Taskgraph raises many a bare Exception whose text says it all.
    """
    name = type(error).__name__
    text = str(error)
    return text if text and name in _SPEAKING else f"{name}: {text}" if text else name
