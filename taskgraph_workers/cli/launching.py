"""What ``launch`` is about to do, as a value: what is asked, the size, the layout, the script."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from taskgraph_workers.cli import facts
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError

if TYPE_CHECKING:
    from taskgraph_workers.cli.reading import Project
    from taskgraph_workers.launch.model import Ask, Header, Layout, Sizing, WorkerGroup
    from taskgraph_workers.launch.script import Script
    from taskgraph_workers.model import Cluster, Node
    from taskgraph_workers.schedulers.base import Job, Scheduler, Start

T = TypeVar("T")

#: Where a job's output goes that nobody says a name for.
OUTPUT = "workers-{id}.out"


@dataclass(frozen=True)
class Plan:
    """All there is to know of one launch.

    ``inside`` is Flux, where the scheduler starts that for the tasks. ``node`` is what one node is
    taken to have, and ``node_from`` who says so. ``blockers`` are why the job would never run.
    """

    ask: Ask
    header: Header
    scheduler: Scheduler
    inside: Scheduler | None
    node: Node | None
    node_from: str
    sizing: Sizing
    layout: Layout
    margin_s: int | None
    requeues: int
    notes: tuple[Problem, ...]
    blockers: tuple[Problem, ...]


@dataclass(frozen=True)
class _Said:
    """What options say that is no text."""

    walltime_s: int | None
    margin_s: int | None
    node: Node | None
    variables: Mapping[str, str]


def plan(args: argparse.Namespace, output: Output) -> Plan:
    """What the command line asks for. Raises WorkersError with every fault."""
    from taskgraph_workers import schedulers

    said = _said(args)
    site = _site(args, output)
    source: _Spec | _Site = _Spec(args, said, site) if args.spec is not None else _present(site)
    cluster = site.cluster if site else None
    native = schedulers.native() if args.scheduler is None else None
    name = args.scheduler or (cluster.scheduler if cluster else None) or native or source.scheduler
    if name is None:
        hint = f"say --scheduler: {', '.join(schedulers.NAMES)}"
        raise WorkersError(Problem("nothing says which scheduler gets the job", hint=hint))
    scheduler = schedulers.find(name)
    queue = args.queue or source.queue or (cluster.queue if cluster else None)
    found = facts.look(scheduler, queue)
    known, who = (said.node, "--node") if said.node else (cluster.node if cluster else None, "")
    known_from = who or (f"cluster {cluster.name}" if cluster else "")
    # What groups take is not known yet, and may decide which of several kinds of node is meant.
    first = facts.choose(known, known_from, found, ())
    ask = source.ask(first.node, name)
    chosen = facts.choose(known, known_from, found, ask.groups)
    if chosen.node != first.node:
        ask = source.ask(chosen.node, name)
    return _planned(args, said, _Where(cluster, scheduler, native, found, chosen), ask)


@dataclass(frozen=True)
class _Where:
    cluster: Cluster | None
    scheduler: Scheduler
    native: str | None
    found: facts.Found
    chosen: facts.Chosen


def _planned(args: argparse.Namespace, said: _Said, where: _Where, ask: Ask) -> Plan:
    from taskgraph_workers.launch.layout import layout
    from taskgraph_workers.launch.size import size

    cluster, node = where.cluster, where.chosen.node
    header = _header(args, said, ask, cluster)
    try:
        sizing = size(ask.groups, node, ask.stages, args.mode, header.nodes)
    except WorkersError as error:
        # Why what a node has is unknown, too.
        problems = (*where.found.unknown, *(_at(each, ask) for each in error.problems))
        raise type(error)(*problems) from None
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
        scheduler=where.scheduler,
        inside=_inside(ask, where.scheduler),
        node=node,
        node_from=where.chosen.source,
        sizing=sizing,
        layout=layout(ask.groups, node, sizing.nodes),
        margin_s=margin,
        requeues=requeues or 0,
        notes=(*notes, *_timeless(header)),
        blockers=blockers,
    )


# --- options --------------------------------------------------------------------------------


def _said(args: argparse.Namespace) -> _Said:
    """What options say, read; every fault at once."""
    from taskgraph_workers.units import seconds

    problems: list[Problem] = []

    def read(option: str, text: str | None, reader: Callable[[str], T]) -> T | None:
        try:
            return None if text is None else reader(text)
        except ValueError as error:
            problems.append(Problem(f"{option}: {error}"))
            return None

    walltime = read("--walltime", args.walltime, seconds)
    margin = read("--margin", args.margin, seconds)
    node = read("--node", args.node, facts.parse_node)
    for option, number, least in (("--nodes", args.nodes, 1), ("--requeue", args.requeue, 0)):
        if number is not None and number < least:
            problems.append(Problem(f"{option}: must be at least {least}, not {number}"))
    if problems:
        raise WorkersError(*problems)
    variables = dict(word.split("=", 1) for word in args.vars)
    return _Said(walltime, margin, node, variables)


def _header(args: argparse.Namespace, said: _Said, ask: Ask, cluster: Cluster | None) -> Header:
    """Options, else what the spec says, else the cluster's defaults."""
    from taskgraph_workers.launch.cluster import header_of
    from taskgraph_workers.launch.model import Header

    defaults = Header() if cluster is None else header_of(cluster)
    given = Header(
        name=args.name,
        nodes=args.nodes,
        output=args.output,
        queue=args.queue,
        bank=args.bank,
        walltime_s=said.walltime_s,
        reservation=args.reservation,
        qos=args.qos,
        constraint=args.constraint,
    )
    layers = [each.__dict__ for each in (given, ask.header, defaults)]
    whole: dict[str, Any] = {
        key: next((each[key] for each in layers if each[key] is not None), None)
        for key in given.__dict__
    }
    lines = dict.fromkeys((*defaults.directives, *ask.header.directives, *args.directive))
    return Header(**{**whole, "directives": tuple(lines)})


