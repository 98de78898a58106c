"""What each task of a project asks for: its kinds, loaded one by one, and nothing refused.

A run ends at the first kind that can't be placed. Here a task that can't be is given a stand-in,
so that every kind behind it is seen too, and what it asked for is kept. The tasks are placed as
the choice says: they look as they do in a run.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from taskgraph_workers.errors import Problem, WorkersError
from taskgraph_workers.graph.generate import GraphError, Wanted, check_file, describe, failing
from taskgraph_workers.graph.names import add_alias, asked_name, generated_name
from taskgraph_workers.graph.placer import (
    Assignment,
    Placer,
    Task,
    comes_again,
    label_of,
    maker,
    put_on,
)
from taskgraph_workers.graph.run import KindRun, config_of, kinds_of
from taskgraph_workers.keyed import keyed_in, pick
from taskgraph_workers.model import ALIAS_FIELDS, Choice, Config, Context, Placement, Value

logger = logging.getLogger(__name__)

#: Where tasks are sent that lead nowhere, so that their kind can be loaded.
NOWHERE = "nowhere"


@dataclass(frozen=True)
class Asked:
    """A task as it came to be placed, before anything was put on it.

    ``worker`` is that at the head of the ``task`` transforms; ``before_run`` that at the head of
    ``run``, None where the task did not come by there. ``keyed`` is the keyed name that ``name``
    is a branch of, None for a plain one.
    """

    label: str
    kind: str
    name: str
    worker: Mapping[str, Any]
    before_run: Mapping[str, Any] | None = None
    keyed: Any = None

    def under(self, context: Context) -> Asked:
        """As it would come in another context. Raises PlacementError where no branch holds."""
        if self.keyed is None:
            return self
        return replace(self, name=pick(self.keyed, context, ("worker-type",))[0])

    @property
    def env(self) -> Mapping[str, Any]:
        """The env that the task has of its own."""
        return self.worker.get("env") or {}


@dataclass
class Record:
    """What was seen.

    ``runs`` holds what placement knows of each kind; ``pools`` the pool of every task, by label,
    with its kind. ``unpicked`` holds what is wrong with a keyed name that has no branch here, with
    the kind, by label. ``failed`` says of a kind why it could not be loaded to its end; ``refused``
    are the problems that a choice has by itself.
    """

    graph_config: Any
    parameters: Mapping[str, Any]
    config: Config
    asked: dict[str, Asked] = field(default_factory=dict)
    runs: dict[str, KindRun] = field(default_factory=dict)
    pools: dict[str, tuple[str, str]] = field(default_factory=dict)
    unpicked: dict[str, tuple[str, Problem]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    refused: list[Problem] = field(default_factory=list)


def record(wanted: Wanted, label: str | None = None) -> Record | None:
    """Load the kinds of a project; None where its configuration says nothing.

    With ``label``, no more than it takes to meet that task. Raises WorkersError where the
    configuration is wrong, and GraphError where no kind can be loaded.
    """
    with failing(), redirect_stdout(sys.stderr):
        seen = _start(wanted)
        if seen is None:
            return None
        token = maker.set(lambda config: Recorder.made(seen, config))
        try:
            _load_all(seen, label)
        finally:
            maker.reset(token)
        return seen


def _start(wanted: Wanted) -> Record | None:
    from taskgraph.generator import TaskGraphGenerator
    from taskgraph.parameters import Parameters, parameters_loader

    def parameters(graph_config: Any) -> Any:
        load = parameters_loader(wanted.parameters, strict=False, overrides=dict(wanted.overrides))
        said = dict(load(graph_config))
        if wanted.choice is not None:
            said["workers"] = wanted.choice
        made = Parameters(strict=False, repo_root=graph_config.vcs_root, **said)
        made.check()
        return made

    check_file(wanted.parameters)
    generator = TaskGraphGenerator(root_dir=wanted.root, parameters=parameters)
    config = config_of(generator.graph_config)
    if config is None:
        return None
    return Record(generator.graph_config, generator.parameters, config)


def _load_all(seen: Record, label: str | None) -> None:
    from taskgraph.util.verify import verifications

    kinds = _kinds(seen)
    # Plugins edit the transforms of kinds here.
    verifications("kinds", kinds)
    tasks: dict[str, Any] = {}
    for kind in _in_order(kinds, seen):
        logger.info("loading kind %s", kind.name)
        try:
            loaded = _load(kind, seen.parameters, tasks)
        except (Exception, SystemExit) as error:
            seen.failed[kind.name] = describe(error)
            continue
        for task in loaded:
            tasks[task.label] = task
            where = (task.task.get("provisionerId"), task.task.get("workerType"))
            seen.pools[task.label] = (kind.name, "/".join(map(str, where)))
        if label in seen.asked:
            return


def _kinds(seen: Record) -> dict[str, Any]:
    from taskgraph.generator import Kind

    kinds = {}
    for name in kinds_of(seen.graph_config):
        try:
            kinds[name] = Kind.load(seen.graph_config.root_dir, seen.graph_config, name)
        except Exception as error:
            seen.failed[name] = describe(error)
    if not kinds:
        raise GraphError(Problem("the project has no kind that can be loaded"))
    return kinds


def _in_order(kinds: Mapping[str, Any], seen: Record) -> Iterator[Any]:
    """The kinds, each after those it depends on."""
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> Iterator[Any]:
        if name in done:
            return
        done.add(name)
        for each in sorted(kinds[name].config.get("kind-dependencies") or ()):
            if each in kinds:
                yield from visit(each, (*way, name))
            elif each not in seen.failed:
                seen.failed[name] = f"it depends on kind {each!r}, which there is not"
        yield kinds[name]

    for name in sorted(kinds):
        yield from visit(name, ())


def _load(kind: Any, parameters: Any, tasks: Mapping[str, Any]) -> list[Any]:
    """The tasks of one kind, given those that were loaded before."""
    given: Any = list(tasks.values())
    if "loaded_tasks" not in inspect.signature(kind.load_tasks).parameters:  # since 16
        wanted = kind.config.get("kind-dependencies") or ()
        given = {label: task for label, task in tasks.items() if task.kind in wanted}
    loaded: list[Any] = kind.load_tasks(parameters, given, False)
    return loaded


class Recorder(Placer):
    """Keeps what each task asks for, and lets none stop the others."""

    def __init__(self, run: KindRun, graph_config: Any, seen: Record) -> None:
        super().__init__(run, graph_config)
        self.seen = seen
        self.before: dict[str, Mapping[str, Any]] = {}
        self.keyed: dict[str, Any] = {}
        self.stand_ins: dict[str, Assignment] = {}
        self.placed: set[tuple[str, str]] = set()

    @classmethod
    def made(cls, seen: Record, config: Any) -> Recorder:
        """The recorder for a ``TransformConfig``; without a choice where that is refused."""
        try:
            run = KindRun.of(seen.graph_config, seen.parameters, config.kind)
        except WorkersError as error:
            seen.refused += error.problems
            run = None
        if run is None:
            context = Context(
                level=str(seen.parameters["level"]),
                kind=config.kind,
                trust_domain=seen.graph_config["trust-domain"],
            )
            run = KindRun(seen.config, context, Choice())
        seen.runs[config.kind] = run
        return cls(run, seen.graph_config, seen)

    def before_run(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """Note the task, and see that ``run`` can look its implementation up."""
        for task in tasks:
            self._pick(task)
            self.before[label_of(task, self.run.context.kind)] = deepcopy(task.get("worker") or {})
            assignment = self._way(task)
            if assignment is not None and assignment.converts:
                task["worker-type"] = assignment.name
            yield task

    def after_run(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """The asked name again."""
        for task in tasks:
            name = task.get("worker-type")
            asked = asked_name(name) if isinstance(name, str) else None
            if asked is not None:
                task["worker-type"] = asked
            yield task

    def place(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """Note the task, and place it as far as that can be done."""
        for task in tasks:
            self._pick(task)
            if not ("run" in task and comes_again()):
                self._note(task)
                assignment = self._way(task)
                if assignment is not None:
                    self._put_on(assignment, task)
            yield task

    def _put_on(self, assignment: Assignment, task: Task) -> None:
        """As a run does, but for fields that are not known, which older Taskgraphs refuse."""
        if assignment.converts:
            task["worker"] = _fitting(assignment, task.get("worker") or {})
        put_on(assignment, task)
        if assignment.overlay:
            task["worker"] = _fitting(assignment, task["worker"])

    def _pick(self, task: Task) -> None:
        """Make a keyed name a plain one, as a run does; one that leads nowhere if it has none."""
        said, kind = task.get("worker-type"), self.run.context.kind
        if not isinstance(said, dict):
            return
        label = label_of(task, kind)
        try:
            if isinstance(self._name_of(task), str):
                self.keyed[label] = keyed_in(said)
        except WorkersError as error:
            self.seen.unpicked[label] = (kind, error.problems[0])
            task["worker-type"] = NOWHERE

    def _note(self, task: Task) -> None:
        name, kind = task.get("worker-type"), self.run.context.kind
        if not isinstance(name, str):
            return
        label, asked = label_of(task, kind), asked_name(name) or name
        if label in self.seen.unpicked or (label, asked) in self.placed:
            return  # it comes by twice, and its env is no longer its own alone
        self.placed.add((label, asked))
        worker = deepcopy(task.get("worker") or {})
        made = Asked(label, kind, asked, worker, self.before.get(label), self.keyed.get(label))
        # A transform of the project's may have made another name of it since.
        still = made.under(self.run.context).name == asked
        self.seen.asked[label] = made if still else replace(made, keyed=None)

    def _way(self, task: Task) -> Assignment | None:
        """The assignment of a task; a stand-in where there is none that Taskgraph could go by."""
        name = task.get("worker-type")
        if not isinstance(name, str):
            return None
        try:
            assignment = self.assignment(name)
        except WorkersError:
            assignment = None
        if assignment is None and self._own_implementation(name) == (None, None):
            return self._stand_in(asked_name(name) or name, task.get("worker") or {})
        return assignment

    def _stand_in(self, name: str, worker: Mapping[str, Any]) -> Assignment:
        if name not in self.stand_ins:
            placement = self._elsewhere(name) or self._nowhere(name, worker)
            assignment = Assignment.of(replace(placement, moved=True), (None, None))
            add_alias(self.graph_config, generated_name(placement), placement)
            self.stand_ins[name] = assignment
        return self.stand_ins[name]

    def _elsewhere(self, name: str) -> Placement | None:
        """Where another profile places a name."""
        for profile in self.run.config.profiles:
            try:
                return replace(self.run, choice=Choice(profile)).place(name)
            except WorkersError:
                continue
        return None

    def _nowhere(self, name: str, worker: Mapping[str, Any]) -> Placement:
        """A place that there is not, of the implementation that the task seems to be for."""
        generic = "docker-image" not in worker and bool({"mounts", "command"} & worker.keys())
        implementation = "generic-worker" if generic else "docker-worker"
        said = dict(zip(ALIAS_FIELDS, (NOWHERE, NOWHERE, implementation, "linux")))
        fields = {key: Value(value, "Taskgraph", ()) for key, value in said.items()}
        return Placement((name,), self.run.choice, fields, moved=True)


def _fitting(assignment: Assignment, worker: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a task's ``worker`` that the implementation knows."""
    known = assignment.known
    return {key: value for key, value in worker.items() if known is None or key in known}
