"""Numbers of sizing as people read them."""

from __future__ import annotations

from collections.abc import Iterable

from taskgraph_workers.errors import counted
from taskgraph_workers.launch.model import Demand
from taskgraph_workers.launch.size.build import AXES, needs, nodes_of
from taskgraph_workers.units import mib_text

#: The axes as people call them.
NAMES = {"cores": "cores", "gpus": "GPUs", "memory_mib": "memory"}

_OPTIONS = {"cores": "cores=N", "gpus": "gpus=N", "memory_mib": "memory=SIZE"}


def node_option(axes: Iterable[str]) -> str:
    """The option that says how much of these a node has.

    >>> node_option(["cores", "memory_mib"])
    '--node cores=N,memory=SIZE'
    """
    return f"--node {','.join(_OPTIONS[axis] for axis in axes)}"


def amount(axis: str, value: int) -> str:
    """An amount of one axis.

    >>> amount("cores", 1), amount("gpus", 4), amount("memory_mib", 2048)
    ('1 core', '4 GPUs', '2GiB of memory')
    """
    if axis == "memory_mib":
        return f"{mib_text(value)} of memory"
    return counted(value, "core" if axis == "cores" else "GPU")


def bare(axis: str, value: int) -> str:
    """The same without the name of a thing, behind an amount that has it."""
    return mib_text(value) if axis == "memory_mib" else str(value)


def needed(demand: Demand) -> str:
    """What a task takes.

    >>> needed(Demand("a", nodes=2, cores=4)), needed(Demand("b", cores=1, gpus=4))
    ('2 nodes x 4 cores', '1 core and 4 GPUs')
    """
    nodes, each = nodes_of(demand), each_of(needs(demand))
    if nodes == 1:
        return each
    return f"{counted(nodes, 'node')} x " + (f"({each})" if " and " in each else each)


def each_of(need: Iterable[int]) -> str:
    """What is taken on each node."""
    return " and ".join(amount(axis, value) for axis, value in zip(AXES, need) if value)
