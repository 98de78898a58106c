"""How many tasks workers can run at once, where of some tasks there are only so many."""

from __future__ import annotations

from collections.abc import Sequence


def most_tasks(numbers: Sequence[int], lots: Sequence[tuple[int, Sequence[int]]]) -> int:
    """The most tasks at once: a maximum flow from groups of workers to lots of tasks.

    ``lots`` are how many tasks there are, and which groups run them.

    >>> most_tasks([2, 3], [(4, [0]), (2, [0, 1])])
    4
    """
    spare = list(numbers)
    flows = [dict.fromkeys(groups, 0) for _, groups in lots]
    total = 0
    for lot, (most, _) in enumerate(lots):
        left = most
        while left:
            path = _path(lot, flows, spare)
            if path is None:
                break
            pushed = _push(path, flows, spare, left)
            left -= pushed
            total += pushed
    return total


def _path(
    lot: int, flows: Sequence[dict[int, int]], spare: Sequence[int]
) -> list[tuple[int, int]] | None:
    """Steps (lot, group) to workers to spare; each group gives the next lot tasks back."""
    came: dict[int, tuple[int, int] | None] = {}
    queue: list[tuple[int, tuple[int, int] | None]] = [(lot, None)]
    for at, before in queue:
        for group in flows[at]:
            if group in came:
                continue
            came[group] = before
            step = (at, group)
            if spare[group]:
                return _steps(step, before, came)
            queue += [(other, step) for other, flow in enumerate(flows) if flow.get(group)]
    return None


def _steps(
    step: tuple[int, int],
    before: tuple[int, int] | None,
    came: dict[int, tuple[int, int] | None],
) -> list[tuple[int, int]]:
    steps = [step]
    while before is not None:
        steps.append(before)
        before = came[before[1]]
    return steps[::-1]


def _push(
    path: Sequence[tuple[int, int]],
    flows: Sequence[dict[int, int]],
    spare: list[int],
    most: int,
) -> int:
    """Send along a path what all of it can take."""
    back = [(following, group) for (_, group), (following, _) in zip(path, path[1:])]
    pushed = min(most, spare[path[-1][1]], *(flows[lot][group] for lot, group in back))
    for lot, group in path:
        flows[lot][group] += pushed
    for lot, group in back:
        flows[lot][group] -= pushed
    spare[path[-1][1]] -= pushed
    return pushed
