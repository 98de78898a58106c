"""The rules by which a Queue takes tasks (Taskcluster 106), kept in memory.

test_rules.py holds them against recordings of a real one.
"""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from tests.schemas import DEFINITION, PRIORITIES, SLUG, errors

#: Whoever has it may do all.
ROOT = ("*",)

_DRIFT = timedelta(minutes=15)
_DEFAULTS: dict[str, Any] = {
    "schedulerId": "-",
    "projectId": "none",
    "dependencies": [],
    "requires": "all-completed",
    "routes": [],
    "priority": "lowest",
    "retries": 5,
    "scopes": [],
    "tags": {},
    "extra": {},
}
_TIMES = ("created", "deadline", "expires")


class Refusal(Exception):
    """What a Queue answers when it will not."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.status = status
        self.code = code
        self.message = message


@dataclass
class Group:
    """A task group: all of its tasks have one scheduler."""

    scheduler_id: str
    sealed: bool = False
    tasks: list[str] = field(default_factory=list)


@dataclass
class Queue:
    """Tasks and their groups. `now` is a fixed time; None is the time that it is."""

    now: datetime | None = None
    # A deployment's maxTaskDeadlineDays.
    deadline_days: int = 5
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def create(self, task_id: str, definition: Any, scopes: Iterable[str] = ROOT) -> dict[str, Any]:
        """The status of a task that is there now. Raises Refusal, in the order a Queue does."""
        check_id(task_id)
        check_shape(definition)
        task = normal(task_id, definition)
        require(needed(task), scopes)
        self._check_times(task)
        with self.lock:
            self._join(task)
            held = self.tasks.setdefault(task_id, task)
            if held != task:
                raise Refusal(
                    409,
                    "RequestConflict",
                    f"taskId `{task_id}` already used by another task.\n"
                    "This could be the result of faulty idempotency!",
                )
            self._check_dependencies(task_id, task)
            group = self.groups[task["taskGroupId"]]
            if task_id not in group.tasks:
                group.tasks.append(task_id)
        return self.status(task_id)

    def task(self, task_id: str) -> dict[str, Any]:
        """A task's definition."""
        check_id(task_id)
        if task_id not in self.tasks:
            raise Refusal(
                404, "ResourceNotFound", f"`{task_id}` does not correspond to a task that exists."
            )
        return copy.deepcopy(self.tasks[task_id])

    def status(self, task_id: str) -> dict[str, Any]:
        """A task's status; nothing ever claims one here, so none gets further than pending."""
        task = self.task(task_id)
        waits = bool(task["dependencies"])
        same = (
            *("provisionerId", "workerType", "taskQueueId", "schedulerId", "projectId"),
            *("taskGroupId", "priority", "deadline", "expires"),
        )
        run = {"runId": 0, "state": "pending", "reasonCreated": "scheduled"}
        return {
            "taskId": task_id,
            **{key: task[key] for key in same},
            "retriesLeft": task["retries"],
            "state": "unscheduled" if waits else "pending",
            "runs": [] if waits else [{**run, "scheduled": task["created"]}],
        }

    def group(self, group_id: str) -> Group:
        """A task group."""
        check_id(group_id)
        if group_id not in self.groups:
            raise Refusal(404, "ResourceNotFound", f"No task-group with taskGroupId: `{group_id}`")
        return self.groups[group_id]

    def _check_times(self, task: Mapping[str, Any]) -> None:
        now = self.now or datetime.now(timezone.utc)
        created, deadline, expires = (read_time(task[name]) for name in _TIMES)
        wrong = {
            "`created` cannot be in the past (max 15min drift)": created < now - _DRIFT,
            "`created` cannot be in the future (max 15min drift)": created > now + _DRIFT,
            "`deadline` cannot be later than `created`": deadline < created,
            "`deadline` cannot be in the past": deadline < now,
            f"`deadline` cannot be more than {self.deadline_days} days into the future": (
                deadline > now + timedelta(days=self.deadline_days) + _DRIFT
            ),
            "`expires` cannot be before `deadline`": expires < deadline,
        }
        for message, is_so in wrong.items():
            if is_so:
                raise Refusal(400, "InputError", message)

    def _join(self, task: Mapping[str, Any]) -> None:
        """The group comes into being with its first task, even one that is then refused."""
        group_id = task["taskGroupId"]
        group = self.groups.setdefault(group_id, Group(task["schedulerId"]))
        if group.sealed:
            message = f"Task group `{group_id}` is sealed and does not accept new tasks."
            raise Refusal(409, "RequestConflict", message)
        if group.scheduler_id != task["schedulerId"]:
            raise Refusal(
                409,
                "RequestConflict",
                f"Task group `{group_id}` contains tasks with a schedulerId other\n"
                f"than `{task['schedulerId']}`. All tasks in the same task-group must have\n"
                "the same schedulerId.",
            )

    def _check_dependencies(self, task_id: str, task: Mapping[str, Any]) -> None:
        missing = [each for each in task["dependencies"] if each not in self.tasks]
        if missing:
            del self.tasks[task_id]
            names = "\n".join(f"  * {each}" for each in missing)
            raise Refusal(
                400,
                "InputError",
                f"`task.dependencies` references non-existing tasks:\n{names}\n"
                "All taskIds in `task.dependencies` **must** exist before the task is created.",
            )


