"""``number: auto``: where the two doors meet that it takes, the graph's and that of launching."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from taskgraph_workers.cli import graphs, options
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError, did_you_mean

if TYPE_CHECKING:
    from taskgraph_workers.graph.generate import Wanted
    from taskgraph_workers.machines import Cluster, Group


def numbers(args: argparse.Namespace, cluster: Cluster, output: Output) -> dict[str, int]:
    """How many workers each group has that says ``number: auto``, by its name.

    As many as tasks of its pool can run at the same time in the project's target graph: for the
    parameters ``-p``, ``--level`` and ``--profile`` of the options. Of ``--group``, those alone.
    The graph is made, and Taskgraph loaded, only where a group says so. One without such tasks has
    0, of which a warning tells. Raises WorkersError where a group has no pool, where there is no
    project, where its graph can't be made, and where SciPy is not installed.
    """
    asked = args.group or cluster.groups
    auto = [each for name, each in cluster.groups.items() if name in asked and each.number is None]
    if not auto:
        return {}
    from taskgraph_workers.launch.cluster import poolless
    from taskgraph_workers.launch.widths import scipy_sparse, widest

    wrong = list(poolless(auto))
    if wrong:
        raise WorkersError(*wrong)

    scipy_sparse()
    wanted = _wanted(args, auto)
    from taskgraph_workers.graph.waits import waits

    found = waits(graphs.make(wanted, "the target graph", output).tasks)
    widths = {}
    for group in auto:
        ours = [label for label, pool in found.pools.items() if pool == group.pool]
        widths[group.name] = len(widest(ours, found.edges))
        if not ours:
            output.warn(_none(group, found.pools.values()))
    return widths


def _none(group: Group, pools: Iterable[str]) -> str:
    """Why a group has no workers."""
    return (
        f"no task of the target graph runs on {group.pool}, so number: auto of {group.name} is 0; "
        + did_you_mean(str(group.pool), pools)
    )


def _wanted(args: argparse.Namespace, groups: Sequence[Group]) -> Wanted:
    from taskgraph_workers.config.environment import choice_in
    from taskgraph_workers.graph.generate import TARGET, Wanted

    try:
        root = options.root_of(args)
    except WorkersError:
        what = "number: auto counts the tasks of a project's graph, and there is no project here"
        hint = options.near() or "say --root DIR, or write the number"
        path = (*groups[0].path, "number")
        raise WorkersError(Problem(what, path, hint)) from None
    return Wanted(
        root=root,
        parameters=args.parameters,
        overrides=options.overrides_of(args),
        choice=None if args.profile is None else choice_in(args.profile, "--profile"),
        said_by="--profile",
        which=TARGET,
    )
