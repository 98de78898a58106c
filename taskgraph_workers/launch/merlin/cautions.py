"""Where Merlin itself would do something else than the spec seems to say, each told once.

What single keys come to is told where they are read; this is about what follows from several.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from taskgraph_workers import units
from taskgraph_workers.errors import listed
from taskgraph_workers.launch.merlin.chains import Chain
from taskgraph_workers.launch.merlin.model import Spec, Step
from taskgraph_workers.launch.merlin.notes import Notes
from taskgraph_workers.launch.merlin.options import Options
from taskgraph_workers.launch.merlin.parts import Part
from taskgraph_workers.launch.merlin.queues import Clash, Group, unserved
from taskgraph_workers.launch.model import MAY_NOT_START, NEVER_RUNS, NEVER_STARTS, WorkerGroup

#: On Redis a task that nobody has acknowledged for so long is handed out again
#: (Merlin's celeryconfig.py, visibility_timeout).
VISIBILITY_S = 24 * 3600

#: A line of set-up that may bring Flux: a module, an environment, a path.
_BRINGS = r"\b(module|ml|spack|conda|mamba|source|activate|flux|PATH)\b|^\s*\. "


class Case(NamedTuple):
    """All that is looked at."""

    spec: Spec
    part: Part
    workers: tuple[WorkerGroup, ...]
    chains: tuple[Chain, ...]
    options: Options
    celery: str | None = None

    @property
    def scheduler(self) -> str:
        """What the job goes to, as far as that is known."""
        return self.options.scheduler or self.part.batch.type

    @property
    def pairs(self) -> Iterable[tuple[Group, WorkerGroup]]:
        """Each group that is launched, as written and as launched."""
        return zip(self.part.groups, self.workers)


def caution(case: Case, notes: Notes) -> None:
    """Note all of it."""
    for clash in case.part.clashes:
        _clash(clash, notes)
    _closures(case, notes)
    _unserved(case, notes)
    _names(case, notes)
    _misread(case, notes)
    _one_node(case, notes)
    _written_names(case, notes)
    _prefetch(case, notes)
    _gpus(case, notes)
    _walltimes(case, notes)
    _launch_keys(case, notes)
    _celery(case, notes)
    _flux(case, notes)


def _clash(clash: Clash, notes: Notes) -> None:
    group, first, queues = clash.group, clash.first.name, listed(clash.queues)
    if group.implied:
        # Nobody wrote it; and what it has to itself, it does run.
        return
    if clash.starts:
        what = f"{group.name} takes from queue {queues}, as {first} does, and overlap is off"
        hint = "Merlin may leave such a group out; write overlap: true, or give steps other queues"
        notes.warn(what, group.path, group.worker.line, hint)
        return
    what = f"{group.name} never starts in Merlin: {first} serves queue {queues} already"
    code = NEVER_STARTS
    if set(clash.first.queues) != set(group.queues):
        what = f"{group.name} is left out: {first} serves queue {queues} already, overlap is off"
        code = MAY_NOT_START
    hint = "give its steps a task_queue of their own, or write overlap: true"
    if any(not step.queue_line for step in group.named):
        hint += "; steps without one share the queue merlin"
    notes.never((code, [group.name]), what, (group.path, group.worker.line), hint)


def _closures(case: Case, notes: Notes) -> None:
    """Say which steps groups run beyond those they name."""
    for group in case.part.groups:
        more = [step for step in group.steps if step not in group.named]
        if more:
            queues = listed(step.queue for step in more)
            steps = ", ".join(map(_at, more))
            what = f"{group.name} also runs {steps}, since it serves queue {queues}"
            names = listed(step.name for step in more)
            own = "its own" if len(more) == 1 else "their own"
            hint = f"workers serve queues, not steps: give {names} a task_queue of {own}"
            line = group.worker.lines.get("steps", group.worker.line)
            notes.warn(what, (*group.path, "steps"), line, hint)


def _at(step: Step) -> str:
    return f"{step.name} (line {step.line})" if step.line else step.name


def _unserved(case: Case, notes: Notes) -> None:
    for queue in dict.fromkeys(s.queue for s in unserved(case.spec, case.part.everywhere)):
        steps = [step for step in case.spec.steps if step.queue == queue]
        what = f"no worker serves queue {queue}, that of {', '.join(map(_at, steps))}"
        hint = "the whole study can stall there: name the steps in a worker that starts"
        place = ("study",), steps[0].queue_line or steps[0].line
        notes.never((NEVER_RUNS, [step.name for step in steps]), what, place, hint)


def _names(case: Case, notes: Notes) -> None:
    """On several nodes, Merlin's workers of one group all have one name."""
    for group in case.part.groups:
        nodes = group.worker.nodes or case.part.batch.header.nodes or 1
        if nodes > 1 and group.worker.number is None and not _local(case):
            what = f"merlin run-workers gives the workers on {nodes} nodes one name"
            hint = "this script gives each a name of its own, so that query-workers shows all"
            line = group.worker.lines.get("nodes", group.worker.line)
            notes.warn(f"{group.name}: {what}", (*group.path, "nodes"), line, hint)
            return


def _local(case: Case) -> bool:
    return case.part.batch.type == "local" or "lsf" in case.part.batch.type


def _misread(case: Case, notes: Notes) -> None:
    """A worker's nodes that look like those of its task."""
    for group, workers in case.pairs:
        nodes, most = group.worker.nodes, max((d.nodes for d in workers.demands), default=1)
        if group.worker.number is None and nodes and nodes == most > 1:
            what = f"nodes: {nodes} makes {workers.number} workers of {group.name} on {nodes} nodes"
            hint = f"if one worker for tasks of {nodes} nodes is meant: number: 1 instead of nodes"
            line = group.worker.lines.get("nodes", group.worker.line)
            notes.warn(what, (*group.path, "nodes"), line, hint)


