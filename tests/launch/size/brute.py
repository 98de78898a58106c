"""Sizes by trying everything: slow, plain, and sharing no line with the package's own way."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, combinations_with_replacement, product

from taskgraph_workers.launch.model import Demand, WorkerGroup

#: A task: its nodes, and what it takes on each.
Task = tuple[int, tuple[int, ...]]
#: For each group, how many workers, and the tasks that they may run.
Groups = tuple[tuple[int, tuple[Task, ...]], ...]


def plain(groups: list[WorkerGroup]) -> Groups:
    return tuple((group.number, tuple(map(task, group.demands))) for group in groups)


def task(demand: Demand) -> Task:
    return demand.nodes, (demand.cores, demand.gpus, demand.memory_mib)


def choices(groups: Groups) -> Iterator[tuple[Task, ...]]:
    """Everything that can run at once: each worker one of its tasks."""
    each = [combinations_with_replacement(tasks, number) for number, tasks in groups]
    for chosen in product(*map(tuple, each)):
        yield tuple(sorted((t for some in chosen for t in some), reverse=True))


def packed(groups: Groups, capacity: tuple[int, ...]) -> int:
    return max(fewest(chosen, capacity) for chosen in set(choices(groups)))


def fewest(tasks: tuple[Task, ...], capacity: tuple[int, ...]) -> int:
    nodes = max(n for n, _ in tasks)
    while not fits(tasks, (capacity,) * nodes):
        nodes += 1
    return nodes


@cache
def fits(tasks: tuple[Task, ...], room: tuple[tuple[int, ...], ...]) -> bool:
    """Whether all tasks have a placement: every set of nodes is tried for each of them."""
    if not tasks:
        return True
    return any(fits(tasks[1:], left) for left in placements(tasks[0], room))


def placements(wanted: Task, room: tuple[tuple[int, ...], ...]) -> set[tuple[tuple[int, ...], ...]]:
    """The room that may be left, nodes in order of it, since they are alike."""
    nodes, need = wanted
    fitting = [at for at, free in enumerate(room) if has_room(free, need)]
    found = set()
    for chosen in combinations(fitting, nodes):
        left = list(room)
        for at in chosen:
            left[at] = tuple(a - b for a, b in zip(left[at], need))
        found.add(tuple(sorted(left)))
    return found


def has_room(free: tuple[int, ...], need: tuple[int, ...]) -> bool:
    return all(a >= b for a, b in zip(free, need))


def certain(groups: Groups, capacity: tuple[int, ...]) -> int:
    nodes = 1
    while waits(groups, capacity, nodes):
        nodes += 1
    return nodes


def waits(groups: Groups, capacity: tuple[int, ...], nodes: int) -> bool:
    """Whether some order of arrival makes a worker's task wait: tasks placed wherever they fit."""
    return waits_in(groups, (capacity,) * nodes)


def waits_in(groups: Groups, rooms: tuple[tuple[int, ...], ...]) -> bool:
    """The same, with so much room on each node."""
    start = (tuple(number for number, _ in groups), rooms)
    seen, left = {start}, [start]
    while left:
        spare, room = left.pop()
        for at, (_, tasks) in enumerate(groups):
            if not spare[at]:
                continue
            fewer = tuple(n - (each == at) for each, n in enumerate(spare))
            for each in tasks:
                after = placements(each, room)
                if not after:
                    return True
                fresh = {(fewer, free) for free in after} - seen
                seen |= fresh
                left += fresh
    return False


def fits_in(groups: Groups, rooms: tuple[tuple[int, ...], ...]) -> bool:
    """Whether every mixture has a placement, with so much room on each node."""
    return all(fits(chosen, tuple(sorted(rooms))) for chosen in set(choices(groups)))


def rooms(
    held: list[WorkerGroup], capacity: tuple[int, ...], nodes: int
) -> set[tuple[tuple[int, ...], ...]]:
    """What workers that hold may leave of the nodes: every way for them to sit."""
    found = {(capacity,) * nodes}
    for each in (group for group in held for _ in range(group.number)):
        need = tuple(map(max, zip(*(task(demand)[1] for demand in each.demands))))
        found = {left for room in found for left in placements((1, need), room)}
    return found


def waits_with_ends(groups: Groups, capacity: tuple[int, ...], nodes: int) -> bool:
    """The same, and tasks also end, in any order; every task's own nodes are kept track of."""
    start: frozenset[tuple[int, int, Task, tuple[int, ...]]] = frozenset()
    seen, left = {start}, [start]
    while left:
        running = left.pop()
        steps = {running - {one} for one in running}
        for group, (number, tasks) in enumerate(groups):
            busy = {worker for at, worker, _, _ in running if at == group}
            idle = next((worker for worker in range(number) if worker not in busy), None)
            for each in tasks if idle is not None else ():
                places = list(places_of(each, running, capacity, nodes))
                if not places:
                    return True
                steps |= {running | {(group, idle or 0, each, place)} for place in places}
        left += steps - seen
        seen |= steps
    return False


def places_of(
    wanted: Task,
    running: frozenset[tuple[int, int, Task, tuple[int, ...]]],
    capacity: tuple[int, ...],
    nodes: int,
) -> Iterator[tuple[int, ...]]:
    free = [list(capacity) for _ in range(nodes)]
    for _, _, (_, need), place in running:
        for at in place:
            free[at] = [a - b for a, b in zip(free[at], need)]
    fitting = [at for at in range(nodes) if has_room(tuple(free[at]), wanted[1])]
    return combinations(fitting, wanted[0])
