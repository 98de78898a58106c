"""What differs between two graphs, task by task: what moves, what it is told, what it takes.

Pure: in go two mappings from label to task, as ``Task.to_json()`` gives it, out comes one frozen
value. Nothing here knows which graph was made how, and nothing imports Taskgraph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from taskgraph_workers.detect import Detect, read_prelude
from taskgraph_workers.errors import Path
from taskgraph_workers.implementations import Unwrappable, preludes_in, put_before

#: A task as ``taskgraph.task.Task.to_json()`` gives it.
TaskJson = Mapping[str, Any]

#: A value of a task's env: text, a reference of Taskgraph's, what its prelude finds, or nothing.
EnvValue = Union[None, str, Mapping[str, str], Detect]

# What `Where` and `Move.env` tell.
_POOL = frozenset({("task", "provisionerId"), ("task", "workerType"), ("task", "taskQueueId")})
_IMPLEMENTATION = frozenset({("task", "tags", "worker-implementation")})
# Lists that Taskgraph and the Queue read as sets. Kinds are loaded in parallel, so the first comes
# in the order in which they happened to be ready.
_SETS = frozenset(
    {
        ("soft_dependencies",),
        ("if_dependencies",),
        ("task", "scopes"),
        ("task", "routes"),
    }
)
_ENV = ("task", "payload", "env")
_COMMAND = ("task", "payload", "command")


@dataclass(frozen=True, order=True)
class Where:
    """Where a task runs: ``provisioner/worker-type``, and the implementation if its tags tell."""

    pool: str
    implementation: str | None


@dataclass(frozen=True)
class Move:
    """A task that both graphs have, and whose definition differs.

    ``env`` and ``other`` hold (before, after), None for what is not there. ``other`` goes by key
    path in the task's JSON, and has what ``before``, ``after`` and ``env`` do not tell.
    """

    label: str
    kind: str
    before: Where
    after: Where
    env: Mapping[str, tuple[EnvValue, EnvValue]] = field(default_factory=dict)
    other: Mapping[Path, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def elsewhere(self) -> bool:
        """Whether it runs in another pool, or under another implementation."""
        return self.before != self.after

    @property
    def runs_otherwise(self) -> bool:
        """Whether it runs elsewhere, or anything that its worker is told is different."""
        payload = any(path[:2] == ("task", "payload") for path in self.other)
        return self.elsewhere or bool(self.env) or payload


@dataclass(frozen=True)
class Comparison:
    """Two graphs, compared. Everything is sorted; labels are those of tasks.

    ``scopes`` are what creating the tasks of ``moves`` and ``added`` takes, as they are after;
    ``new_scopes`` those of them that creating the graph before took for no task.
    """

    moves: tuple[Move, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    new_pools: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    new_scopes: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether anything at all is different."""
        return bool(self.moves or self.added or self.removed)


def compare(
    before: Mapping[str, TaskJson], after: Mapping[str, TaskJson], scheduler_id: str = "-"
) -> Comparison:
    """What becomes of each task; every one whose definition differs in any way is in ``moves``.

    ``scheduler_id`` is what Taskgraph gives tasks when it creates them (taskgraph.create).
    """
    both = sorted(before.keys() & after.keys())
    moves = tuple(
        _move(label, before[label], after[label])
        for label in both
        if _differ(before[label], after[label])
    )
    added = tuple(sorted(after.keys() - before.keys()))
    touched = [*(move.label for move in moves), *added]
    scopes = {scope for label in touched for scope in scopes_for(after[label], scheduler_id)}
    held = {scope for task in before.values() for scope in scopes_for(task, scheduler_id)}
    pools = {where(task).pool for task in after.values()}
    return Comparison(
        moves=moves,
        added=added,
        removed=tuple(sorted(before.keys() - after.keys())),
        unchanged=len(both) - len(moves),
        new_pools=tuple(sorted(pools - {where(task).pool for task in before.values()})),
        scopes=tuple(sorted(scopes)),
        new_scopes=tuple(sorted(scopes - held)),
    )


