"""Which worker is on which node, and which cores and GPUs its largest task would have there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from taskgraph_workers.launch.model import Demand, Layout, NodeLayout, Share, WorkerGroup
from taskgraph_workers.launch.size.build import asked, counting, has, kind_of, unknown
from taskgraph_workers.launch.size.kinds import Kind
from taskgraph_workers.launch.size.pack import Run, pack
from taskgraph_workers.launch.size.patterns import Load, less, most
from taskgraph_workers.launch.size.work import Work
from taskgraph_workers.launch.size.worst import share
from taskgraph_workers.machines import Node

#: Steps of work for a packing: some tenths of a second at the most.
WORK = 60_000

#: For each task of a kind, the nodes that its parts are on; none where there is no room for it.
Places = list[tuple[int, ...]]


class _Tasks(NamedTuple):
    """The largest task of each worker of a group."""

    group: WorkerGroup
    demand: Demand
    kind: Kind


def layout(groups: Sequence[WorkerGroup], node: Node | None, nodes: int) -> Layout:
    """Where the groups' workers are on so many nodes, and where each one's largest task would run.

    Workers that hold nothing are dealt over the nodes one after another, across groups; those that
    hold are where what they hold is free. Tasks are spread where that works, and else packed. Where
    nobody says what a node has there are no shares.
    """
    groups = [group for group in groups if group.number]
    if node is None or unknown(groups, node) or not asked(groups):
        return _made(groups, nodes, [])
    tasks = list(_largest(groups, node))
    capacity = tuple(has(node)[axis] or 0 for axis in asked(groups))
    kinds = list(dict.fromkeys(each.kind for each in tasks))
    counts = tuple(sum(t.group.number for t in tasks if t.kind == kind) for kind in kinds)
    load = Load(capacity, tuple(kinds), counts)
    places = _spread(load, nodes)
    if not all(map(all, places)):
        places = _packed(load, nodes) or places
    return _made(groups, nodes, list(_assigned(tasks, kinds, places)))


def _largest(groups: Sequence[WorkerGroup], node: Node) -> Iterator[_Tasks]:
    axes = asked(groups)
    capacity = tuple(has(node)[axis] or 0 for axis in axes)
    for group in groups:
        demands = counting(group)
        if demands:
            kinds = [kind_of(demand, axes) for demand in demands]
            at = max(range(len(kinds)), key=lambda i: (share(kinds[i], capacity), kinds[i]))
            yield _Tasks(group, demands[at], kinds[at])


# --- Tasks on nodes -------------------------------------------------------------------------


def _spread(load: Load, nodes: int) -> list[Places]:
    """Each task on the nodes that have least to do, largest tasks first."""
    room = [load.capacity] * nodes
    sizes = [share(kind, load.capacity) / kind.nodes for kind in load.kinds]
    places: list[Places] = [[] for _ in load.kinds]
    for kind in sorted(range(len(sizes)), key=lambda at: (-sizes[at], -load.kinds[at].nodes)):
        wanted, need = load.kinds[kind]
        heap = [(_use(free, load.capacity), at) for at, free in enumerate(room) if most(need, free)]
        heapify(heap)
        for _ in range(load.counts[kind]):
            chosen = [heappop(heap)[1] for _ in range(wanted)] if len(heap) >= wanted else []
            places[kind].append(tuple(chosen))
            for at in chosen:
                room[at] = less(room[at], need)
                if most(need, room[at]):
                    heappush(heap, (_use(room[at], load.capacity), at))
    return places


def _use(room: Sequence[int], capacity: Sequence[int]) -> float:
    return max((1 - free / have for free, have in zip(room, capacity) if have), default=0.0)


def _packed(load: Load, nodes: int) -> list[Places] | None:
    """A packing on so many nodes, if one is found."""
    packing = pack(load, Work(WORK))
    return _dealt(load, packing.runs) if packing.nodes <= nodes else None


def _dealt(load: Load, runs: Sequence[Run]) -> list[Places]:
    """The parts on the nodes of a packing, told apart: those of one task on different nodes.

    Node after node takes the next tasks in turn. No node takes more parts of a kind than there are
    tasks, so it takes none twice; and in the end every task has had its turn equally often.
    """
    chosen: list[list[list[int]]] = [[[] for _ in range(count)] for count in load.counts]
    turn, left = [0] * len(load.kinds), list(load.parts)
    patterns = (pattern for pattern, times in runs for _ in range(times))
    for at, pattern in enumerate(patterns):
        for kind, count in enumerate(pattern):
            for _ in range(min(count, left[kind])):
                chosen[kind][turn[kind]].append(at)
                turn[kind] = (turn[kind] + 1) % load.counts[kind]
                left[kind] -= 1
    return [[tuple(nodes) for nodes in tasks] for tasks in chosen]


def _assigned(
    tasks: Sequence[_Tasks], kinds: Sequence[Kind], places: Sequence[Places]
) -> Iterator[tuple[_Tasks, Places]]:
    """The places of each group's workers: groups of the same kind take theirs in turn."""
    rest = {kind: iter(each) for kind, each in zip(kinds, places)}
    for each in tasks:
        mine = rest[each.kind]
        yield each, [next(mine) for _ in range(each.group.number)]


# --- The value ------------------------------------------------------------------------------


def _made(
    groups: Sequence[WorkerGroup], nodes: int, placed: Sequence[tuple[_Tasks, Places]]
) -> Layout:
    shares: list[list[Share]] = [[] for _ in range(nodes)]
    taken: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    homes: dict[tuple[str, int], int] = {}
    for tasks, places in placed:
        for worker, chosen in enumerate(places):
            if tasks.group.holds and chosen:
                homes[tasks.group.name, worker] = chosen[0]
            for at in chosen:
                shares[at].append(_share(tasks, worker, taken[at]))
    workers = _workers(groups, nodes, homes)
    made = (NodeLayout(tuple(w), tuple(s)) for w, s in zip(workers, shares))
    return Layout(tuple(made), all(all(places) for _, places in placed))


def _share(tasks: _Tasks, worker: int, taken: list[int]) -> Share:
    """The next free cores and GPUs of a node."""
    (core, gpu), demand = taken, tasks.demand
    taken[:] = core + demand.cores, gpu + demand.gpus
    return Share(
        group=tasks.group.name,
        worker=worker,
        step=demand.step,
        cores=tuple(range(core, taken[0])),
        gpus=tuple(range(gpu, taken[1])),
        memory_mib=demand.memory_mib,
    )


def _workers(
    groups: Sequence[WorkerGroup], nodes: int, homes: dict[tuple[str, int], int]
) -> list[list[tuple[str, int]]]:
    """Every worker at home: where it holds something, else on the node whose turn it is."""
    found: list[list[tuple[str, int]]] = [[] for _ in range(nodes)]
    turn = 0
    for group in groups:
        for worker in range(group.number):
            home = homes.get((group.name, worker))
            if home is None:
                home, turn = turn % nodes, turn + 1
            found[home].append((group.name, worker))
    return found
