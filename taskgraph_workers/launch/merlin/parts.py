"""Which groups belong into one allocation: those with the same ``batch`` and ``machines``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from taskgraph_workers.errors import all_of, did_you_mean
from taskgraph_workers.launch.merlin.model import Batch, Spec
from taskgraph_workers.launch.merlin.notes import WORKERS, Notes
from taskgraph_workers.launch.merlin.options import Options
from taskgraph_workers.launch.merlin.queues import Clash, Group, starting


class Part(NamedTuple):
    """The groups of one allocation, and its ``batch`` block; those that share queues by accident.

    ``others`` are the groups of other allocations. ``everywhere`` are all that start anywhere.
    """

    groups: tuple[Group, ...]
    batch: Batch
    clashes: tuple[Clash, ...] = ()
    others: tuple[str, ...] = ()
    everywhere: tuple[Group, ...] = ()


def part(spec: Spec, groups: Sequence[Group], options: Options, notes: Notes) -> Part:
    """The groups to launch: the chosen ones, else those that belong to this machine."""
    everywhere, clashes = starting(groups, spec.overlap)
    if options.groups:
        return _chosen(spec, groups, everywhere, options, notes)
    if not everywhere:
        return Part((), spec.batch, clashes)
    kind = _here([_kind(group) for group in everywhere], options.host)
    here = tuple(group for group in everywhere if _kind(group) == kind)
    others = tuple(group.name for group in everywhere if _kind(group) != kind)
    _foreign(here, options, notes)
    return Part(here, _batch(spec, here[0]), clashes, others, everywhere)


def _chosen(
    spec: Spec,
    groups: Sequence[Group],
    everywhere: tuple[Group, ...],
    options: Options,
    notes: Notes,
) -> Part:
    known = {group.name: group for group in groups}
    for name in options.groups:
        if name not in known:
            hint = did_you_mean(name, known)
            notes.error(f"--group {name}: the spec has no such worker", WORKERS, 0, hint)
    wanted = [group for group in groups if group.name in options.groups]
    here, clashes = starting(wanted, spec.overlap)
    if not here:
        return Part((), spec.batch, clashes, (), everywhere)
    if any(_kind(group)[0] != _kind(here[0])[0] for group in here):
        what = f"the groups chosen have batch blocks of their own: that of {here[0].name} counts"
        notes.warn(what, here[0].path, here[0].worker.line, "launch them one by one")
    _foreign(here, options, notes)
    # Whoever is chosen alone is launched, even where Merlin would leave it out beside another.
    return Part(here, _batch(spec, here[0]), clashes, (), (*everywhere, *here))


def _kind(group: Group) -> tuple[Batch | None, tuple[str, ...]]:
    """What tells whether two groups belong into one allocation."""
    own = group.worker.batch
    return (own._replace(line=0) if own else None), group.worker.machines


def _here(
    kinds: list[tuple[Batch | None, tuple[str, ...]]], host: str
) -> tuple[Batch | None, tuple[str, ...]]:
    """The kind that belongs to this machine, else the plain one, else the first."""
    for kind in kinds:
        if matches(kind[1], host):
            return kind
    return next((kind for kind in kinds if kind == (None, ())), kinds[0])


def matches(machines: Sequence[str], host: str) -> bool:
    """Whether a host is one of these, by a part of its name (Merlin, ``utils.check_machines``)."""
    return bool(host) and any(machine in host for machine in machines)


def _batch(spec: Spec, group: Group) -> Batch:
    return group.worker.batch or spec.batch


def _foreign(here: Sequence[Group], options: Options, notes: Notes) -> None:
    """Say which groups are meant for other machines."""
    wrong = [g for g in here if g.worker.machines and not matches(g.worker.machines, options.host)]
    for machines in dict.fromkeys(group.worker.machines for group in wrong):
        meant = [group for group in wrong if group.worker.machines == machines]
        names = all_of(group.name for group in meant)
        where = f", not on {options.host}" if options.host else ""
        what = f"{names} would start on {' or '.join(machines)} alone{where}"
        first = meant[0].worker
        line = first.lines.get("machines", first.line)
        notes.warn(what, (*meant[0].path, "machines"), line, "submit there, or add this machine")
