"""Which worker is on which node, and which cores and GPUs its largest task would have there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from taskgraph_workers.launch.model import Demand, Layout, NodeLayout, Share, WorkerGroup
from taskgraph_workers.launch.size.beside import beside
from taskgraph_workers.launch.size.build import asked, counting, has, kind_of, unknown
from taskgraph_workers.launch.size.kinds import Kind
from taskgraph_workers.launch.size.pack import Run, pack
from taskgraph_workers.launch.size.patterns import Load, less
from taskgraph_workers.launch.size.seats import Places, Seats, spread
from taskgraph_workers.launch.size.work import Work
from taskgraph_workers.launch.size.worst import nodes_taken
from taskgraph_workers.machines import Node

#: Steps of work for a packing: some tenths of a second at the most.
WORK = 60_000


class _Tasks(NamedTuple):
    """The largest task of each worker of a group."""

    group: WorkerGroup
    demand: Demand
    kind: Kind


def layout(groups: Sequence[WorkerGroup], node: Node | None, nodes: int) -> Layout:
    """Where the groups' workers are on so many nodes, and where each one's largest task would run.

    Workers that hold nothing are dealt over the nodes one after another, across groups. Those that
    hold are where what they hold is free, and where the others' tasks have room beside them: just
    as the nodes are sized. All are spread where that works, and else packed. Where nobody says what
    a node has there are no shares.
    """
    groups = [group for group in groups if group.number]
    if node is None or unknown(groups, node) or not asked(groups):
        return _made(groups, nodes, [])
    capacity = tuple(has(node)[axis] or 0 for axis in asked(groups))
    tasks = list(_largest(groups, capacity))
    both = beside(groups, node)
    seats = both.seats(nodes) if both else None
    if both is None or seats is None:
        return _made(groups, nodes, _assigned(tasks, _anywhere(_load(tasks, capacity), nodes)))
    held = [each for each in tasks if each.group.holds]
    others = [each for each in tasks if not each.group.holds]
    sitting = _assigned(held, dict(zip(both.load.kinds, _sitting(seats))))
    moving = _assigned(others, _beside(_load(others, capacity), both.homes(seats), nodes))
    return _made(groups, nodes, [*sitting, *moving])


def _largest(groups: Sequence[WorkerGroup], capacity: tuple[int, ...]) -> Iterator[_Tasks]:
    axes = asked(groups)
    for group in groups:
        demands = counting(group)
        if demands:
            kinds = [kind_of(demand, axes) for demand in demands]
            at = max(range(len(kinds)), key=lambda i: (nodes_taken(kinds[i], capacity), kinds[i]))
            yield _Tasks(group, demands[at], kinds[at])


# --- Tasks on nodes -------------------------------------------------------------------------


def _load(tasks: Sequence[_Tasks], capacity: tuple[int, ...]) -> Load:
    kinds = tuple(dict.fromkeys(each.kind for each in tasks))
    counts = tuple(sum(t.group.number for t in tasks if t.kind == kind) for kind in kinds)
    return Load(capacity, kinds, counts)


def _anywhere(load: Load, nodes: int) -> dict[Kind, Places]:
    """Tasks that are in nobody's way."""
    places = spread(load, [load.capacity] * nodes)
    if not all(map(all, places)):
        packing = pack(load, Work(WORK))
        if packing.nodes <= nodes:
            places = _dealt(load, packing.runs, range(nodes))
    return dict(zip(load.kinds, places))


def _sitting(seats: Seats) -> list[Places]:
    """The node of each worker that holds, by kind: one way to sit after another."""
    at, places = 0, [Places() for _ in seats[0][0]]
    for pattern, times in seats:
        for _ in range(times):
            for kind, count in enumerate(pattern):
                places[kind] += [(at,)] * count
            at += 1
    return places


def _beside(load: Load, homes: Sequence[tuple[int, ...]], nodes: int) -> dict[Kind, Places]:
    """Tasks on nodes on which so much is taken already, node by node, and on others."""
    taken = [*homes, *((0,) * len(load.capacity) for _ in range(nodes - len(homes)))]
    places = spread(load, [less(load.capacity, need) for need in taken])
    if not all(map(all, places)):
        places = _packed_beside(load, taken) or places
    return dict(zip(load.kinds, places))


def _packed_beside(load: Load, taken: Sequence[tuple[int, ...]]) -> list[Places] | None:
    """The same, packed: what is taken of a node is one more kind of task, one for each node."""
    left: dict[tuple[int, ...], list[int]] = {}
    for at, need in enumerate(taken):
        left.setdefault(need, []).append(at)
    tasks = (Kind(nodes, (*need, 0)) for nodes, need in load.kinds)
    homes = (Kind(1, (*need, 1)) for need in left)
    counts = (*load.counts, *map(len, left.values()))
    packing = pack(Load((*load.capacity, 1), (*tasks, *homes), counts), Work(WORK))
    if packing.nodes > len(taken):
        return None
    nodes = []
    for pattern, times in packing.runs:
        home = pattern.index(1, len(load.kinds))
        here = list(left.values())[home - len(load.kinds)]
        nodes += [here.pop() for _ in range(times)]
    return _dealt(load, packing.runs, nodes)


def _dealt(load: Load, runs: Sequence[Run], nodes: Iterable[int]) -> list[Places]:
    """The parts on the nodes of a packing, told apart: those of one task on different nodes.

    Node after node takes the next tasks in turn. No node takes more parts of a kind than there are
    tasks, so it takes none twice; and in the end every task has had its turn equally often.
    """
    chosen: list[list[list[int]]] = [[[] for _ in range(count)] for count in load.counts]
    turn, left = [0] * len(load.kinds), list(load.parts)
    patterns = (pattern for pattern, times in runs for _ in range(times))
    for at, pattern in zip(nodes, patterns):
        for kind, count in enumerate(pattern[: len(left)]):
            for _ in range(min(count, left[kind])):
                chosen[kind][turn[kind]].append(at)
                turn[kind] = (turn[kind] + 1) % load.counts[kind]
                left[kind] -= 1
    return [[tuple(places) for places in tasks] for tasks in chosen]


def _assigned(
    tasks: Sequence[_Tasks], places: Mapping[Kind, Places]
) -> list[tuple[_Tasks, Places]]:
    """The places of each group's workers: groups of the same kind take theirs in turn."""
    rest = {kind: iter(each) for kind, each in places.items()}
    return [(each, list(islice(rest[each.kind], each.group.number))) for each in tasks]


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
