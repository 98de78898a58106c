"""How many of a graph's tasks can run at the same time: what ``number: auto`` stands for.

Tasks can run at the same time when none of them waits for another, through however many tasks in
between: they are an antichain of the graph. The largest one is as large as the smallest number of
chains that hold all tasks (Dilworth's theorem), which a maximum flow finds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taskgraph_workers.errors import Problem
from taskgraph_workers.launch.model import LaunchError


def widest(labels: Iterable[str], edges: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The largest set of these tasks that can run at the same time, sorted.

    ``edges`` are pairs: a task, and one that it waits for; they may lead through any other tasks.
    The graph must have no cycle. Raises LaunchError where SciPy is not installed.
    """
    sparse = scipy_sparse()
    counted = sorted(set(labels))
    index = {label: number for number, label in enumerate(counted)}
    pairs = {
        (index.setdefault(task, len(index)), index.setdefault(before, len(index)))
        for task, before in edges
    }
    left = _source_side(sparse, len(counted), len(index), pairs)
    # Where the smallest cut parts a task's two halves, the task is in the antichain.
    return tuple(label for n, label in enumerate(counted) if left[2 * n + 1] and not left[2 * n])


def scipy_sparse() -> Any:
    """``scipy.sparse``, with ``csgraph``; it has no types.

    Raises LaunchError where it is not installed, which may be asked for before there is a graph.
    """
    try:
        import scipy.sparse.csgraph
    except ImportError as error:
        what = f"number: auto needs SciPy, which can't be imported: {error}"
        hint = "pip install 'taskgraph-workers[widths]'; or write the number"
        raise LaunchError(Problem(what, hint=hint)) from None
    return scipy.sparse


def _source_side(sparse: Any, counted: int, tasks: int, pairs: set[tuple[int, int]]) -> Any:
    """Which nodes of the network a smallest cut leaves with its source.

    A unit of flow makes one task the next of another in a chain. Each task has two halves: 2n,
    where it follows another one, and 2n + 1, where another one follows it. Each of the first
    ``counted`` ones does either once at most; a chain may pass through any task in between, as
    often as it likes, which is the edge from a first half to its second.
    """
    import numpy

    source, sink = 2 * tasks, 2 * tasks + 1
    ours = numpy.arange(counted)
    each = numpy.arange(tasks)
    ends = numpy.array(sorted(pairs), dtype=numpy.int64).reshape(-1, 2)
    tails = [numpy.full(counted, source), 2 * ours, 2 * each, 2 * ends[:, 0] + 1]
    heads = [2 * ours + 1, numpy.full(counted, sink), 2 * each + 1, 2 * ends[:, 1]]
    # No more than `counted` can ever flow anywhere.
    room = [numpy.ones(2 * counted), numpy.full(tasks + len(ends), counted)]
    places = numpy.concatenate(tails), numpy.concatenate(heads)
    network = sparse.csr_matrix(
        (numpy.concatenate(room).astype(numpy.int32), places), shape=(2 * tasks + 2,) * 2
    )
    rest = network - sparse.csgraph.maximum_flow(network, source, sink).flow
    rest.eliminate_zeros()
    reached = sparse.csgraph.breadth_first_order(rest, source, return_predecessors=False)
    side: Any = numpy.zeros(2 * tasks + 2, dtype=bool)
    side[reached] = True
    return side
