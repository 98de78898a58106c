"""Each profile tried on each name: dead ends, loops, values without a branch, requirements.

The rules themselves (:mod:`taskgraph_workers.resolve`) are run, in each context that the keyed
values of the configuration tell apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from taskgraph_workers import match
from taskgraph_workers.config.contexts import contexts, keyed_values, selections
from taskgraph_workers.config.entries import targets
from taskgraph_workers.config.steps import End, ends_of, next_of
from taskgraph_workers.config.tables import Keys, layer_tables, quick, translated
from taskgraph_workers.errors import (
    ALIASES,
    AMBIGUOUS,
    DEAD_END,
    LEFT_OUT,
    LOOP,
    NO_BRANCH,
    TOP,
    UNSET,
    Path,
    PlacementError,
    Problem,
    listed,
)
from taskgraph_workers.keyed import pick
from taskgraph_workers.model import Choice, Config, Context, Layer, Placement
from taskgraph_workers.resolve import changes_for, layers_of, level_problem, lineage, resolve

# What the tasks of a graph may mend: they need not ask for a name, and have env of their own.
_SOME_KINDS = "fine if it is meant for some kinds only; else let it extend a profile"
_OWN_ENV = "give it in workers-config.workers or the profile, if not every task has its own"


#: Env that is required, by what requires it, and not set.
Missing = tuple[tuple[Path, str], ...]


def tasks_decide(problem: Problem) -> bool:
    """Whether a problem found here is one only as long as the tasks of the graph are unknown."""
    return problem.code in (LEFT_OUT, UNSET)


def _led_to(layer: Layer) -> Iterator[str]:
    """The names that a layer sends other ones on to."""
    return (to for key, each in layer.entries.items() for to in targets(each) if to != key)


class Trial:
    """Every profile tried on every name, and what came of it."""

    def __init__(self, config: Config, names: Sequence[str], left_out: Sequence[Path]) -> None:
        self.config = config
        self.quick = quick(config)
        self.by_profile = any(each.by == "profile" for each in keyed_values(config))
        self.names = names
        self.left_out = left_out
        self.found: dict[object, Problem] = {}
        self.unplaced: dict[str, list[str]] = {}
        self.unset: dict[tuple[Path, str, str | None], list[str]] = {}
        self.ended: set[tuple[str | None, str]] = set()
        self.told: set[object] = set()
        self.ways: dict[tuple[str, int], int] = {}
        every = [path for path, _ in layer_tables(config).values()]
        self.overrides = [path for path in every if "select" in path]
        self.doubts = {path: Keys(path, left_out) for path in [*every, (*TOP, "workers")]}

    def problems(self) -> list[Problem]:
        """The problems, each told once."""
        every = contexts(self.config)
        for choice in self._choices():
            for each in every:
                if level_problem(self.config, choice, each.level) is None:
                    self._try_all(choice, each.under(choice))
        return [*self.found.values(), *self._partial(), *self._requirements()]

    def _try_all(self, choice: Choice, context: Context) -> None:
        """Try each name; of those that only lead on, one for each end that can't be placed."""
        onward = self._onward(choice, context)
        ends = ends_of(onward)
        distinct = {end for end, _ in ends.values() if end}
        placed = {end: self._end(end, choice, context) for end in distinct}
        tried: set[End] = set()
        for name in self.names:
            if name not in ends:
                self._try(name, choice, context)
            elif placed.get(ends[name][0]) is None and ends[name] not in tried:
                tried.add(ends[name])
                self._try(name, choice, context)
        there = {end: result for end, result in placed.items() if result is not None}
        for name in ends:
            if onward[name] in there:
                way, missing = there[onward[name]]
                there[name] = self._way((name, way)), missing
                self._note(name, choice, *there[name])

    def _onward(self, choice: Choice, context: Context) -> dict[str, str]:
        """The names that only lead on, and where to."""
        layers, known, onward = layers_of(self.quick, choice), set(self.names), {}
        for name in self.names:
            to = next_of(self.quick, name, layers, context, known)
            if to is not None and not self._in_doubt([name], choice, machines=True):
                onward[name] = to
        return onward

    def _end(self, name: str, choice: Choice, context: Context) -> tuple[int, Missing] | None:
        """The way of a name and the env that it misses; None if it can't be placed."""
        try:
            placement = resolve(self.quick, name, choice, context)
        except PlacementError:
            return None
        return self._missed(placement)

    def _missed(self, placement: Placement) -> tuple[int, Missing]:
        way = 0
        for name in reversed(placement.chain):
            way = self._way((name, way))
        if self._in_doubt(placement.chain, placement.choice, machines=True):
            return way, ()
        said = {**placement.env, **placement.env_override}
        given = {name for name, value in said.items() if value.value is not None}
        every = ((each.path, name) for each in placement.require for name in each.env)
        return way, tuple(each for each in every if each[1] not in given)

    def _way(self, step: tuple[str, int]) -> int:
        """A number for the names that lead from one to its alias: that one, and how it goes on."""
        return self.ways.setdefault(step, len(self.ways) + 1)

    def _note(self, asked: str, choice: Choice, way: int, missing: Missing) -> None:
        for path, name in missing:
            if (path, name, way) not in self.told:
                self.told.add((path, name, way))
                self.unset.setdefault((path, name, choice.profile), []).append(asked)

    def _choices(self) -> Iterator[Choice]:
        """What a run may choose: each profile that can be used, and what select.default says."""
        said = selections(self.config)
        sure = [name for name in self.config.profiles if self._is_sure(name)]
        # Parents first: what is wrong in one is told of it, and not of those that extend it.
        for name in sorted(sure, key=lambda each: len(lineage(self.config, each))):
            yield Choice(name, "")
        if not said:
            yield Choice()
        for each in said:
            overrides = () if each.overrides is None else (each.overrides,)
            if "default" not in each.profiles:
                yield Choice(None, each.source, overrides)
            for profile in dict.fromkeys(each.profiles.values()):
                if overrides and profile in sure:
                    yield Choice(profile, each.source, overrides)

    def _is_sure(self, profile: str) -> bool:
        try:
            ancestors = lineage(self.config, profile)
        except PlacementError:
            return False
        paths = [each.path for each in ancestors]
        return not any(
            path[: len(each)] == each and path[len(each) : len(each) + 1] != ("workers",)
            for path in self.left_out
            for each in paths
        ) and not any((*each, "workers") in self.left_out for each in paths)

    def _try(self, name: str, choice: Choice, context: Context) -> None:
        layers = layers_of(self.quick, choice)
        if not any(match.find(layer.entries, name) for layer in layers):
            if not match.find(self.quick.aliases, name):
                self._unplaced(name, choice)
                return
            # Nothing moves it, so one profile is as good as another.
            context = context if self.by_profile else replace(context, profile=None)
            if (name, context) in self.told:
                return
            self.told.add((name, context))
        try:
            placement = resolve(self.quick, name, choice, context)
        except PlacementError as error:
            self._refused(error, name, choice, context)
        else:
            self._note(name, choice, *self._missed(placement))

    def _refused(self, error: PlacementError, name: str, choice: Choice, context: Context) -> None:
        chain = self._chain(name, choice, context)
        if self._in_doubt(chain, choice):
            return
        for problem in error.problems:
            self._failed(problem, chain, choice, context)

    def _chain(self, name: str, choice: Choice, context: Context) -> list[str]:
        """The names that lead on from a name, up to the first that comes again."""
        names: dict[str, None] = {}
        to: str | None = name
        layers = layers_of(self.quick, choice)
        try:
            while to is not None and to not in names:
                names[to], said = None, changes_for(self.quick, to, layers, context)
                onward = (pick(change.to, context, ())[0] for _, change in said)
                to = next((each for each in onward if each is not None), None)
        except PlacementError:
            pass
        return [*names, *([to] if to in names and to is not None else [])]

    def _in_doubt(self, chain: Sequence[str], choice: Choice, machines: bool = False) -> bool:
        """Whether something about these names was left out, here or in what they build on."""
        tables = [(*each.path, "workers") for each in lineage(self.config, choice.profile)]
        tables += self.overrides
        tables += [(*TOP, "workers")] if machines else []
        return any(self.doubts[table].fit(name) for table in tables for name in chain)

    def _failed(
        self, problem: Problem, chain: Sequence[str], choice: Choice, context: Context
    ) -> None:
        if problem.code == AMBIGUOUS:
            return  # told already
        if problem.code == NO_BRANCH:
            self._no_branch(problem, context)
        elif problem.code == LOOP:
            self.found.setdefault(frozenset(problem.names), problem)
        elif problem.code == DEAD_END and not problem.path:
            self._nowhere(problem, chain[-1], choice, context)
        else:
            self.ended.add((choice.profile, chain[-1]))
            self.found.setdefault(problem.path, problem)

    def _no_branch(self, problem: Problem, context: Context) -> None:
        """A value without a branch is a fault where it is sure that the context comes up."""
        (by,) = problem.names
        if problem.path[:2] == ALIASES:
            return  # Taskgraph's own; it may be an alias for other levels
        problem = translated(problem, self.config)
        if by == "profile" and context.profile is not None:
            self.found.setdefault(problem.path, problem)
        elif by == "level" and context.level != "2":
            self.found.setdefault(problem.path, problem._replace(severity="warning"))

    def _nowhere(self, problem: Problem, name: str, choice: Choice, context: Context) -> None:
        """A name that is no alias, and has an entry that does not place it, or was dropped."""
        layers = layers_of(self.config, choice)
        for _, change in changes_for(self.config, name, layers, context):
            self.ended.add((choice.profile, name))
            self.found.setdefault(change.path, problem._replace(path=change.path))
            return
        self._unplaced(name, choice)

    def _unplaced(self, name: str, choice: Choice) -> None:
        if choice.profile is not None and not self._in_doubt([name], choice):
            names = self.unplaced.setdefault(choice.profile, [])
            names += [name] if name not in names else []

    def _partial(self) -> Iterator[Problem]:
        steps = self._steps() if self.unplaced else set()
        for profile, names in self.unplaced.items():
            told = [n for n in names if (profile, n) not in self.ended and n not in steps]
            if told:
                yield Problem(
                    f"under this profile nothing places {listed(told)}",
                    self.config.profiles[profile].path,
                    _SOME_KINDS,
                    "warning",
                    code=LEFT_OUT,
                    names=tuple(told),
                )

    def _steps(self) -> set[str]:
        """Names that no task need ask for: whoever speaks of one also sends others there.

        Such a name is a step on the way of a profile (with those it extends, and that extend it).
        """
        kin: dict[str, list[Layer]] = {}
        for name in filter(self._is_sure, self.config.profiles):
            way = [each.layer for each in lineage(self.config, name)]
            for layer in way:
                kin.setdefault(layer.source, []).extend(way)
        step, asked = set(), set()
        layers = [profile.layer for profile in self.config.profiles.values()]
        layers += [each.overrides for each in selections(self.config) if each.overrides]
        for layer in layers:
            led = {to for each in kin.get(layer.source, [layer]) for to in _led_to(each)}
            spoken = {name for name, each in layer.entries.items() if each is not None}
            step |= spoken & led
            asked |= spoken - led
        return step - asked

    def _requirements(self) -> Iterator[Problem]:
        for (path, env, profile), names in sorted(self.unset.items(), key=lambda each: each[0][:2]):
            yield Problem(
                f"{env} is required, and nothing here sets it on {listed(names)}",
                path,
                _OWN_ENV,
                "warning",
                profiles=(profile,) if profile else (),
                code=UNSET,
                names=(env,),
            )
