"""How Merlin 1.13 groups the tasks of a study: chains, with a barrier between groups of chains.

Maestro makes one task of each step for every combination of the parameters that it uses, its own
and those of the steps it depends on; behind ``step_*`` all of that step's tasks stand, and
parameters are not handed on (``maestrowf`` ``Study._stage``). Merlin then puts tasks of one depth
together, and hangs a task to its parent where each is the other's only one and both are
expanded by samples, or none is (``study/dag.py``). A test asks Merlin's own code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from taskgraph_workers.launch.merlin.model import Spec, Step, dependency

#: One task of a step: its name, and the values of the parameters that it uses.
_Task = tuple[str, tuple[str, ...]]


class Chain(NamedTuple):
    """Steps whose tasks run one after another, and how many such chains there are.

    ``depth`` is the group that they belong to: no chain of the next begins before all of them are
    done. ``number`` is None where the number of samples is not known.
    """

    depth: int
    steps: tuple[str, ...]
    number: int | None


def chains(spec: Spec) -> tuple[Chain, ...]:
    """Every kind of chain of a study, by depth; none where the dependencies run in a circle."""
    study = _Study(spec)
    return study.chains() if study.order is not None else ()


class _Study:
    """The tasks of a study, and which of them hang together."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.steps = {step.name: step for step in spec.steps}
        self.parents = {step.name: _depends(step, self.steps) for step in spec.steps}
        self.order = _sorted(self.parents)
        self.used: dict[str, tuple[str, ...]] = {}
        self.depth: dict[str, int] = {}
        self.tasks: dict[str, dict[tuple[str, ...], int]] = {}
        self.children: Counter[_Task] = Counter()
        self.child: dict[_Task, _Task] = {}
        self.above: Counter[_Task] = Counter()

    def chains(self) -> tuple[Chain, ...]:
        for name in self.order or ():
            self._expand(name)
        for name in self.order or ():
            for parent, everything in self.parents[name].items():
                self._connect(parent, name, everything)
        return self._grouped()

    def _expand(self, name: str) -> None:
        """The tasks of a step, each with one row that leads to it."""
        parents = self.parents[name]
        used = set(self.steps[name].parameters) & set(self.spec.values)
        for parent, everything in parents.items():
            used |= set() if everything else set(self.used[parent])
        self.used[name] = tuple(sorted(used))
        self.depth[name] = max((self.depth[parent] + 1 for parent in parents), default=0)
        tasks: dict[tuple[str, ...], int] = {}
        for row in range(max(1, self.spec.rows) if used else 1):
            tasks.setdefault(self._key(name, row), row)
        self.tasks[name] = tasks

    def _key(self, name: str, row: int) -> tuple[str, ...]:
        return tuple(self.spec.values[each][row] for each in self.used[name])

    def _connect(self, parent: str, name: str, everything: bool) -> None:
        above, below = self.tasks[parent], self.tasks[name]
        if everything:
            # Only whether there is one counts, so no edge has to be made of each with each.
            first = (name, next(iter(below)))
            for key in above:
                self.children[parent, key] += len(below)
                self.child[parent, key] = first
            for key in below:
                self.above[name, key] += len(above)
            return
        for key, row in below.items():
            task = (parent, self._key(parent, row))
            self.children[task] += 1
            self.child[task] = (name, key)
            self.above[name, key] += 1

    def _next(self, task: _Task) -> _Task | None:
        """The task that hangs to this one, if any."""
        if self.children[task] != 1:
            return None
        child = self.child[task]
        alike = self._expanded(child[0]) == self._expanded(task[0])
        return child if alike and self.above[child] == 1 else None

    def _expanded(self, name: str) -> bool:
        return self.steps[name].samples

    def _grouped(self) -> tuple[Chain, ...]:
        found: Counter[tuple[int, tuple[str, ...]]] = Counter()
        hanging: set[_Task] = set()
        for name in self.order or ():
            for key in self.tasks[name]:
                if (name, key) in hanging:
                    continue
                chain: list[_Task] = [(name, key)]
                while (following := self._next(chain[-1])) is not None:
                    chain.append(following)
                hanging.update(chain[1:])
                found[self.depth[name], tuple(step for step, _ in chain)] += 1
        return tuple(
            Chain(depth, steps, self._times(steps[0], count))
            for (depth, steps), count in sorted(found.items(), key=lambda each: each[0][0])
        )

    def _times(self, name: str, count: int) -> int | None:
        """That many chains, each once for every sample."""
        if not self._expanded(name):
            return count
        return None if self.spec.samples is None else count * max(1, self.spec.samples)


def _depends(step: Step, known: Mapping[str, Step]) -> dict[str, bool]:
    """The steps that a step waits for, and whether for all of their tasks."""
    found: dict[str, bool] = {}
    for written in step.depends:
        name, everything = dependency(written)
        if name in known and name != step.name:
            found[name] = found.get(name, False) or everything
    return found


def _sorted(parents: Mapping[str, Mapping[str, bool]]) -> list[str] | None:
    """The steps, each behind those it waits for; None if that can't be."""
    order: dict[str, None] = {}
    left = list(parents)
    while left:
        ready = [name for name in left if all(parent in order for parent in parents[name])]
        if not ready:
            return None
        order.update(dict.fromkeys(ready))
        left = [name for name in left if name not in order]
    return list(order)
