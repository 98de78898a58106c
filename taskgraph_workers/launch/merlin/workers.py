"""How many workers a group has, and the command that becomes one of them."""

from __future__ import annotations

from typing import NamedTuple

from taskgraph_workers.launch.merlin.args import WorkerArgs, quoted
from taskgraph_workers.launch.merlin.model import Batch, Worker
from taskgraph_workers.launch.merlin.notes import Notes
from taskgraph_workers.launch.merlin.options import Options
from taskgraph_workers.launch.merlin.queues import Group
from taskgraph_workers.launch.model import Demand, WorkerGroup
from taskgraph_workers.machines import Node
from taskgraph_workers.schedulers.quoting import check, inner

#: In a worker's name these mean something to Celery, to Merlin, to a path or to a shell.
_UNFIT = frozenset(" @%/\\\"'`$;&|<>(){}[]*?!#~,\t")


class Count(NamedTuple):
    """How many workers, and how that came about."""

    number: int
    why: str


def worker_group(group: Group, batch: Batch, options: Options, notes: Notes) -> WorkerGroup:
    """A group as it is launched: N single workers, each under a name of its own."""
    worker, args = group.worker, group.args
    path, line = (*group.path, "args"), worker.lines.get("args", worker.line)
    for fault in args.faults:
        notes.error(fault, path, line)
    for remark in args.remarks:
        notes.warn(f"{group.name}: {remark}", path, line)
    _check_name(group, notes)
    count = counted(group, batch, options, notes)
    demands = (step.demand for step in group.steps if step.demand is not None)
    made = WorkerGroup(
        name=group.name,
        number=count.number,
        demands=tuple(_on(demand, options.node) for demand in demands),
        command=_command(group, options, notes),
        named=tuple(step.name for step in group.named),
        queues=tuple(options.queue_tag + queue for queue in group.queues),
        unread=tuple(step.name for step in group.steps if step.demand is None),
        why=count.why,
        line=worker.line,
    )
    if not made.holds or not any(demand.gpus for demand in made.demands):
        return made
    from taskgraph_workers.launch.env import detected

    return made._replace(tried=detected())


def _on(demand: Demand, node: Node | None) -> Demand:
    """A demand on nodes of this kind: one for whole nodes takes every core of them."""
    if demand.whole and node is not None and node.cores is not None:
        return demand._replace(cores=max(demand.cores, node.cores))
    return demand


def counted(group: Group, batch: Batch, options: Options, notes: Notes) -> Count:
    """How many workers: ``number``, else nodes times concurrency."""
    worker = group.worker
    if worker.number is not None:
        _consistent(group, notes)
        return Count(worker.number, f"number: {worker.number}")
    nodes, nodes_said = _nodes(worker, batch, options)
    each, each_said = _each(group.args, options)
    if not each:
        each = 1
        what = f"{group.name} has no --concurrency, and what a node has is not known: one is taken"
        line = worker.lines.get("args", worker.line)
        hint = "write `number: N`, or give --node cores=N: Merlin starts one per core of a node"
        notes.warn(what, group.path, line, hint)
    said = " x ".join(part for part in (nodes_said, each_said) if part)
    return Count(nodes * each, said or "neither `number` nor --concurrency is written")


def _nodes(worker: Worker, batch: Batch, options: Options) -> tuple[int, str]:
    if worker.nodes is not None:
        return worker.nodes, f"nodes: {worker.nodes}"
    nodes = batch.header.nodes
    if nodes is not None:
        return nodes, f"batch.nodes: {nodes}"
    if options.nodes is not None:
        return options.nodes, f"--nodes {options.nodes}"
    return 1, ""


def _each(args: WorkerArgs, options: Options) -> tuple[int | None, str]:
    if args.concurrency is not None:
        return args.concurrency, args.said
    cores = options.node.cores if options.node else None
    return cores, f"{cores} cores of a node, since there is no --concurrency" if cores else ""


def _consistent(group: Group, notes: Notes) -> None:
    """Refuse a ``number`` that ``nodes`` and ``--concurrency`` contradict."""
    worker, args = group.worker, group.args
    concurrency = args.concurrency
    if concurrency is None or (worker.nodes is None and concurrency == 1):
        return
    if (worker.nodes or 1) * concurrency == worker.number:
        return
    nodes = f"nodes: {worker.nodes}" if worker.nodes else "nodes (not written)"
    what = f"number: {worker.number}, {nodes} and {args.said} say different things"
    total = f"{worker.nodes or 1} x {concurrency} are {(worker.nodes or 1) * concurrency} workers"
    hint = f"{total}; keep `number` alone, with --concurrency 1"
    notes.error(
        f"{group.name}: {what}",
        (*group.path, "number"),
        worker.lines.get("number", worker.line),
        hint,
    )


def _check_name(group: Group, notes: Notes) -> None:
    bad = sorted(_UNFIT & set(group.name))
    fault = f"has {' and '.join(map(repr, bad))} in it" if bad else ""
    try:
        check(group.name)
    except ValueError as error:
        fault = str(error)
    if fault:
        what = f"worker {group.name!r}: its name {fault}"
        hint = "use letters, digits, _, - and ."
        notes.error(what, group.path, group.worker.line, hint)


def _command(group: Group, options: Options, notes: Notes) -> str:
    """The line for bash. Where something can't be said in it, that is noted."""
    args = group.args
    words = list(args.words)
    if args.loglevel is None:
        # Merlin writes its own level where none is said.
        words += ["-l", "INFO"]
    if args.prefetch is None:
        # Celery's own is 4: one of our workers would hold tasks back while others have none.
        words += ["--prefetch-multiplier", "1"]
    served = ",".join(options.queue_tag + queue for queue in group.queues)
    for step in group.steps:
        if "," in step.queue:
            what = f"queue {step.queue!r} has a comma in it: celery would take it for two"
            notes.error(what, ("study", step.name), step.queue_line or step.line)
    try:
        kept = " ".join(map(quoted, words))
        return (
            f"exec celery -A merlin worker {kept} --concurrency 1"
            f' -n "$WORKER_NAME" -Q {inner(served)}'
        )
    except ValueError as error:
        notes.error(str(error), group.path, group.worker.line)
        return ""