def check_id(task_id: str) -> None:
    """Refuse what can be no task id."""
    if not re.fullmatch(SLUG, task_id):
        raise Refusal(
            400,
            "InvalidRequestArguments",
            f"Invalid URL patterns:\nURL parameter 'taskId' given as '{task_id}' must match "
            f"regular expression: '/^{SLUG}$/'",
        )


def check_shape(definition: Any) -> None:
    """Refuse what the schema of a definition does not take."""
    wrong = [
        f"  * data{each.json_path[1:]}: {each.message}" for each in errors(DEFINITION, definition)
    ]
    if not wrong:
        for name in _TIMES:
            try:
                read_time(definition.get(name, "1970-01-01T00:00:00Z"))
            except ValueError:
                wrong.append(f'  * data/{name} must match format "date-time"')
    if wrong:
        message = "\n".join(["", "Schema Validation Failed!", "Errors:", *wrong])
        raise Refusal(400, "InputValidationError", message)
    pool = _pool(definition)
    if pool is None:
        message = "at least a provisionerId and a workerType or a taskQueueId must be provided"
        raise Refusal(400, "InputError", message)
    if definition.get("taskQueueId", pool) != pool:
        message = 'taskQueueId must match "provisionerId/workerType"'
        raise Refusal(400, "InputError", message)


def _pool(definition: Mapping[str, Any]) -> str | None:
    if "provisionerId" in definition and "workerType" in definition:
        return f"{definition['provisionerId']}/{definition['workerType']}"
    return definition.get("taskQueueId")


def normal(task_id: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    """A definition as it is kept: with the defaults, and times to the millisecond."""
    task = {**_DEFAULTS, "taskGroupId": task_id, **copy.deepcopy(dict(definition))}
    pool = _pool(definition) or ""
    task["taskQueueId"] = pool
    task["provisionerId"], _, task["workerType"] = pool.partition("/")
    if task["priority"] == "normal":
        task["priority"] = "lowest"
    deadline = read_time(task["deadline"])
    task.setdefault("expires", f"{deadline.year + 1}{write_time(deadline)[4:]}")
    for name in _TIMES:
        task[name] = write_time(read_time(task[name]))
    return task


def read_time(text: str) -> datetime:
    """A time; digits beyond milliseconds are cut."""
    found = re.fullmatch(r"(.{10}T.{8})(\.\d+)?(Z|[+-]\d\d:\d\d)", text)
    if found is None:
        raise ValueError(text)
    zone = "+00:00" if found[3] == "Z" else found[3]
    millis = f"{found[2] or '.'}000"[1:4]
    return datetime.fromisoformat(f"{found[1]}.{millis}000{zone}").astimezone(timezone.utc)


def write_time(time: datetime) -> str:
    """A time as a Queue writes it."""
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z"


def needed(task: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The scopes that creating a task takes; of each tuple, any one."""
    high_to_low = PRIORITIES[: PRIORITIES.index(task["priority"]) + 1]
    return [
        *((scope,) for scope in task["scopes"]),
        *((f"queue:route:{route}",) for route in task["routes"]),
        (f"queue:create-task:project:{task['projectId']}",),
        (f"queue:scheduler-id:{task['schedulerId']}",),
        tuple(f"queue:create-task:{each}:{task['taskQueueId']}" for each in high_to_low),
    ]


def require(wanted: Iterable[tuple[str, ...]], scopes: Iterable[str]) -> None:
    """Refuse where a scope is missing."""
    held = tuple(scopes)
    missing = [any_of for any_of in wanted if not any(satisfied(each, held) for each in any_of)]
    if missing:
        names = "\n".join(" or ".join(any_of) for any_of in missing)
        message = f"The client is missing the following scopes:\n\n```\n{names}\n```"
        raise Refusal(403, "InsufficientScopes", message)


def satisfied(scope: str, held: Iterable[str]) -> bool:
    """Whether a scope is among those held; a `*` at the end stands for anything."""
    return any(
        scope == each or (each.endswith("*") and scope.startswith(each[:-1])) for each in held
    )
