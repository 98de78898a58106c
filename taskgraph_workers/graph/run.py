"""One run of Taskgraph, as placement sees it: configuration, parameters, who chose what."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from taskgraph_workers.config import located
from taskgraph_workers.config.environment import inside_task
from taskgraph_workers.config.load import load
from taskgraph_workers.errors import Problem, WorkersError
from taskgraph_workers.graph.names import project_aliases
from taskgraph_workers.graph.parameters import selections
from taskgraph_workers.model import Choice, Config, Context, Placement
from taskgraph_workers.resolve import choose, level_problem, resolve


def config_of(graph_config: Any, kinds: Iterable[str] | None = None) -> Config | None:
    """The configuration of a ``taskgraph.config.GraphConfig``; None where it says nothing.

    ``kinds`` are the project's, to look up those that the configuration names. Raises ConfigError
    with every fault in it.
    """
    if "workers-config" not in graph_config or graph_config["workers-config"] in (None, {}):
        return None
    workers = graph_config["workers"]
    aliases = project_aliases(workers["aliases"])
    data = {**graph_config._config, "workers": {**workers, "aliases": aliases}}
    return load(data, graph_config.root_dir, kinds)


def kinds_folder(graph_config: Any) -> str:
    """The folder of the project's kinds; Taskgraph itself tells it since 15.0.0."""
    return os.path.join(graph_config.root_dir, "kinds")


def kinds_of(graph_config: Any) -> tuple[str, ...]:
    """The names of the project's kinds: the folders that hold a kind.yml."""
    folder = kinds_folder(graph_config)
    try:
        names = os.listdir(folder)
    except OSError:
        return ()
    return tuple(n for n in sorted(names) if os.path.exists(os.path.join(folder, n, "kind.yml")))


@dataclass(frozen=True)
class KindRun:
    """What placement knows while one kind is loaded. ``context`` has the profile of ``choice``."""

    config: Config
    context: Context
    choice: Choice

    def __post_init__(self) -> None:
        """Fill in what the context of a kind takes from its choice."""
        object.__setattr__(self, "context", self.context.under(self.choice))

    @classmethod
    def of(cls, graph_config: Any, params: Mapping[str, Any], kind: str) -> KindRun | None:
        """For one kind of one run; None where the configuration says nothing.

        Raises WorkersError, each problem with its place: where the configuration or the choice is
        wrong, or the profile is not meant for this level and this is a task (in a local look that
        is a warning, see :mod:`taskgraph_workers.graph.checks`).
        """
        config = config_of(graph_config)
        if config is None:
            return None
        context = Context(
            level=str(params["level"]),
            project=params.get("project") or "",
            tasks_for=params.get("tasks_for") or "",
            kind=kind,
            trust_domain=graph_config["trust-domain"],
        )
        try:
            said = selections(config, params, context, partial(kinds_of, graph_config))
            run = cls(config, context, choose(said, kind))
            problem = run.level_problem()
        except WorkersError as error:
            raise WorkersError(*(located(each, config) for each in error.problems)) from None
        if problem is not None and inside_task():
            raise WorkersError(run.located(problem))
        return run

    def level_problem(self) -> Problem | None:
        """What is wrong with using the chosen profile at this level, if anything."""
        return level_problem(self.config, self.choice, self.context.level)

    def place(self, name: str) -> Placement:
        """Where this kind's tasks that ask for a name run. Raises PlacementError."""
        return resolve(self.config, name, self.choice, self.context)

    def located(self, problem: Problem) -> Problem:
        """The problem, with the file and line where it stands."""
        return located(problem, self.config)
