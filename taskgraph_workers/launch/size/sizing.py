"""How many nodes: every answer that can be told, and the one that is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taskgraph_workers.errors import Problem, counted
from taskgraph_workers.launch.model import (
    MODES,
    MOST,
    OPTION,
    LaunchError,
    Size,
    Sizing,
    Stage,
    WorkerGroup,
)
from taskgraph_workers.launch.size import words
from taskgraph_workers.launch.size.answers import (
    certain_size,
    exclusive_size,
    packed_size,
    useful_size,
)
from taskgraph_workers.launch.size.beside import beside
from taskgraph_workers.launch.size.build import unknown
from taskgraph_workers.launch.size.refuse import beyond, refusals, too_many_nodes
from taskgraph_workers.machines import Node


def size(
    groups: Sequence[WorkerGroup],
    node: Node | None,
    stages: Sequence[Stage] = (),
    mode: str | None = None,
    given: int | None = None,
) -> Sizing:
    """How many nodes the groups' workers take, by every way to count.

    ``mode`` is one of :data:`~taskgraph_workers.launch.model.MODES`, or None for ``packed`` where
    it can be told and else ``exclusive``; ``given`` are the nodes that the user wrote.
    Raises LaunchError for tasks that can never run, and where the answer that is wanted can't be
    told.
    """
    if not any(group.number for group in groups):
        what = "there is no worker to launch"
        raise LaunchError(Problem(what, hint="say how many: number: 1"))
    problems = beyond(groups, node, given)
    unread = tuple(dict.fromkeys(s for group in groups if group.number for s in group.unread))
    groups = [group for group in groups if group.number and group.demands]
    problems = problems or refusals(groups, node, given)
    if problems:
        raise LaunchError(*problems)
    if not groups:
        return _none_read(given)
    missing = unknown(groups, node)
    sizes = _sizes(groups, node, stages, missing)
    notes = [_note(missing, groups)] if missing else []
    if unread:
        sizes = {mode: _without(unread, answer) for mode, answer in sizes.items()}
        notes.append(_not_counted(unread))
    if given is not None:
        _hold(groups, node, given, sizes["packed"])
        return Sizing("given", given, sizes, (*notes, *_disagreement(given, mode, sizes)))
    taken = _taken(mode, sizes)
    answer = sizes.get(taken)
    if answer is None:
        raise LaunchError(_untold(taken, mode, missing, stages))
    if answer.nodes > MOST:
        raise LaunchError(too_many_nodes(answer.nodes))
    return Sizing(taken, answer.nodes, sizes, tuple(notes))


def _taken(mode: str | None, sizes: Mapping[str, Size | None]) -> str:
    """The way to count that is meant."""
    return mode or ("packed" if sizes["packed"] else "exclusive")


def _without(unread: tuple[str, ...], answer: Size | None) -> Size | None:
    """An answer that is none for all tasks, since of some nobody knows what they take."""
    return answer and answer._replace(exact=False, unread=unread)


def _not_counted(unread: Sequence[str]) -> Problem:
    return Problem(
        f"what tasks of {' and '.join(unread)} take can't be told, so they count for nothing in"
        " the sizes: more nodes may be needed",
        hint="say it in numbers, or say the nodes: --nodes N",
        severity="warning",
    )


def _none_read(given: int | None) -> Sizing:
    """What is left where no step has a size that can be read: the nodes that the user wrote."""
    if given is None:
        what = "how many nodes the workers take can't be told: none of their steps is sized"
        raise LaunchError(Problem(what, hint="say the nodes: --nodes N"))
    return Sizing("given", given, dict.fromkeys(MODES))


def _sizes(
    groups: Sequence[WorkerGroup],
    node: Node | None,
    stages: Sequence[Stage],
    missing: Sequence[str],
) -> dict[str, Size | None]:
    sizes: dict[str, Size | None] = dict.fromkeys(MODES)
    sizes["exclusive"] = exclusive_size(groups)
    if node is not None and not missing:
        both = beside(groups, node)
        packed = packed_size(groups, node, both)
        sure = certain_size(groups, node, packed, both)
        if sure.nodes < packed.nodes:
            packed = packed._replace(nodes=sure.nodes)
        sizes["packed"], sizes["certain"] = packed, sure
        if stages:
            sizes["useful"] = useful_size(groups, node, stages, packed)
    return sizes


def _hold(
    groups: Sequence[WorkerGroup], node: Node | None, given: int, packed: Size | None
) -> None:
    """Raises LaunchError where workers that hold what their tasks take have no room on the nodes.

    They keep it from their start to their end, so waiting makes none.
    """
    holding = [group for group in groups if group.holds]
    if packed is None or node is None or packed.nodes <= given or not holding:
        return
    least = packed if len(holding) == len(groups) else packed_size(holding, node)
    if least.exact and least.nodes > given:
        workers = " and ".join(f"{group.number} {group.name}" for group in holding)
        what = f"{workers} hold what their tasks take from their start on: that is not on"
        hint = f"--nodes {least.nodes} or more, or leave the number out; or start fewer workers"
        line = max(holding, key=lambda group: group.number).line
        raise LaunchError(Problem(f"{what} {counted(given, 'node')}", hint=hint, line=line))


def _note(missing: Sequence[str], groups: Sequence[WorkerGroup]) -> Problem:
    """What tasks take of a node, while nobody says what that has."""
    demands = [demand for group in groups for demand in group.demands]
    first = [next(d for d in demands if getattr(d, axis)) for axis in missing]
    takes = [f"{d.step} takes {words.amount(x, getattr(d, x))}" for d, x in zip(first, missing)]
    much = [f"how {'much' if x == 'memory_mib' else 'many'} {words.NAMES[x]}" for x in missing]
    return Problem(
        f"{' and '.join(much)} a node has is unknown; of one, {', '.join(takes)}",
        hint=f"{words.node_option(missing)} says it; without it only `exclusive` can be told",
        severity="warning",
        code=OPTION,
        line=first[0].line,
    )


def _disagreement(
    given: int, mode: str | None, sizes: Mapping[str, Size | None]
) -> tuple[Problem, ...]:
    """A warning where the nodes that the user wrote are not those that come out."""
    name = _taken(mode, sizes)
    answer = sizes.get(name)
    if answer is None or answer.nodes == given:
        return ()
    fewer = (
        "with fewer, some workers' tasks wait for others'"
        if given < answer.nodes
        else "the others stay idle"
    )
    enough = f"{counted(answer.nodes, 'node')} ({name}) are what all tasks at once take"
    return (
        Problem(
            f"the allocation is written as {counted(given, 'node')}, but {enough}: {fewer}",
            hint="leave the number out, and it is worked out",
            severity="warning",
        ),
    )


def _untold(
    taken: str, mode: str | None, missing: Sequence[str], stages: Sequence[Stage]
) -> Problem:
    """Why the answer that is wanted can't be told, and what tells it."""
    if taken not in MODES:
        return Problem(f"{taken!r} is no way to size", hint=f"there is: {', '.join(MODES)}")
    option = words.node_option(missing or ("cores",))
    if taken == "useful" and not missing and not stages:
        return Problem(
            "how many tasks there can be at once is unknown, so `useful` can't be told",
            hint="--mode packed counts the workers instead",
        )
    if taken == "exclusive":
        return Problem(
            "how many nodes the workers take can't be told: no step says `nodes` or has a launcher"
            + ("" if mode else ", and what a node has is unknown"),
            hint=f"{option} says what a node has; or say the nodes: --nodes N",
        )
    return Problem(
        f"what a node has is unknown, so `{taken}` can't be told",
        hint=f"{option} says it; or say the nodes: --nodes N",
    )