# --- where it stands ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Site:
    """A cluster of ``workers-config``, whose groups are launched if there is no spec."""

    args: argparse.Namespace
    output: Output
    project: Project
    cluster: Cluster

    @property
    def scheduler(self) -> str:
        return self.cluster.scheduler

    @property
    def queue(self) -> str | None:
        return self.cluster.queue

    def ask(self, node: Node | None, scheduler: str) -> Ask:
        from taskgraph_workers.launch import cluster

        config, domain = self.project.config, self.project.trust_domain
        only = tuple(self.args.group)
        return cluster.ask(config, self.cluster, only, self._widths(), domain)

    def _widths(self) -> Mapping[str, int]:
        """The numbers of groups that say ``auto``. A graph is made for these alone."""
        if all(group.number is not None for group in self.cluster.groups.values()):
            return {}
        from taskgraph_workers.cli import widths
        from taskgraph_workers.config import located

        try:
            return widths.numbers(self.args, self.cluster, self.output)
        except WorkersError as error:
            raise located(error, self.project.config) from None


def _site(args: argparse.Namespace, output: Output) -> _Site | None:
    """The cluster that is named. Raises WorkersError for options that go with one only."""
    if args.cluster is None:
        for option in ("root", "parameters", "level", "config", "profile"):
            if getattr(args, option) is not None:
                what = f"--{option} goes with --cluster only"
                raise WorkersError(Problem(what, hint="launch --cluster NAME"))
        return None
    from taskgraph_workers.cli import reading
    from taskgraph_workers.launch import cluster

    if args.spec is None and args.vars:
        raise WorkersError(Problem("--vars goes with a SPEC only"))
    project = reading.project(args)
    return _Site(args, output, project, cluster.find(project.config, args.cluster))


def _present(site: _Site | None) -> _Site:
    if site is None:
        hint = "launch SPEC.yaml, or launch --cluster NAME"
        raise WorkersError(Problem("nothing says what to launch", hint=hint))
    return site


class _Spec:
    """A Merlin spec that was read, and is asked once it is known where it will run."""

    def __init__(self, args: argparse.Namespace, said: _Said, site: _Site | None) -> None:
        from taskgraph_workers.launch.merlin.read import read_spec

        self._args, self._said = args, said
        self._cluster = site.cluster if site else None
        self._spec = read_spec(args.spec, said.variables)
        self.queue: str | None = self._spec.batch.queue

    @property
    def scheduler(self) -> str | None:
        """The scheduler that its batch block names, if that is one."""
        from taskgraph_workers import schedulers

        kind = self._spec.batch.type
        return next((each for each in schedulers.NAMES if kind.startswith(each)), None)

    def ask(self, node: Node | None, scheduler: str) -> Ask:
        """What it asks for, on such nodes; the cluster's lines of set-up come first."""
        import socket

        from taskgraph_workers.launch.merlin.ask import ask
        from taskgraph_workers.launch.merlin.options import Options

        options = Options(
            nodes=self._args.nodes,
            node=node,
            groups=tuple(self._args.group),
            host=socket.gethostname(),
            scheduler=scheduler,
            walltime_s=self._said.walltime_s,
            variables=self._said.variables,
            environ=os.environ,
        )
        asked, cluster = ask(self._spec, options), self._cluster
        if cluster is None:
            return asked
        # The name that every spec's job has gives way to the cluster's.
        own = self._spec.batch.name
        header = replace(asked.header, name=own or cluster.job_name or asked.header.name)
        return replace(asked, header=header, setup=(*cluster.setup, *asked.setup))


# --- what has to be said --------------------------------------------------------------------


def _inside(ask: Ask, scheduler: Scheduler) -> Scheduler | None:
    """Flux, where tasks start their processes with it and another scheduler gets the job."""
    from taskgraph_workers import schedulers

    launches = any(demand.launcher for group in ask.groups for demand in group.demands)
    if ask.scheduler == "flux" and scheduler.name != "flux" and launches:
        return schedulers.find("flux")
    return None


def _differs(where: _Where) -> Iterable[Problem]:
    """A cluster that is another one than that of this machine."""
    name = where.scheduler.name
    if where.cluster is not None and where.native not in (None, name):
        what = f"cluster {where.cluster.name} has {name}, and this machine has {where.native}"
        yield Problem(what, hint="submit the script there", severity="warning")


def _timeless(header: Header) -> Iterable[Problem]:
    if header.walltime_s is None:
        what = "no walltime is said, so nothing ends the workers before the queue's own limit"
        yield Problem(what, hint="--walltime 2h", severity="warning")


def _at(problem: Problem, ask: Ask) -> Problem:
    """A problem of sizing knows a line, and not of which file."""
    if problem.file or not problem.line or not ask.file:
        return problem
    from taskgraph_workers.config.locate import Source

    return replace(problem, file=Source(ask.file).shown)


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
    holds = group.holds and bool(group.demands)
    return Start(
        name=group.name,
        per_node=plan.layout.per_node(group.name),
        command=command,
        holds=holds,
        cores=max((demand.cores for demand in group.demands), default=1),
        gpus=max((demand.gpus for demand in group.demands), default=0) if holds else 0,
        memory_mib=max((d.memory_mib for d in group.demands), default=0) or None,
        task_gpus=gpus.pop() if len(gpus) == 1 else None,
    )