def _one_node(case: Case, notes: Notes) -> None:
    wide = [group for group in case.part.groups if (group.worker.nodes or 1) > 1]
    if wide and _local(case):
        type, worker = case.part.batch.type, wide[0].worker
        what = f"merlin run-workers starts {worker.name} on one node only with batch type {type}"
        hint = f"this script starts it on its {worker.nodes} nodes"
        notes.warn(what, (*wide[0].path, "nodes"), worker.lines.get("nodes", worker.line), hint)


def _written_names(case: Case, notes: Notes) -> None:
    """Names and queues that stand in the arguments of a worker."""
    for group in case.part.groups:
        args = group.args
        line = group.worker.lines.get("args", group.worker.line)
        if args.name is not None:
            what = f"{group.name}: -n {args.name} in args is left out"
            hint = "every worker needs a name of its own: this script gives it"
            notes.warn(what, (*group.path, "args"), line, hint)
        if args.queues is not None:
            what = f"{group.name}: -Q {args.queues} in args has no effect"
            hint = "Merlin writes -Q behind it, with the queues of the group's steps, and so do we"
            notes.warn(what, (*group.path, "args"), line, hint)


def _prefetch(case: Case, notes: Notes) -> None:
    """Workers of one process each that are told to take more than one task."""
    greedy = [
        group
        for group, workers in case.pairs
        if workers.number > 1 and group.args.prefetch not in (None, "1")
    ]
    if greedy:
        names = listed(group.name for group in greedy)
        what = f"{names}: each worker takes more than one task, while others may have none"
        line = greedy[0].worker.lines.get("args", greedy[0].worker.line)
        notes.warn(what, (*greedy[0].path, "args"), line, "say --prefetch-multiplier 1 in args")


def _gpus(case: Case, notes: Notes) -> None:
    """Several needs of GPUs in a group: its workers hand all tasks the same (Slurm's GRES)."""
    if case.scheduler != "slurm":
        return
    for group, workers in case.pairs:
        needs = {demand.gpus: demand.step for demand in workers.demands if demand.launcher}
        if len(needs) > 1:
            shown = ", ".join(f"{step} {gpus}" for gpus, step in sorted(needs.items()))
            what = f"{group.name} runs steps that need different GPUs on a node ({shown})"
            hint = "give them queues and workers of their own, or slurm: --gres=gpu:N in each step"
            notes.warn(what, group.path, group.worker.line, hint)


def _walltimes(case: Case, notes: Notes) -> None:
    limit = case.options.walltime_s or case.part.batch.header.walltime_s
    longest: dict[str, tuple[int, int]] = {}
    for workers in case.workers:
        for demand in workers.demands:
            longest[demand.step] = (demand.walltime_s or 0, demand.line)
    name, (most, line) = max(longest.items(), key=lambda each: each[1][0], default=("", (0, 0)))
    if limit and most > limit:
        takes, ends = units.clock_text(most), units.clock_text(limit)
        what = f"a task of {name} may take {takes}, but the job ends after {ends}"
        hint = "ask for more; what is killed comes back after 24 h only, where the broker is Redis"
        notes.warn(what, ("study",), line, hint)
    if most > VISIBILITY_S:
        what = f"a task of {name} may take more than 24 h: on Redis it is then started twice"
        hint = "set visibility_timeout in celery.override of Merlin's app.yaml"
        notes.warn(what, ("study",), line, hint)


def _launch_keys(case: Case, notes: Notes) -> None:
    """What is said about Merlin's own way of starting workers, which is not used."""
    batch = case.part.batch
    keys = ("launch_pre", "launch_args", "worker_launch", "flux_start_opts")
    said = [key for key in keys if getattr(batch, key)]
    if said:
        what = f"{', '.join(said)} in batch: for Merlin's own start of workers, which is not used"
        hint = "if it sets something up, the setup of a cluster in workers-config can do it"
        notes.warn(what, ("batch",), batch.line, hint)


def _celery(case: Case, notes: Notes) -> None:
    """With celery 5.7.0 the second step of a chain never ran (5.4 to 5.6: always)."""
    chained: Sequence[tuple[str, ...]] = [c.steps for c in case.chains if len(c.steps) > 1]
    found = re.match(r"(\d+)\.(\d+)", case.celery or "")
    if found and chained and (int(found[1]), int(found[2])) >= (5, 7):
        first, second = chained[0][:2]
        line = next(step.line for step in case.spec.steps if step.name == second)
        what = f"with celery {case.celery} Merlin never runs {second} behind {first}, silently"
        hint = "install celery<5.7 beside Merlin"
        notes.never((NEVER_RUNS, [second]), what, (("study",), line), hint)


def _flux(case: Case, notes: Notes) -> None:
    """Another scheduler's job that starts Flux, of which nothing here tells where it is."""
    batch, launches = case.part.batch, (d.launcher for w in case.workers for d in w.demands)
    inside = batch.scheduler == "flux" != case.scheduler and any(launches)
    brought = batch.flux_path or any(re.search(_BRINGS, each) for each in case.options.setup)
    if inside and not brought and shutil.which("flux") is None:
        what = f"there is no command flux here, and the job of {case.scheduler} starts it"
        hint = "on nodes with a module: setup: [module load flux] of a cluster in workers-config"
        notes.warn(what, ("batch", "type"), batch.line, hint)


def no_merlin(notes: Notes) -> None:
    """Note that Merlin itself was not found."""
    what = "there is no command merlin here, and the script needs it where it runs"
    notes.warn(what, hint="activate the environment that has it, and call launch again")
