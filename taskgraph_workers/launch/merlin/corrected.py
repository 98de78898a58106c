"""The same spec, written so that Merlin does what it says: a queue for each group, keys it knows.

Only what Merlin would do otherwise is changed. What can't be changed without guessing is left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from taskgraph_workers.errors import Path
from taskgraph_workers.launch.merlin.edits import Editor, Impossible
from taskgraph_workers.launch.merlin.model import Spec, Step
from taskgraph_workers.launch.merlin.notes import WORKERS
from taskgraph_workers.launch.merlin.parts import Part
from taskgraph_workers.launch.merlin.queues import Clash, Group
from taskgraph_workers.launch.model import Demand, WorkerGroup

#: Where a spec says that several groups may take from one queue.
OVERLAP: Path = (*WORKERS[:-1], "overlap")

#: Flags that ask for GPUs, in raw flags for srun.
_GPU_FLAG = re.compile(r"gres|gpu")

#: A concurrency in arguments, as a number that is written there.
_CONCURRENCY = re.compile(r"(?<!\S)(?:--concurrency[= ]|-c ?)\d+(?!\S)")


def corrected(spec: Spec, part: Part, made: Mapping[str, WorkerGroup]) -> str | None:
    """The corrected text; None where there is nothing to correct, or nothing that could be.

    ``made`` are all groups as they would be launched, those too that Merlin would not start.
    """
    if not spec.text:
        return None
    try:
        editor = Editor(spec.text)
        changed = [_apart(spec, clash, editor) for clash in part.clashes]
        for place, step in enumerate(spec.steps):
            changed.append(_step(step, ("study", place, "run"), part.batch.type, editor))
        if not any(changed):
            return None
        for group in [*part.groups, *(c.group for c in part.clashes if not c.starts)]:
            _number(group, made[group.name].number, editor)
        return editor.result()
    except Impossible:
        return None


def _step(step: Step, path: Path, type: str, editor: Editor) -> bool:
    """Write the sizes of a step in keys that reach its launcher. Whether any was changed."""
    if step.demand is None or "$(LAUNCHER)" not in editor.written((*path, "cmd")):
        return False
    first = _tasks(step.demand, path, editor)
    return _gpus(step.demand, path, type, editor) or first


def _tasks(demand: Demand, path: Path, editor: Editor) -> bool:
    """``procs``, without which no launcher works, and ``cores`` as such or for each of them."""
    procs, cores = (editor.current((*path, key)) for key in ("procs", "cores"))
    if cores is None and procs is None:
        nodes = editor.current((*path, "nodes"))
        editor.set((*path, "procs"), nodes if isinstance(nodes, str) else demand.nodes)
    elif procs is None and editor.current((*path, "gpus per task")):
        # More tasks would be more GPUs: one on each node, as it is now, with all of its cores.
        editor.rename((*path, "cores"), "cores per task", demand.cores)
        editor.set((*path, "procs"), demand.nodes)
    elif procs is None:
        few = isinstance(cores, int) and cores < demand.nodes
        editor.rename((*path, "cores"), "procs", demand.nodes if few else None)
    elif cores is not None and isinstance(procs, int) and procs > 0:
        each = -(-procs // demand.nodes)
        if demand.cores % each:
            return False
        editor.rename((*path, "cores"), "cores per task", demand.cores // each)
    else:
        return False
    return True


def _gpus(demand: Demand, path: Path, type: str, editor: Editor) -> bool:
    """GPUs as Merlin hands them on: raw flags for Slurm, ``gpus per task`` for the others."""
    key = next((k for k in ("gpus", "gpus per task") if editor.has((*path, k))), "")
    if type in ("slurm", "lsf-srun") and key and demand.gpus:
        return _gres(demand.gpus, (*path, key), editor)
    total, procs = (editor.current((*path, name)) for name in ("gpus", "procs"))
    whole = isinstance(total, int) and isinstance(procs, int) and procs > 0
    if type not in ("flux", "lsf") or key != "gpus" or not whole or total % procs:
        return False
    editor.rename((*path, key), "gpus per task", total // procs)
    return True


def _gres(gpus: int, path: Path, editor: Editor) -> bool:
    """GPUs of a node in the raw flags for srun, instead of a key that it never sees."""
    raw, flag = (*path[:-1], "slurm"), f"--gres=gpu:{gpus}"
    written = editor.written(raw)
    if _GPU_FLAG.search(written):
        return False
    if written:
        editor.set(raw, f"{written} {flag}")
        editor.remove(path)
    else:
        editor.rename(path, "slurm", flag)
    return True


def _apart(spec: Spec, clash: Clash, editor: Editor) -> bool:
    """A queue of its own for each of two groups that share one by accident; else leave to share."""
    mine, theirs = (
        [step for step in group.named if step.queue in clash.queues]
        for group in (clash.group, clash.first)
    )
    if clash.starts or clash.group.implied:
        return False
    named = {step.name for step in theirs}
    if any(step.name in named for step in mine):
        # Queues can't part groups that name the same step.
        editor.set(OVERLAP, True)
        return True
    moved = [(clash.group, mine)]
    others = any(s.queue in clash.queues and s not in mine and s not in theirs for s in spec.steps)
    if not others and not any(step.queue_line for step in theirs):
        moved.append((clash.first, theirs))
    for group, steps in moved:
        for step in steps:
            place = next(at for at, each in enumerate(spec.steps) if each.name == step.name)
            editor.set(("study", place, "run", "task_queue"), _queue(spec, group))
    return True


def _queue(spec: Spec, group: Group) -> str:
    """A queue's name for a group, which no step has."""
    taken = {step.queue for step in spec.steps}
    name = group.name
    while name in taken:
        name += "_queue"
    return name


def _number(group: Group, number: int, editor: Editor) -> None:
    """``number`` in place of the nodes and the concurrency that it came from.

    They would have to be changed with it. ``--concurrency 1`` is what each worker has, and without
    it Merlin itself would start one for each core of a node.
    """
    each = group.args.concurrency
    if group.implied or group.worker.number is not None or each is None or "$" in group.args.said:
        return
    key = editor.key_at(WORKERS, group.worker.line)
    if key is None or (group.worker.nodes or 1) * each != number:
        return
    path = (*WORKERS, key)
    if each > 1:
        said = _CONCURRENCY.findall(editor.written((*path, "args")))
        if len(said) != 1:
            return
        editor.substitute((*path, "args"), said[0], re.sub(r"\d+", "1", said[0]))
    if editor.has((*path, "nodes")):
        editor.rename((*path, "nodes"), "number", number)
    else:
        editor.set((*path, "number"), number)
