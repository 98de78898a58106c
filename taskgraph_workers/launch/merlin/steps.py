"""The steps of a study: what each task of one takes, which queue it waits in, what it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskgraph_workers.errors import Path, did_you_mean, said
from taskgraph_workers.launch.merlin import schema, strict
from taskgraph_workers.launch.merlin.demand import Inherited, demand
from taskgraph_workers.launch.merlin.model import Step, dependency
from taskgraph_workers.launch.merlin.values import Reader

#: What makes Merlin run a step for each sample, besides the columns' names.
_SAMPLE_WORDS = frozenset(
    {
        *("MERLIN_SAMPLE_ID", "MERLIN_SAMPLE_PATH", "merlin_sample_id", "merlin_sample_path"),
        # Becomes the columns' names, before Merlin looks for these.
        "MERLIN_SAMPLE_VECTOR",
    }
)


class Steps:
    """Reads the steps. ``header`` is of the spec's batch block; ``sampled``: it has samples."""

    def __init__(self, reader: Reader, header: Inherited, sampled: bool) -> None:
        self.reader = reader
        self.document = reader.document
        self.header = header
        self.sampled = sampled
        #: Whose workspaces each step uses.
        self.workspaces: dict[str, set[str]] = {}

    def read(self) -> tuple[Step, ...]:
        """All of them; a fault where there is none."""
        raw = self.document.value.get("study")
        if raw is not None and not isinstance(raw, list):
            self.document.wrong(f"must be a list of steps, not {said(raw)}", ("study",))
            return ()
        if not raw:
            self.document.error("a spec needs at least one step", ("study",))
            return ()
        found = [self.step(each, ("study", place)) for place, each in enumerate(raw)]
        steps = [step for step in found if step is not None]
        self._once(steps)
        return self._inherit(steps) if self._depends(steps) else tuple(steps)

    def step(self, raw: object, path: Path) -> Step | None:
        """One step; None where it has no name."""
        if not isinstance(raw, dict):
            self.document.error(f"a step must be a mapping, not {said(raw)}", path)
            return None
        block = schema.mapping(self.document, raw, path)
        schema.unknown(self.document, block, path, schema.STEP, "a step")
        name = self._required(block, "name", path)
        self._required(block, "description", path)
        run_path = (*path, "run")
        if block.get("run") is None:
            self.document.error("a step needs a run, with a cmd in it", path)
        run = schema.mapping(self.document, block.get("run"), run_path)
        schema.unknown(self.document, run, run_path, schema.RUN, "a step's run")
        strict.check(self.document, run, run_path, strict.RUN)
        if run or block.get("run") is not None:
            self._required(run, "cmd", run_path)
        if name is None:
            return None
        return self._step(name, block, run, path)

    def _required(self, block: Mapping[str, Any], key: str, path: Path) -> str | None:
        value = block.get(key)
        if isinstance(value, str) and value:
            return self.reader.variables.replace(value)
        if value is None or value == "":
            at = (*path, key) if key in block else path
            self.document.wrong(f"needs a {key}", at)
            return None
        return self.reader.text(value, (*path, key))

    def _step(self, name: str, block: dict[str, Any], run: dict[str, Any], path: Path) -> Step:
        run_path = (*path, "run")
        queue = self._queue(run.get("task_queue"), (*run_path, "task_queue"))
        depends = self.reader.texts(run.get("depends") or None, (*run_path, "depends")) or ()
        self.workspaces[name] = self._workspaces(run)
        name_path = (*path, "name")
        line = self.document.line(name_path)
        return Step(
            name=name,
            demand=demand(self.reader, name, run, (run_path, line), self.header),
            queue=queue,
            depends=depends,
            parameters=self._parameters(block),
            samples=self._samples(run),
            line=line,
            queue_line=self.document.line((*run_path, "task_queue")) if "task_queue" in run else 0,
        )

    def _queue(self, raw: object, path: Path) -> str:
        queue = self.reader.fixed(raw, path)
        if queue is not None and queue.strip().lower() == "none":
            what = f"Merlin takes {queue} for no queue at all: tasks and workers would not meet"
            self.document.error(what, path, "give it a name, or leave it out")
        return queue or "merlin"

    def _parameters(self, block: dict[str, Any]) -> frozenset[str]:
        """The global parameters that stand anywhere in a step, as Maestro looks for them."""
        names = self.reader.parameters
        if not names:
            return frozenset()
        found: set[str] = set()
        for text in _texts(block):
            for name in self.reader.variables.left(self.reader.variables.replace(text)):
                found.update({name, name.partition(".")[0]} & names.keys())
        return frozenset(found)

    def _samples(self, run: dict[str, Any]) -> bool:
        if not self.sampled:
            return False
        words = _SAMPLE_WORDS.union(self.reader.columns)
        scripts = [run.get("cmd"), run.get("restart")]
        texts = [self.reader.variables.replace(each) for each in scripts if isinstance(each, str)]
        return any(not words.isdisjoint(self.reader.variables.left(text)) for text in texts)

    def _workspaces(self, run: dict[str, Any]) -> set[str]:
        """The steps whose workspaces stand in its scripts."""
        found: set[str] = set()
        for text in (run.get("cmd"), run.get("restart")):
            for name in self.reader.variables.left(text) if isinstance(text, str) else ():
                step, _, what = name.rpartition(".")
                found.update({step} if what == "workspace" else ())
        return found

    def _once(self, steps: list[Step]) -> None:
        first: dict[str, Step] = {}
        for step in steps:
            if first.setdefault(step.name, step) is not step:
                what = f"there is a step {step.name!r} on line {first[step.name].line} already"
                self.document.error(what, self._path(step))

    def _path(self, step: Step) -> Path:
        """The path of a step's name, of which only the line is known."""
        for place, raw in enumerate(self.document.value["study"]):
            path = ("study", place, "name")
            if isinstance(raw, dict) and self.document.line(path) == step.line:
                return path
        return ("study",)

    def _depends(self, steps: list[Step]) -> bool:
        """Check what steps depend on: whether all of it is there, and none is a circle."""
        names = {step.name: step for step in steps}
        fine = len(names) == len(steps)
        for step in steps:
            for parent in step.depends:
                base, _ = dependency(parent)
                if base not in names:
                    fine = False
                    path = (*self._path(step)[:-1], "run", "depends")
                    what = f"{step.name!r} depends on {parent!r}, and there is no such step"
                    self.document.error(what, path, did_you_mean(base, names))
        return fine and self._no_circle(names)

    def _no_circle(self, names: dict[str, Step]) -> bool:
        left = {name: {dependency(each)[0] for each in names[name].depends} for name in names}
        while free := [name for name, parents in left.items() if not parents & left.keys()]:
            for name in free:
                del left[name]
        if left:
            what = f"these steps wait for one another: {', '.join(left)}"
            self.document.error(what, self._path(names[next(iter(left))]))
        return not left

    def _inherit(self, steps: list[Step]) -> tuple[Step, ...]:
        """Add the parameters of steps that a step depends on, or whose workspace it uses.

        Not of those all of whose runs it waits for (``_*``), as Maestro has it.
        """
        used = {step.name: set(step.parameters) for step in steps}
        parents = {step.name: self._parents(step) & used.keys() for step in steps}
        changed = True
        while changed:
            changed = False
            for name, mine in used.items():
                before = len(mine)
                mine.update(*(used[parent] for parent in parents[name]))
                changed = changed or len(mine) > before
        return tuple(step._replace(parameters=frozenset(used[step.name])) for step in steps)

    def _parents(self, step: Step) -> set[str]:
        depends = [dependency(each) for each in step.depends]
        funnels = {name for name, everything in depends if everything}
        own = {name for name, everything in depends if not everything}
        return own | (self.workspaces[step.name] - funnels)


def _texts(value: object) -> list[str]:
    """Every text in a value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return []
