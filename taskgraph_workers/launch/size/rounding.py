"""A bound for every mixture of tasks, from nodes that could be had in fractions."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from taskgraph_workers.launch.size.kinds import Counts, Instance
from taskgraph_workers.launch.size.pack import quick, relaxed, width
from taskgraph_workers.launch.size.patterns import Load, most, used_of
from taskgraph_workers.launch.size.work import OutOfWork, Work

#: Steps of work: this bound is asked for where other work has run out.
WORK = 20_000


def rounded_up(instance: Instance) -> int | None:
    """So many nodes hold any mixture; None where that can't be told.

    In fractions, the nodes that a mixture takes are a convex function of it, so that no mixture
    takes more than the worst corner. A basic solution uses no more patterns than there are kinds,
    and rounding each of them up costs less than one node. A kind of which there are fewer tasks
    than one node holds parts may not follow its patterns; its few tasks have nodes of their own.
    """
    if not instance.has_all_corners:
        return None
    corners = [counts for counts, _ in instance.corners(range(len(instance.kinds)))]
    work = Work(WORK)
    try:
        worst = Fraction()
        for counts in corners:
            worst = max(worst, _in_fractions(instance, counts, worst, work))
    except OutOfWork:
        return None
    extra = sum(
        kind.nodes if most(kind.need, instance.capacity) > 1 else 1 for kind in instance.kinds
    )
    return ceil(worst) - 1 + extra


def _in_fractions(instance: Instance, counts: Counts, known: Fraction, work: Work) -> Fraction:
    """The nodes that a mixture takes in fractions; no more than ``known`` where it is no more."""
    load = used_of(Load(instance.capacity, instance.kinds, counts))
    if not load.kinds or width(quick(load, int(known))) <= known:
        return Fraction()
    limits = tuple(most(kind.need, load.capacity) for kind in load.kinds)
    optimum = relaxed(load, limits, work)
    return sum((amount for column, amount in optimum.amounts if column.cost), Fraction())
