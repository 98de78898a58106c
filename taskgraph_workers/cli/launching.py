"""What ``launch`` is about to do, as a value: what is asked, the size, the layout, the script."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from taskgraph_workers.cli import facts
from taskgraph_workers.cli.launch_sources import Said, Site, Spec, find_site, present, read_options
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError

if TYPE_CHECKING:
    from taskgraph_workers.launch.model import Ask, Demand, Layout, Sizing, WorkerGroup
    from taskgraph_workers.launch.script import Script
    from taskgraph_workers.machines import Cluster, Header, Node
    from taskgraph_workers.schedulers.base import Job, Scheduler, Start

#: Where a job's output goes that nobody says a name for.
OUTPUT = "workers-{id}.out"


class Plan(NamedTuple):
    """All there is to know of one launch.

    ``known`` is the scheduler that gets the job; None where nothing says it, and only sizes are
    asked for. ``inside`` is Flux, where the scheduler starts that for the tasks. ``node`` is what
    one node is taken to have, and ``node_from`` who says so. ``blockers`` are why the job would
    never run.
    """

    ask: Ask
    header: Header
    known: Scheduler | None
    inside: Scheduler | None
    node: Node | None
    node_from: str
    sizing: Sizing
    layout: Layout
    margin_s: int | None
    requeues: int
    notes: tuple[Problem, ...]
    blockers: tuple[Problem, ...]

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler that gets the job. Raises WorkersError where nothing says it."""
        return _needed(self.known)


def plan(args: argparse.Namespace, output: Output) -> Plan:
    """What the command line asks for. Raises WorkersError with every fault."""
    said = read_options(args)
    site = find_site(args, output)
    source: Spec | Site = Spec(args, said, site) if args.spec is not None else present(site)
    cluster = site.cluster if site else None
    scheduler, native = _scheduler(args, source, cluster)
    if not args.size:
        _needed(scheduler)
    queue = args.queue or source.queue or (cluster.header.queue if cluster else None)
    found = facts.look(scheduler, queue) if scheduler else facts.Found()
    given = _given(said, cluster)
    # What groups take is not known yet, and may decide which of several kinds of node is meant.
    first = given or facts.choose(found, ())
    name = scheduler.name if scheduler else None
    ask = source.ask(first.node, name)
    chosen = given or facts.choose(found, ask.groups)
    if chosen.node != first.node:
        ask = source.ask(chosen.node, name)
    return _planned(args, said, _Where(cluster, scheduler, native, found, chosen), ask)


def _scheduler(
    args: argparse.Namespace, source: Spec | Site, cluster: Cluster | None
) -> tuple[Scheduler | None, str | None]:
    """The scheduler that gets the job, if any, and the one that this machine has, if asked for.

    An option says it, else a cluster, which has this one; else this machine, else the spec.
    """
    from taskgraph_workers import schedulers

    native = schedulers.native() if args.scheduler is None else None
    name = args.scheduler or (cluster.scheduler if cluster else None) or native or source.scheduler
    return schedulers.find(name) if name else None, native


def _needed(scheduler: Scheduler | None) -> Scheduler:
    if scheduler is None:
        from taskgraph_workers import schedulers

        hint = f"say --scheduler: {', '.join(schedulers.NAMES)}"
        raise WorkersError(Problem("nothing says which scheduler gets the job", hint=hint))
    return scheduler


def _given(said: Said, cluster: Cluster | None) -> facts.Chosen | None:
    """What a node has, where somebody says so."""
    if said.node is not None:
        return facts.Chosen(said.node, "--node")
    if cluster is not None and cluster.node is not None:
        return facts.Chosen(cluster.node, f"cluster {cluster.name}")
    return None


class _Where(NamedTuple):
    cluster: Cluster | None
    scheduler: Scheduler | None
    native: str | None
    found: facts.Found
    chosen: facts.Chosen


