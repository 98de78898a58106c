"""Worker groups for tests, in few words, and any of them at random."""

from __future__ import annotations

from hypothesis import strategies as st

from taskgraph_workers.launch.model import Demand, WorkerGroup
from taskgraph_workers.machines import Node

#: The example that sizing was made for, with the queues of its steps apart.
STEP_1 = Demand("step_1", nodes=2, cores=4, written_nodes=2, line=8)
STEP_2 = Demand("step_2", nodes=1, cores=1, gpus=4, written_nodes=1, line=16)
PERLMUTTER = Node(cores=128, gpus=4)
LASSEN = Node(cores=36, gpus=4)
SMALL = Node(cores=8, gpus=4)


def group(name: str, number: int, *demands: Demand) -> WorkerGroup:
    return WorkerGroup(name, number, demands, "work", line=30)


def inside(step: str, cores: int = 1, gpus: int = 0, **more: bool) -> Demand:
    """A task that runs inside of its worker."""
    return Demand(step, cores=cores, gpus=gpus, launcher=False, **more)


def example() -> list[WorkerGroup]:
    return [group("step_1_workers", 4, STEP_1), group("step_2_workers", 2, STEP_2)]


@st.composite
def cases(draw: st.DrawFn, workers: int = 5) -> tuple[list[WorkerGroup], Node]:
    """A node with two or three axes, and up to three groups of up to three kinds of tasks."""
    node = Node(
        draw(st.integers(2, 9)), draw(st.sampled_from((0, 2, 4))), draw(st.sampled_from((0, 5)))
    )
    kinds = draw(st.lists(demands(node), min_size=1, max_size=3))
    groups, left = [], workers
    for name in draw(st.sampled_from(("a", "ab", "abc"))):
        if left:
            number = draw(st.integers(1, left))
            left -= number
            some = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3, unique=True))
            groups.append(group(name, number, *some))
    return groups, node


@st.composite
def mixed(draw: st.DrawFn, workers: int = 5) -> tuple[list[WorkerGroup], list[WorkerGroup], Node]:
    """One or two groups that hold, one or two whose tasks come and go, and a node for all."""
    node = Node(
        draw(st.integers(2, 9)), draw(st.sampled_from((0, 2, 4))), draw(st.sampled_from((0, 5)))
    )
    names, left = iter("abcd"), workers
    both: list[list[WorkerGroup]] = []
    for launcher in (False, True):
        both.append([])
        for _ in range(draw(st.integers(1, 2))):
            number = draw(st.integers(1, max(left - 1, 1)))
            left -= number
            some = draw(st.lists(demands(node), min_size=1, max_size=2, unique_by=lambda d: d.step))
            if not launcher:
                some = [each._replace(nodes=1, launcher=False) for each in some]
            both[-1].append(group(next(names), number, *some))
            if left < 2:
                break
    return both[0], both[1], node


@st.composite
def demands(draw: st.DrawFn, node: Node) -> Demand:
    """A task that fits on the node."""
    nodes = draw(st.sampled_from((1, 1, 1, 2, 3)))
    cores, gpus, memory = (
        draw(st.integers(low, have or 0))
        for low, have in ((1, node.cores), (0, node.gpus), (0, node.memory_mib))
    )
    return Demand(f"{nodes}x{cores}c{gpus}g{memory}m", nodes, cores, gpus, memory)
