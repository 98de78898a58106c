"""Where ``launch`` reads what it is to launch: options, a Merlin spec, a cluster of a project."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from taskgraph_workers.cli import facts
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError

if TYPE_CHECKING:
    from taskgraph_workers.cli.reading import Project
    from taskgraph_workers.launch.model import Ask
    from taskgraph_workers.machines import Cluster, Node

T = TypeVar("T")


class Said(NamedTuple):
    """What options say that is no text."""

    walltime_s: int | None
    margin_s: int | None
    node: Node | None
    variables: Mapping[str, str]


def read_options(args: argparse.Namespace) -> Said:
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
    return Said(walltime, margin, node, variables)


class Site:
    """A cluster of ``workers-config``, whose groups are launched if there is no spec."""

    def __init__(
        self, args: argparse.Namespace, output: Output, project: Project, cluster: Cluster
    ) -> None:
        self.args, self.output = args, output
        self.project, self.cluster = project, cluster

    @property
    def scheduler(self) -> str:
        """The cluster's."""
        return self.cluster.scheduler

    @property
    def queue(self) -> str | None:
        """The queue that it names, if any."""
        return self.cluster.header.queue

    def ask(self, node: Node | None, scheduler: str | None) -> Ask:
        """What its groups ask for, whatever the node and the scheduler are."""
        from taskgraph_workers.launch import cluster

        config, domain = self.project.config, self.project.trust_domain
        only = tuple(self.args.group)
        return cluster.ask(config, self.cluster, only, self._widths, domain)

    @cached_property
    def _widths(self) -> Mapping[str, int]:
        """The numbers of groups that say ``auto``. A graph is made for these alone, and once."""
        if all(group.number is not None for group in self.cluster.groups.values()):
            return {}
        from taskgraph_workers.cli import widths
        from taskgraph_workers.config import located

        try:
            return widths.numbers(self.args, self.cluster, self.output)
        except WorkersError as error:
            raise located(error, self.project.config) from None


def find_site(args: argparse.Namespace, output: Output) -> Site | None:
    """The cluster that is named. Raises WorkersError for options that go with one only."""
    if args.cluster is None:
        for option in ("root", "parameters", "level", "config", "profile"):
            if getattr(args, option) is not None:
                what = f"--{option} goes with --cluster only"
                raise WorkersError(Problem(what, hint="launch --cluster NAME"))
        return None
    from taskgraph_workers.cli import reading
    from taskgraph_workers.launch import cluster

    if args.spec is None and (args.vars or args.corrected):
        option = "--vars" if args.vars else "--corrected"
        raise WorkersError(Problem(f"{option} goes with a SPEC only"))
    project = reading.project(args)
    return Site(args, output, project, cluster.find(project.config, args.cluster))


def present(site: Site | None) -> Site:
    """The cluster, where there is no spec. Raises WorkersError without one."""
    if site is None:
        hint = "launch SPEC.yaml, or launch --cluster NAME"
        raise WorkersError(Problem("nothing says what to launch", hint=hint))
    return site


class Spec:
    """A Merlin spec that was read, and is asked once it is known where it will run."""

    def __init__(self, args: argparse.Namespace, said: Said, site: Site | None) -> None:
        from taskgraph_workers.launch.merlin.read import read_spec

        self._args, self._said = args, said
        self._cluster = site.cluster if site else None
        self._spec = read_spec(args.spec, said.variables)
        self.queue: str | None = self._spec.batch.header.queue

    @property
    def scheduler(self) -> str | None:
        """The scheduler that its batch block names, if that is one."""
        return self._spec.batch.scheduler

    def ask(self, node: Node | None, scheduler: str | None) -> Ask:
        """What it asks for, on such nodes; the cluster's lines of set-up come first."""
        from taskgraph_workers.launch.merlin.ask import ask
        from taskgraph_workers.launch.merlin.options import Options

        options = Options(
            nodes=self._args.nodes,
            node=node,
            groups=tuple(self._args.group),
            setup=self._cluster.setup if self._cluster else (),
            host=os.uname().nodename,
            scheduler=scheduler,
            walltime_s=self._said.walltime_s,
            variables=self._said.variables,
            environ=os.environ,
        )
        asked, cluster = ask(self._spec, options), self._cluster
        if cluster is None:
            return asked
        # The name that every spec's job has gives way to the cluster's.
        name = self._spec.batch.header.name or cluster.header.name or asked.header.name
        return asked._replace(header=asked.header._replace(name=name))