def _planned(args: argparse.Namespace, said: Said, where: _Where, ask: Ask) -> Plan:
    from taskgraph_workers.launch.layout import layout
    from taskgraph_workers.launch.size import size

    cluster, node = where.cluster, where.chosen.node
    header = _header(args, said, ask, cluster)
    try:
        sizing = size(ask.groups, node, ask.stages, args.mode, header.nodes)
    except WorkersError as error:
        # Why what a node has is unknown, too, and which steps can't be read.
        problems = (*where.found.unknown, *(_at(each, ask) for each in error.problems))
        raise type(error)(*problems, *ask.notes) from None
    notes = [*ask.notes, *where.chosen.notes, *_differs(where)]
    notes += [_at(note, ask) for note in sizing.notes]
    blockers = facts.limits(where.found, header.walltime_s, sizing.nodes)
    margin, requeues = said.margin_s, args.requeue
    if cluster is not None:
        margin = cluster.margin_s if margin is None else margin
        requeues = cluster.requeue if requeues is None else requeues
    return Plan(
        ask=ask,
        header=header,
        known=where.scheduler,
        inside=_inside(ask, where.scheduler),
        node=node,
        node_from=where.chosen.source,
        sizing=sizing,
        layout=layout(ask.groups, node, sizing.nodes),
        margin_s=margin,
        requeues=requeues or 0,
        notes=(*notes, *_timeless(header), *_untried(where.scheduler)),
        blockers=blockers,
    )


# --- the header ----------------------------------------------------------------------------


def _header(args: argparse.Namespace, said: Said, ask: Ask, cluster: Cluster | None) -> Header:
    """Options, else what the spec says, else the cluster's defaults."""
    from taskgraph_workers.machines import Header

    options: dict[str, Any] = {key: vars(args).get(key) for key in Header._fields}
    options |= {"walltime_s": said.walltime_s, "directives": tuple(args.directive)}
    given = Header(**options)
    layers = (given, ask.header, cluster.header if cluster else Header())
    whole: list[Any] = [next((x for x in each if x is not None), None) for each in zip(*layers)]
    lines = dict.fromkeys(line for layer in reversed(layers) for line in layer.directives)
    return Header(*whole)._replace(directives=tuple(lines))


# --- what has to be said --------------------------------------------------------------------


def _inside(ask: Ask, scheduler: Scheduler | None) -> Scheduler | None:
    """Flux, where tasks start their processes with it and another scheduler gets the job."""
    from taskgraph_workers import schedulers

    launches = any(demand.launcher for group in ask.groups for demand in group.demands)
    outside = scheduler is not None and scheduler.starts_flux != ""
    return schedulers.find("flux") if ask.scheduler == "flux" and outside and launches else None


def _differs(where: _Where) -> Iterable[Problem]:
    """A cluster that is another one than that of this machine."""
    name = where.scheduler.name if where.scheduler else None
    if where.cluster is not None and where.native not in (None, name):
        what = f"cluster {where.cluster.name} has {name}, and this machine has {where.native}"
        yield Problem(what, hint="submit the script there", severity="warning")


def _timeless(header: Header) -> Iterable[Problem]:
    from taskgraph_workers.launch.model import OPTION

    if header.walltime_s is None:
        what = "no walltime is said, so the script can't end its workers before the job's limit"
        yield Problem(what, hint="--walltime 2h", severity="warning", code=OPTION)


def _at(problem: Problem, ask: Ask) -> Problem:
    """A problem of sizing knows a line, and not of which file."""
    if problem.file or not problem.line or not ask.file:
        return problem
    from taskgraph_workers.config.locate import Source

    return problem._replace(file=Source(ask.file).shown)


def _untried(scheduler: Scheduler | None) -> Iterable[Problem]:
    if scheduler is not None and not scheduler.tested:
        what = f"scripts for {scheduler.name} have not been tried on a real {scheduler.name} yet"
        yield Problem(what, hint="read the script, and try a small job first", severity="warning")


