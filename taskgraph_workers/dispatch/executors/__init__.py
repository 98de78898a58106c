"""What runs requests, found by name.

``local`` is this machine; ``dispatch.executors`` of the configuration names a site's own. Others
add theirs by an entry point of the group ``taskgraph_workers.executors``: something that is called
with a :class:`Setting` and returns an object with all of
:class:`~taskgraph_workers.dispatch.executors.base.Executor`. It is looked up only for a name that
is none of the others.

Supervisors of jobs load this, too, so it imports little.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from taskgraph_workers.dispatch.executors.base import Executor
    from taskgraph_workers.errors import Problem
    from taskgraph_workers.model import Dispatch

#: Where others register theirs.
GROUP = "taskgraph_workers.executors"


@dataclass(frozen=True)
class Setting:
    """What an executor is made of: the configuration, the folder of the state, and the world."""

    dispatch: Dispatch
    state: str
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Callable[[], float] = time.time


def find(name: str, setting: Setting) -> Executor:
    """The executor of this name.

    Raises :class:`~taskgraph_workers.errors.ConfigError` where nobody has one, with what there is.
    """
    from taskgraph_workers.model import LOCAL

    if name == LOCAL:
        from taskgraph_workers.dispatch.executors.local import LocalExecutor

        return LocalExecutor(setting.state, setting.dispatch, setting.environ, setting.clock)
    commands = setting.dispatch.executors.get(name)
    if commands is not None:
        from taskgraph_workers.dispatch.executors.command import CommandExecutor

        return CommandExecutor(commands, setting.state, setting.environ, setting.clock)
    return _foreign(name, setting)


def problems(dispatch: Dispatch) -> list[Problem]:
    """What is wrong with the executor that is configured: nothing, or that nobody has it.

    One of another package is not made here.
    """
    from taskgraph_workers.model import LOCAL

    name = dispatch.executor
    if name == LOCAL or name in dispatch.executors:
        return []
    from taskgraph_workers.offered import offered

    points = [point.name for point in offered(GROUP)]
    return [] if name in points else [_unknown(name, dispatch, points)]


def _unknown(name: str, dispatch: Dispatch, points: Iterable[str]) -> Problem:
    from taskgraph_workers.errors import Problem, did_you_mean
    from taskgraph_workers.model import LOCAL

    hint = did_you_mean(name, (LOCAL, *dispatch.executors, *points))
    path = (*dispatch.path, "executor") if dispatch.executor == name else ()
    return Problem(f"there is no executor {name!r}", path, hint)


def _foreign(name: str, setting: Setting) -> Executor:
    from taskgraph_workers.errors import ConfigError
    from taskgraph_workers.offered import load, offered

    points = {point.name: point for point in offered(GROUP)}
    if name not in points:
        raise ConfigError(_unknown(name, setting.dispatch, points))
    executor: Executor = load("executor", points[name], setting, error=ConfigError)
    return executor
