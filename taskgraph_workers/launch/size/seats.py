"""Ways for workers that hold to sit: how many of each kind are on a node, on how many nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from taskgraph_workers.launch.size.pack import Run, filled, orders, pack, width
from taskgraph_workers.launch.size.patterns import Load, Pattern, less, most, share
from taskgraph_workers.launch.size.work import OutOfWork, Work

#: Nodes of workers, those with the same workers as one. Other nodes have none.
Seats = tuple[Run, ...]
#: For each task of a kind, the nodes that its parts are on; none where there is no room for it.
Places = list[tuple[int, ...]]

#: So many ways to fill a node are worth to try them all.
MOST_PATTERNS = 400
#: So many ways to sit are looked at one by one.
MOST_WAYS = 300
#: So many first-fit ways are taken, and so many ways to be spread.
FEW = 3
#: Steps of work for a packing.
PACKING = 10_000


def ordered(patterns: Iterator[Pattern]) -> Seats:
    """Nodes as seats: the fullest first."""
    counts = Counter(pattern for pattern in patterns if any(pattern))
    return tuple(sorted(counts.items(), reverse=True))


def quickly(load: Load, packings: Sequence[Sequence[Run]]) -> Iterator[Seats]:
    """Some ways to sit that are soon found; packings are of these workers and of other tasks.

    First those that leave most nodes alone.
    """
    tight = _trimmed(load, pack(load, Work(PACKING)).runs)
    yield tight
    yield from (_trimmed(load, runs) for runs in packings)
    for order in list(orders(load))[:FEW]:
        yield _trimmed(load, filled(load, load.parts, order))
    for nodes in range(width(tight), width(tight) + FEW):
        yield from spread_out(load, nodes)


def _trimmed(load: Load, runs: Sequence[Run]) -> Seats:
    """A packing, without the places in it that nobody is there for."""
    left = list(load.counts)
    found: Counter[Pattern] = Counter()
    for pattern, most_times in runs:
        times = most_times
        while times:
            here = tuple(min(pair) for pair in zip(pattern, left))
            if not any(here):
                break
            again = min(times, *(have // each for have, each in zip(left, here) if each))
            left = [have - again * each for have, each in zip(left, here)]
            found[here] += again
            times -= again
    return tuple(sorted(found.items(), reverse=True))


def spread_out(load: Load, nodes: int) -> Iterator[Seats]:
    """All of them spread over so many nodes, if that works."""
    places = spread(load, [load.capacity] * nodes)
    if all(map(all, places)):
        found = [[0] * len(load.kinds) for _ in range(nodes)]
        for kind, tasks in enumerate(places):
            for (at,) in tasks:
                found[at][kind] += 1
        yield ordered(map(tuple, found))


def every(load: Load, nodes: int, work: Work) -> Iterator[Seats]:
    """All ways to sit on so many nodes. Raises OutOfWork where they are too many."""
    patterns = sorted(patterns_of(load, work), reverse=True)
    ways = _ways(patterns, load.counts, nodes, work)
    for number, seats in enumerate(ways):
        if number == MOST_WAYS:
            raise OutOfWork
        yield seats


def patterns_of(load: Load, work: Work) -> list[Pattern]:
    """All ways for workers to be on a node. Raises OutOfWork where they are too many."""
    patterns = []
    for pattern in _patterns(load, load.capacity, ()):
        work.spend()
        patterns.append(pattern)
        if len(patterns) > MOST_PATTERNS:
            raise OutOfWork
    return patterns


def _patterns(load: Load, room: tuple[int, ...], start: Pattern) -> Iterator[Pattern]:
    """Everybody who may sit on a node together."""
    kind = len(start)
    if kind == len(load.kinds):
        if any(start):
            yield start
        return
    need = load.kinds[kind].need
    for count in range(min(load.counts[kind], most(need, room)) + 1):
        yield from _patterns(load, less(room, need, count), (*start, count))


def _ways(
    patterns: Sequence[Pattern], left: Sequence[int], nodes: int, work: Work
) -> Iterator[Seats]:
    """All ways for those that are left, by these patterns."""
    work.spend()
    if not any(left):
        yield ()
        return
    if not patterns or not nodes:
        return
    pattern, rest = patterns[0], patterns[1:]
    times = min(nodes, *(have // each for have, each in zip(left, pattern) if each))
    for again in range(times, -1, -1):
        less_left = tuple(have - again * each for have, each in zip(left, pattern))
        for seats in _ways(rest, less_left, nodes - again, work):
            yield ((pattern, again), *seats) if again else seats


# --- Spread ---------------------------------------------------------------------------------


def spread(load: Load, room: list[tuple[int, ...]]) -> list[Places]:
    """Each task on the nodes that have least to do, largest tasks first.

    ``room`` is what each node has to spare, which becomes what is left of it.
    """
    sizes = [share(kind.need, load.capacity) for kind in load.kinds]
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