# --- the script -----------------------------------------------------------------------------


def script_of(plan: Plan) -> str:
    """The text of the script. Raises WorkersError for what can't stand in it."""
    from taskgraph_workers.launch.script import render

    return render(_script(plan), plan.scheduler, plan.inside)


def _script(plan: Plan) -> Script:
    from taskgraph_workers.launch.env import commands_of
    from taskgraph_workers.launch.script import Script

    commands = commands_of(plan.ask.groups)
    starts = [_start(group, plan, commands.lines[group.name]) for group in plan.ask.groups]
    return Script(
        job=job_of(plan),
        starts=tuple(start for start in starts if start.number),
        about=about(plan),
        setup=plan.ask.setup,
        until=plan.ask.until,
        texts=commands.texts,
        margin_s=plan.margin_s,
        requeues=plan.requeues,
    )


def about(plan: Plan) -> tuple[str, ...]:
    """What the script's comment says of it, in three lines."""
    groups = ", ".join(f"{group.number} {group.name}" for group in plan.ask.groups)
    sizes = ", ".join(
        f"{mode} {size.nodes if size else 'unknown'}" for mode, size in plan.sizing.sizes.items()
    )
    file = os.path.basename(plan.ask.file)
    return (
        f"workers: {groups}, of {plan.ask.title}" + (f" ({file})" if file else ""),
        f"nodes: {plan.sizing.nodes} ({plan.sizing.mode}); {sizes}",
        f"a node: {facts.node_text(plan.node)}" + (f" ({plan.node_from})" * bool(plan.node_from)),
    )


def job_of(plan: Plan) -> Job:
    """What the batch job asks for."""
    from taskgraph_workers.schedulers.base import Job

    header = plan.header
    demands = [demand for group in plan.ask.groups for demand in group.demands]
    gpus = max((demand.gpus for demand in demands), default=0)
    node = plan.node
    return Job(
        name=header.name or "workers",
        nodes=plan.sizing.nodes,
        output=header.output or OUTPUT,
        queue=header.queue,
        bank=header.bank,
        walltime_s=header.walltime_s,
        cores=node.cores if node else None,
        # Workers, and tasks, share a node's GPUs: the job takes all of them, or none.
        gpus=((node.gpus if node else None) or gpus) if gpus else None,
        memory_mib=_memory(plan),
        reservation=header.reservation,
        qos=header.qos,
        constraint=header.constraint,
        requeue=plan.requeues > 0,
        directives=header.directives,
    )


def _memory(plan: Plan) -> int | None:
    """What all tasks take of the fullest node; None where nobody says what a task takes."""
    used = [sum(share.memory_mib for share in node.shares) for node in plan.layout.nodes]
    return max(used, default=0) or None


def _start(group: WorkerGroup, plan: Plan, command: str) -> Start:
    from taskgraph_workers.schedulers.base import Start

    own = [demand for demand in group.demands if demand.launcher]
    gpus = {demand.gpus for demand in own}
    return Start(
        name=group.name,
        per_node=plan.layout.per_node(group.name),
        command=command,
        holds=group.holds,
        cores=max((demand.cores for demand in group.demands), default=1),
        gpus=max((demand.gpus for demand in group.demands), default=0) if group.holds else 0,
        memory_mib=max((d.memory_mib for d in group.demands), default=0) or None,
        task_gpus=gpus.pop() if len(gpus) == 1 else None,
        task_nodes=_task_nodes(own, plan.node),
    )


def _task_nodes(demands: Iterable[Demand], node: Node | None) -> int | None:
    """On how many nodes those were sized that don't say it; None where they differ.

    Where nobody knows a node's cores, a task may need more than one has, and is left to itself.
    """
    found = {demand.nodes for demand in demands if not demand.says_nodes}
    return found.pop() if len(found) == 1 and node is not None and node.cores else None