def where(task: TaskJson) -> Where:
    """Where a task runs."""
    definition = task["task"]
    pool = definition.get("taskQueueId")
    if pool is None:
        pool = f"{definition.get('provisionerId', '')}/{definition.get('workerType', '')}"
    return Where(pool, (definition.get("tags") or {}).get("worker-implementation"))


def scopes_for(task: TaskJson, scheduler_id: str = "-") -> Iterator[str]:
    """What Taskcluster's Queue wants of whoever creates this task (createTask, Taskcluster 106).

    A scope for a higher priority is as good. The defaults are the Queue's.
    """
    definition = task["task"]
    yield f"queue:create-task:{definition.get('priority') or 'lowest'}:{where(task).pool}"
    yield f"queue:create-task:project:{definition.get('projectId') or 'none'}"
    yield f"queue:scheduler-id:{definition.get('schedulerId') or scheduler_id}"
    for route in definition.get("routes") or ():
        yield f"queue:route:{_text(route)}"
    for scope in definition.get("scopes") or ():
        yield _text(scope)


def _text(value: Any) -> str:
    """A text, or the one inside a reference (``{"task-reference": ...}``)."""
    if isinstance(value, Mapping):
        return " ".join(map(str, value.values()))
    return str(value)


def _move(label: str, before: TaskJson, after: TaskJson) -> Move:
    envs = env_of(before), env_of(after)
    names = [*envs[0], *(name for name in envs[1] if name not in envs[0])]
    env = {name: (envs[0].get(name), envs[1].get(name)) for name in sorted(names)}
    places = where(before), where(after)
    # taskQueueId and the other two may say the same pool in different ways.
    told = _IMPLEMENTATION | (_POOL if places[0].pool != places[1].pool else frozenset())
    if bare_command(before) == bare_command(after):
        told |= {_COMMAND}
    return Move(
        label,
        str(after.get("kind", "")),
        *places,
        {name: pair for name, pair in env.items() if pair[0] != pair[1]},
        dict(_differences(before, after, (), told)),
    )


def _differ(before: TaskJson, after: TaskJson) -> bool:
    """Whether a task's definition differs in any way that means something."""
    return before != after and _settled(before) != _settled(after)


def _settled(task: TaskJson) -> dict[str, Any]:
    """A task whose sets come in one order."""
    settled = {**task, "task": dict(task["task"])}
    for *outer, key in _SETS:
        holder = settled["task"] if outer else settled
        if holder.get(key):
            holder[key] = _in_order(holder[key])
    return settled


def _differences(
    before: Any, after: Any, path: Path, told: frozenset[Path]
) -> Iterator[tuple[Path, tuple[Any, Any]]]:
    """Each key path where two values differ, and is not told already; a list is one value."""
    if before == after or path in told or _same_set(path, before, after):
        return
    if path == _ENV and _is_env(before) and _is_env(after):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys(), key=str):
            yield from _differences(before.get(key), after.get(key), (*path, key), told)
    else:
        yield path, (before, after)


def _same_set(path: Path, before: Any, after: Any) -> bool:
    """Whether two lists hold the same, where order means nothing."""
    return path in _SETS and _in_order(before) == _in_order(after)


def _in_order(values: Any) -> list[Any]:
    return sorted(values or (), key=repr)


def _is_env(value: Any) -> bool:
    return value is None or isinstance(value, Mapping)


def env_of(task: TaskJson) -> dict[str, EnvValue]:
    """A task's env, with what its prelude finds on the machine."""
    payload = task["task"].get("payload") or {}
    env = payload.get("env")
    found: dict[str, EnvValue] = dict(env) if isinstance(env, Mapping) else {}
    for text in preludes_in(payload.get("command")):
        found.update(read_prelude(text))
    return found


def bare_command(task: TaskJson) -> Any:
    """A task's command without a prelude."""
    definition = task["task"]
    command = (definition.get("payload") or {}).get("command")
    tags = definition.get("tags") or {}
    try:
        return put_before(str(tags.get("worker-implementation")), str(tags.get("os")), command, "")
    except Unwrappable:
        return command
