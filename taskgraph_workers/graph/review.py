"""A project's tasks against its configuration: each of them, placed under every profile.

An error is what a run refuses, under the profile that is chosen or under another one. A warning is
what a run takes although it is hardly meant, and an info what is meant, perhaps.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from taskgraph_workers.config import located
from taskgraph_workers.config.names import is_plain
from taskgraph_workers.config.review import GPUS, wrong_count
from taskgraph_workers.config.selection import names_of
from taskgraph_workers.config.tables import translated
from taskgraph_workers.detect import Detect
from taskgraph_workers.errors import (
    AMBIGUOUS,
    FOREIGN,
    NO_BRANCH,
    TOP,
    UNMET,
    Path,
    PlacementError,
    Problem,
    WorkersError,
    listed,
)
from taskgraph_workers.graph.checks import unregistered
from taskgraph_workers.graph.kind_files import KindFile
from taskgraph_workers.graph.placer import Assignment, Placer, put_on
from taskgraph_workers.graph.recorder import Asked, Record
from taskgraph_workers.graph.run import KindRun, kinds_folder
from taskgraph_workers.graph.unused import choices, run_under, unused
from taskgraph_workers.model import Choice, Placement, Value
from taskgraph_workers.refusals import worker_hint
from taskgraph_workers.resolve import (
    is_known,
    task_env,
    unmet,
)

#: What is told of several tasks, and the labels of these.
Told = dict[Problem, list[str]]


def review(seen: Record) -> list[Problem]:
    """Everything that is wrong between the tasks and the configuration, each with its place."""
    return _Review(seen).problems()


class _Review:
    def __init__(self, seen: Record) -> None:
        self.seen = seen
        self.config = seen.config
        self.told: Told = {}
        self.overridden = _Overridden(self)
        self.partial: dict[str, dict[str, set[str]]] = {}
        self._placers: dict[tuple[str, str | None, str], Placer] = {}
        self._files: dict[str, KindFile] = {}

    def problems(self) -> list[Problem]:
        for asked in self.seen.asked.values():
            for choice in choices(self.seen, asked.kind):
                self._try(asked, self.placer(asked.kind, choice))
        for label, (kind, problem) in self.seen.unpicked.items():
            self.tell(self.file(kind).at(problem, str(problem.path[-1])), label)
        found = [*self.seen.refused, *self._failed(), *self._levels()]
        found += [_named(problem, labels) for problem, labels in _together(self.told).items()]
        found += self._partial()
        found += self.overridden.problems()
        missing = unregistered(self.seen.graph_config)
        if missing is None:
            found += [*unused(self.seen), *self._bypassing()]
        else:
            found.append(missing._replace(severity="warning"))
        # All at once: each file is read once for its places.
        found = self.config.trace.locate(translated(each, self.config) for each in found)
        return list(dict.fromkeys(found))

    def placer(self, kind: str, choice: Choice) -> Placer:
        """Places the tasks of a kind under a choice, at a level that the profile is for."""
        key = (kind, choice.profile, choice.source)
        if key not in self._placers:
            run = run_under(self.seen, kind, choice)
            self._placers[key] = Placer(run, self.seen.graph_config)
        return self._placers[key]

    def file(self, kind: str) -> KindFile:
        if kind not in self._files:
            self._files[kind] = KindFile(os.path.join(kinds_folder(self.seen.graph_config), kind))
        return self._files[kind]

    def tell(self, problem: Problem, label: str) -> None:
        labels = self.told.setdefault(problem, [])
        labels += [label] if label not in labels else []

    # --- one task under one choice ---

    def _try(self, asked: Asked, placer: Placer) -> None:
        choice = placer.run.choice
        try:
            asked = asked.under(placer.run.context)
        except PlacementError as error:
            problem = error.problems[0]
            there = self.file(asked.kind).at(problem, str(problem.path[-1]))
            self.tell(_under(there, choice), asked.label)
            return
        if self._refused(choice) and is_known(self.config, asked.name):
            return
        try:
            assignment = placer.assignment(asked.name)
            placement = placer.run.place(asked.name) if assignment is None else assignment.placement
        except PlacementError as error:
            self._unplaced(asked, choice, self._in_vain(asked.name) or error.problems[0])
            return
        if assignment is not None:
            for problem in _refusals(assignment, asked):
                self.tell(_under(self._removed(problem, placement), choice), asked.label)
        self.overridden.note(asked, placement)
        self._count(asked, placement)

    def _refused(self, choice: Choice) -> bool:
        """Whether it stands for a choice that is told as wrong: what lacks one now follows."""
        return bool(self.seen.refused) and choice == Choice()

    def _in_vain(self, name: str) -> Problem | None:
        """A name that nobody ever heard of is told as such, whatever the profile."""
        if is_known(self.config, name):
            return None
        what = f"{name!r} is no worker name: there is no such alias, and no profile speaks of it"
        return Problem(what, hint=worker_hint(name, names_of(self.config), self.config.profiles))

    def _removed(self, problem: Problem, placement: Placement) -> Problem:
        """The problem; where required env is missing since a null removes it, it says where."""
        if problem.code != UNMET:
            return problem
        said = {**placement.env, **placement.env_override}.get(problem.names[0])
        if said is None:
            return problem
        place = located(Problem("", said.path), self.config)
        where = f"{place.file}:{place.line}" if place.line else said.source
        return problem._replace(hint=f"null removes it: {where}")

    def _unplaced(self, asked: Asked, choice: Choice, problem: Problem) -> None:
        """A name that leads nowhere, or a value that has no branch for it."""
        if choice == self.seen.runs[asked.kind].choice:
            there = self.file(asked.kind).at(problem, "worker-type", asked.name)
            self.tell(there, asked.label)
        elif problem.code in (NO_BRANCH, AMBIGUOUS):
            self.tell(_under(problem, choice), asked.label)
        elif choice.profile is not None:
            names = self.partial.setdefault(choice.profile, {})
            names.setdefault(asked.name, set()).add(asked.kind)

    def _count(self, asked: Asked, placement: Placement) -> None:
        if GPUS not in asked.env and GPUS not in placement.env_override:
            return  # the configuration alone says it
        _, said = task_env(placement, asked.env)
        for problem in wrong_count(placement, said):
            if problem.path[:1] != TOP:
                value = str(said[GPUS].value)
                self.tell(self.file(asked.kind).at(problem, GPUS, value), asked.label)

    def _partial(self) -> Iterator[Problem]:
        """Profiles that are not chosen, and under which some kinds could not be placed."""
        for profile, names in self.partial.items():
            known = {name for name in names if is_known(self.config, name)}
            for name in sorted(known):
                kinds = listed(names[name])
                yield Problem(
                    f"under this profile nothing places {name!r}, which {kinds} asks for",
                    self.config.profiles[profile].path,
                    "fine if it is meant for other kinds only; else let it extend a profile",
                    "warning",
                )

    # --- whole kinds ---

    def _failed(self) -> Iterator[Problem]:
        for kind, why in self.seen.failed.items():
            told = Problem(
                f"kind {kind!r} can't be loaded: {why}",
                hint="what else is wrong with its tasks can't be told before that is mended",
            )
            yield self.file(kind).at(told, "")

    def _levels(self) -> Iterator[Problem]:
        for run in self.seen.runs.values():
            problem = run.level_problem()
            if problem is not None:
                yield problem._replace(severity="warning")

    def _bypassing(self) -> Iterator[Problem]:
        there: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for label, where in self.seen.pools.items():
            if label not in self.seen.asked:
                there[where].append(label)
        for (kind, pool), labels in there.items():
            yield self._bypass(kind, pool, labels)

    def _bypass(self, kind: str, pool: str, labels: Sequence[str]) -> Problem:
        moves = list(dict.fromkeys(self._moves(kind, pool)))
        would = f", where {moves[0]} moves what is there" if moves else ""
        problem = Problem(
            f"kind {kind!r} does not take {_told(labels)} through the `run` and `task` "
            f"transforms, so nothing here places {'it' if len(labels) == 1 else 'them'}: "
            f"{'it stays' if len(labels) == 1 else 'they stay'} on {pool}{would}",
            hint="name taskgraph_workers.transforms:transforms among its transforms, "
            "or set the pool where the kind does",
            severity="warning" if moves else "info",
        )
        return self.file(kind).at(problem, "transforms")

    def _moves(self, kind: str, pool: str) -> Iterator[str]:
        """The profiles that move an alias away from a pool."""
        run = self.seen.runs.get(kind) or next(iter(self.seen.runs.values()), None)
        if run is None:
            return
        context = replace(run.context, kind=kind)
        for profile in self.config.profiles:
            for name in filter(is_plain, self.config.aliases):
                try:
                    was = KindRun(self.config, context, Choice()).place(name)
                    now = KindRun(self.config, context, Choice(profile)).place(name)
                except WorkersError:
                    continue
                if was.pool == pool != now.pool:
                    yield f"profile {profile!r}"


def _refusals(assignment: Assignment, asked: Asked) -> list[Problem]:
    """What a run would refuse this task for."""
    if not assignment.converts and asked.worker.get("implementation") in (
        None,
        assignment.implementation,
    ):
        return put_on(assignment, {"worker-type": asked.name, "worker": dict(asked.worker)})
    before = asked.worker if asked.before_run is None else asked.before_run
    env, _ = task_env(assignment.placement, asked.env)
    return assignment.foreign(before) + unmet(assignment.placement, env)


def _under(problem: Problem, choice: Choice) -> Problem:
    """The problem, saying which profile it comes up under, unless its message does."""
    by_profile = problem.code == NO_BRANCH and problem.names == ("profile",)
    if choice.profile is None or by_profile or problem.code == FOREIGN:
        return problem
    return problem._replace(profiles=(choice.profile,))


def _together(told: Told) -> Told:
    """Problems that differ in nothing but the profiles they come up under, as one."""
    alike: dict[tuple[Problem, tuple[str, ...]], list[str]] = {}
    for problem, labels in told.items():
        key = (problem._replace(profiles=()), tuple(sorted(labels)))
        alike.setdefault(key, []).extend(problem.profiles)
    return {
        problem._replace(profiles=tuple(profiles)): list(labels)
        for (problem, labels), profiles in alike.items()
    }


def _named(problem: Problem, labels: Sequence[str]) -> Problem:
    return problem._replace(message=f"{_told(labels)}: {problem.message}")


def _told(labels: Sequence[str]) -> str:
    """Tasks, as a message names them.

    >>> _told(["a", "b"]), _told(["a", "b", "c", "d"])
    ('a and b', 'a and 3 more tasks')
    """
    first, *others = sorted(labels)
    return (
        f"{first} and {len(others)} more tasks"
        if len(others) > 1
        else " and ".join([first, *others])
    )


class _Overridden:
    """Env that is said twice: by a worker and by a task, or by a task and by a run."""

    def __init__(self, review: _Review) -> None:
        self.review = review
        # For each value of a kind's own: its tasks, and the values it beats, with who has them.
        self.tasks: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
        self.beaten: defaultdict[tuple[str, str, str], dict[str, list[str]]] = defaultdict(dict)
        self.by_run: Told = {}
        self.places: dict[Path, Problem] = {}

    def note(self, asked: Asked, placement: Placement) -> None:
        """Note what a task's own env overrides, and what overrides it."""
        for name, own in asked.env.items():
            worker = placement.env.get(name)
            if worker is not None and worker.value not in (None, own):
                key = (asked.kind, name, text_of(own))
                self.tasks[key] += [asked.label] if asked.label not in self.tasks[key] else []
                where = self.beaten[key].setdefault(self._said(worker), [])
                profile = placement.choice.profile
                where += [profile] if profile is not None and profile not in where else []
            run = placement.env_override.get(name)
            if run is not None and run.value != own:
                self._by_run(asked, name, own, run)

    def _by_run(self, asked: Asked, name: str, own: Any, run: Value) -> None:
        what = f"{run.source} says {name} {text_of(run.value)}, over the task's own {text_of(own)}"
        problem = Problem(what, run.path, severity="info")
        if run.path[:1] != TOP:
            file = self.review.file(asked.kind)
            problem = file.at(problem, name, own)
        labels = self.by_run.setdefault(problem, [])
        labels += [asked.label] if asked.label not in labels else []

    def _said(self, value: Value) -> str:
        if value.path not in self.places:
            self.places[value.path] = located(Problem("", value.path), self.review.config)
        there = self.places[value.path]
        place = f"{there.file}:{there.line}" if there.line else value.source
        return f"{text_of(value.value)} ({place})"

    def problems(self) -> Iterator[Problem]:
        for (kind, name, own), labels in self.tasks.items():
            every = len(self.beaten[kind, name, own]) == 1
            beaten = [
                said if every or not profiles else f"{said} under {', '.join(profiles)}"
                for said, profiles in self.beaten[kind, name, own].items()
            ]
            problem = Problem(
                f"the task's own {name} {own} overrides the worker's: {'; '.join(beaten)}",
                severity="info",
            )
            there = self.review.file(kind).at(problem, name, _unquoted(own))
            yield _named(there, labels)
        yield from (_named(problem, labels) for problem, labels in self.by_run.items())


def text_of(value: Any) -> str:
    """A value of env as a message shows it."""
    if isinstance(value, Detect):
        return f"{{detect: {value.what}}}"
    if value is None:
        return "removed"
    if isinstance(value, Mapping):
        return " ".join(map(str, value.values()))
    return f'"{value}"'


def _unquoted(text: str) -> str:
    return text[1:-1] if text.startswith('"') else text
