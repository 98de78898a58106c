"""Whether a load fits on so many nodes: an exhaustive search, node by node."""

from __future__ import annotations

from collections.abc import Sequence

from taskgraph_workers.launch.size.patterns import Load, Pattern, full, share
from taskgraph_workers.launch.size.work import Work

#: More nodes than this are not searched one by one.
MOST_NODES = 150

#: Weights of parts, by kind, and the most that a node can hold of them.
Weights = tuple[tuple[int, ...], int]


def search(
    load: Load, parts: Sequence[int], nodes: int, weights: Weights | None, work: Work
) -> tuple[tuple[Pattern, int], ...] | None:
    """Patterns that hold these parts on so many nodes, or None where there are none.

    Every node may be taken as full, and the next one as holding a part of the hardest kind that
    is left: a way without that can be turned into one with it. Raises OutOfWork.
    """
    return _Search(load, weights, work).run(parts, nodes)


class _Search:
    def __init__(self, load: Load, weights: Weights | None, work: Work) -> None:
        self._load, self._weights, self._work = load, weights, work
        self._limits = load.limits
        shares = [share(kind.need, load.capacity) for kind in load.kinds]
        self._order = sorted(range(len(shares)), key=lambda kind: -shares[kind])
        self._known: dict[tuple[int, ...], int] = {}

    def run(self, parts: Sequence[int], nodes: int) -> tuple[tuple[Pattern, int], ...] | None:
        found: list[Pattern] = []
        if not self._fits(tuple(parts), nodes, found):
            return None
        counts: dict[Pattern, int] = {}
        for pattern in found:
            counts[pattern] = counts.get(pattern, 0) + 1
        return tuple(sorted(counts.items(), reverse=True))

    def _fits(self, left: tuple[int, ...], nodes: int, found: list[Pattern]) -> bool:
        """Whether what is left fits; the patterns that show it are added, last node first."""
        if not any(left):
            return True
        if self._known.get(left, -1) >= nodes or self._bound(left) > nodes:
            return False
        order = [kind for kind in self._order if left[kind]]
        limits = [min(pair) for pair in zip(left, self._limits)]
        for pattern in full(self._load, limits, order):
            self._work.spend()
            rest = tuple(have - each for have, each in zip(left, pattern))
            if self._fits(rest, nodes - 1, found):
                found.append(pattern)
                return True
        self._known[left] = nodes
        return False

    def _bound(self, left: Sequence[int]) -> int:
        self._work.spend()
        bound = max(-(-have // most) for have, most in zip(left, self._limits) if have)
        for axis, capacity in enumerate(self._load.capacity):
            need = sum(n * kind.need[axis] for n, kind in zip(left, self._load.kinds))
            bound = max(bound, -(-need // capacity) if capacity else 0)
        if self._weights:
            weights, heaviest = self._weights
            total = sum(n * weight for n, weight in zip(left, weights))
            bound = max(bound, -(-total // heaviest) if heaviest else 0)
        return bound
