"""Places the tasks of one kind. What a name gets is worked out once; a task costs a look-up."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Callable, ClassVar, Optional

from taskgraph_workers.detect import Detect, prelude
from taskgraph_workers.errors import Problem, WorkersError
from taskgraph_workers.graph.errors import refuse
from taskgraph_workers.graph.fields import check_implementation, foreign_fields, known_fields
from taskgraph_workers.graph.names import add_alias, asked_name, generated_name
from taskgraph_workers.graph.run import KindRun
from taskgraph_workers.implementations import Unwrappable, has_env, put_before
from taskgraph_workers.keyed import keyed_in, pick
from taskgraph_workers.model import Placement
from taskgraph_workers.resolve import is_known, task_env, unmet

Task = dict[str, Any]
Assignments = dict[str, Optional["Assignment"]]
Step = Callable[["Assignment", Task], list[Problem]]

#: What makes a placer for a ``TransformConfig``, where a graph is looked at and none is made.
maker: ContextVar[Callable[[Any], Placer | None] | None] = ContextVar("maker", default=None)


@dataclass(frozen=True)
class Assignment:
    """What the tasks of one kind that ask for one name get, ready to be put on.

    ``name`` is the alias they then ask Taskgraph for. ``converts`` says that another
    implementation than the asked alias's own runs them, and ``known`` which ``worker`` fields
    that one takes (None where it can't be told); ``checks`` that fields have to be looked at.
    ``overlay`` is laid over the task's ``worker`` (None removes). ``plain_env`` is the worker's
    env where nothing but it and the task's own counts, which is nearly always; None where
    :func:`~taskgraph_workers.resolve.task_env` must look.
    """

    placement: Placement
    name: str
    asked: str
    implementation: str
    converts: bool
    known: frozenset[str] | None
    checks: bool
    overlay: Mapping[str, Any]
    plain_env: Mapping[str, str] | None

    @classmethod
    def of(cls, placement: Placement, own_implementation: tuple[Any, Any]) -> Assignment:
        """``own_implementation``: implementation and os of the asked alias; Nones without one."""
        converts = own_implementation != (placement.implementation, placement.os)
        known = known_fields(placement.implementation)
        overlay = {name: value.value for name, value in placement.worker.items()}
        return cls(
            placement=placement,
            name=generated_name(placement) if placement.moved else placement.asked,
            asked=placement.asked,
            implementation=placement.implementation,
            converts=converts,
            known=known,
            checks=known is not None and bool(converts or overlay),
            overlay=overlay,
            plain_env=_plain_env(placement),
        )

    def foreign(self, worker: Mapping[str, Any]) -> list[Problem]:
        """A problem for each field that is converted, or laid on, and that is not known there."""
        converted = worker if self.converts else {}
        if self.known is None or (not self.overlay and self.known >= converted.keys()):
            return []
        return foreign_fields(self.placement, converted, self.known)


def _plain_env(placement: Placement) -> dict[str, str] | None:
    env = {name: value.value for name, value in placement.env.items()}
    plain = all(isinstance(value, str) for value in env.values())
    needed = {name for required in placement.require for name in required.env}
    return env if plain and not placement.env_override and needed <= set(env) else None


class Placer:
    """The placements of one kind in one run of Taskgraph.

    Shared by the transforms of that kind; it collects what is wrong, and refuses it together.
    """

    _placers: ClassVar[weakref.WeakKeyDictionary[Any, Placer | None]] = weakref.WeakKeyDictionary()

    def __init__(self, run: KindRun, graph_config: Any) -> None:
        self.run = run
        self.graph_config = graph_config
        self.assignments: Assignments = {}
        self.early: Assignments = {}  # the same, but None where ``run`` need not know
        self.problems: list[Problem] = []

    @classmethod
    def of(cls, config: Any) -> Placer | None:
        """The placer for a ``TransformConfig``; None where there is nothing to place by.

        Ends the run where the configuration or the choice is wrong.
        """
        if config not in cls._placers:
            cls._placers[config] = (maker.get() or cls._make)(config)
        return cls._placers[config]

    @classmethod
    def _make(cls, config: Any) -> Placer | None:
        try:
            run = KindRun.of(config.graph_config, config.params, config.kind)
        except WorkersError as error:
            refuse(error.problems, loading_kind=True)
        return None if run is None else cls(run, config.graph_config)

    def assignment(self, name: Any) -> Assignment | None:
        """What a name gets; None where the configuration says nothing. Raises PlacementError."""
        if not isinstance(name, str):
            return None  # keyed still: a transform of the project's will make a name of it
        if name not in self.assignments:
            assignment = self._assignment(name)
            self.assignments[name] = assignment
            known_to_run = assignment is not None and (assignment.converts or assignment.overlay)
            self.early[name] = assignment if known_to_run else None
        return self.assignments[name]

    def _name_of(self, task: Task) -> Any:
        """The worker name a task asks for. One keyed by what we know is made a plain one first.

        A name keyed by anything else is for a transform of the project's to pick. Raises
        PlacementError where no branch holds here.
        """
        name = task.get("worker-type")
        if isinstance(name, dict):
            picked, _ = pick(keyed_in(name), self.run.context, ("worker-type",))
            if isinstance(picked, str):
                task["worker-type"] = name = picked
        return name

    def _assignment(self, name: str) -> Assignment | None:
        asked = asked_name(name)
        if asked is not None:
            return self.assignment(asked)
        if not is_known(self.run.config, name, self.run.choice.overrides):
            return None  # Taskgraph's to report, or a name that a later transform replaces
        placement = self.run.place(name)
        if placement.silent:
            return None
        check_implementation(placement)
        assignment = Assignment.of(placement, self._own_implementation(name))
        if placement.moved:
            add_alias(self.graph_config, assignment.name, placement)
        return assignment

    def _own_implementation(self, name: str) -> tuple[Any, Any]:
        from taskgraph.util.workertypes import worker_type_implementation

        try:
            found: tuple[Any, Any] = worker_type_implementation(self.graph_config, name)
        except Exception:  # Taskgraph raises a bare one for a name that is no alias
            return None, None
        return found

    def before_run(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """Another name, only where ``run`` would look up the wrong implementation.

        ``run`` wants the implementation and the os alone. So a task keeps the name it asked for
        wherever it can, and a project's transforms can go on comparing it. What is laid over
        ``worker`` is laid here too, so that ``run`` adds its mounts and caches to it.
        """
        # `run` takes all tasks before it hands on the first. So whoever comes after it refuses
        # them, and what is wrong with the others is told with it.
        return self._stepping(tasks, self.early, _prepare)

    def after_run(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """The asked name again, until ``task`` needs the other one."""
        return self._refusing(tasks, self.early, _restore)

    def place(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """The name, env, ``worker`` and prelude."""
        return self._refusing(tasks, self.assignments, put_on)

    def _refusing(
        self, tasks: Iterable[Task], assignments: Assignments, step: Step
    ) -> Iterator[Task]:
        yield from self._stepping(tasks, assignments, step)
        if self.problems:
            refuse(self.problems, loading_kind=True)

    def _stepping(
        self, tasks: Iterable[Task], assignments: Assignments, step: Step
    ) -> Iterator[Task]:
        """``step(assignment, task)`` for each task that has one.

        A task with a problem goes no further.
        This loop and :func:`put_on` are what every task of a graph costs: measure a change here
        with benchmarks/placement.py.
        """
        for task in tasks:
            try:
                assignment = assignments[task["worker-type"]]
            except (KeyError, TypeError):
                try:
                    assignment = self.assignment(self._name_of(task))
                except WorkersError as error:
                    self.problems += self._named(error.problems, task)
                    continue
            if assignment is not None:
                found = step(assignment, task)
                if found:
                    self.problems += self._named(found, task)
                    continue
            yield task

    def _named(self, problems: Iterable[Problem], task: Task) -> list[Problem]:
        label = label_of(task, self.run.context.kind)
        return [
            self.run.located(each._replace(message=f"task {label}: {each.message}"))
            for each in problems
        ]


def label_of(task: Mapping[str, Any], kind: str) -> str:
    """The label that a task has, or that ``run`` will give it."""
    return str(task.get("label") or f"{kind}-{task.get('name')}")


def _prepare(assignment: Assignment, task: Task) -> list[Problem]:
    if assignment.overlay:
        worker = task["worker"] = dict(task.get("worker") or ())
        _overlay(worker, assignment.overlay, again=False)
    if not assignment.converts:
        return []
    task["worker-type"] = assignment.name
    return assignment.foreign(task.get("worker") or {})


def _restore(assignment: Assignment, task: Task) -> list[Problem]:
    task["worker-type"] = assignment.asked
    return []


def put_on(assignment: Assignment, task: Task) -> list[Problem]:
    """Give a task its place, and all that comes with it; returns what is wrong with that."""
    # A copy, since tasks of a kind.yml may share one by an anchor.
    worker = task["worker"] = dict(task.get("worker") or ())
    built_for = worker.get("implementation", assignment.implementation)
    if built_for != assignment.implementation:
        if assignment.converts:
            return [_built_for_another(assignment.placement, built_for)]
        if not has_env(built_for):
            task["worker-type"] = assignment.name
            return []
    problems = assignment.foreign(worker) if assignment.checks else []
    task["worker-type"] = assignment.name
    if assignment.overlay:
        _overlay(worker, assignment.overlay, again="implementation" in worker)
    if assignment.plain_env is None:
        problems += _full_env(assignment.placement, worker, "run" in task and comes_again())
    elif assignment.plain_env:
        own = worker.get("env")
        worker["env"] = {**assignment.plain_env, **own} if own else dict(assignment.plain_env)
    return problems


def _overlay(worker: dict[str, Any], overlay: Mapping[str, Any], again: bool) -> None:
    """Lay values over a task's ``worker``: before ``run``, and ``again`` after it.

    The second time a list to which ``run`` added its own mounts or caches stays as it is: what
    was laid is in it.
    """
    for name, value in overlay.items():
        if value is None:
            worker.pop(name, None)
        elif not (again and isinstance(value, list) and _holds_all(worker.get(name), value)):
            worker[name] = copy.deepcopy(value)  # tasks must not share what transforms may edit


def _holds_all(there: Any, wanted: list[Any]) -> bool:
    return isinstance(there, list) and all(each in there for each in wanted)


def _full_env(placement: Placement, worker: dict[str, Any], for_now: bool = False) -> list[Problem]:
    """Give the env, and what finds it out; ``for_now`` there is no command, and more may come."""
    env, _ = task_env(placement, worker.get("env") or {})
    detected = {name: value for name, value in env.items() if isinstance(value, Detect)}
    said = {name: value for name, value in env.items() if name not in detected}
    if said or "env" in worker:
        worker["env"] = said
    if for_now:
        return []
    found = _detect(placement, worker, detected) if detected else []
    return unmet(placement, env) + found


def comes_again() -> bool:
    """Whether a task that ``run`` has yet to build will be here again, at the head of ``task``."""
    from taskgraph.transforms import task

    from taskgraph_workers.graph.transforms import place

    return place in task.transforms._transforms


def _detect(
    placement: Placement, worker: dict[str, Any], detected: Mapping[str, Detect]
) -> list[Problem]:
    """Put the prelude that finds these values out before the task's command."""
    implementation = placement.implementation
    try:
        worker["command"] = put_before(
            implementation, placement.os, worker.get("command"), prelude(detected)
        )
    except Unwrappable as error:
        path = {**placement.env, **placement.env_override}[min(detected)].path
        names = ", ".join(sorted(detected))
        hint = "give the value itself in this kind's env, or in the profile"
        return [Problem(f"{names} can't be detected on the machine: {error}", path, hint)]
    return []


def _built_for_another(placement: Placement, built_for: str) -> Problem:
    return Problem(
        f"its command was built for {built_for}, and {placement.asked!r} is placed on "
        f"{placement.pool}, which is {placement.implementation}",
        placement.fields["implementation"].path,
        "leave `implementation` to the alias, and set the worker type before the `run` transforms",
    )
