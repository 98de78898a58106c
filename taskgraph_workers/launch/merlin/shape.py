"""How large a launch is, out of what its options and keys say (decision D1).

nodes default to 1, tasks to one a node, cores per task to 1. Per node: ceil(tasks / nodes) x
cores per task, ceil(GPUs / nodes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from taskgraph_workers.launch.model import MOST


class Shape(NamedTuple):
    """What runs on each of ``nodes`` nodes. ``uneven``: not all of them have as many tasks."""

    nodes: int = 0
    cores: int = 0
    gpus: int = 0
    memory_mib: int = 0
    uneven: bool = False

    def covers(self, other: Shape) -> bool:
        """Whether whatever has room for this one has room for the other."""
        return all(mine >= its for mine, its in zip(self[:4], other[:4]))


def ceil(number: int, by: int) -> int:
    """A division, rounded up."""
    return -(-number // by)


def shape(sizes: Mapping[str, int]) -> Shape:
    """The shape that sizes make, whichever of them are said."""
    if any(key.endswith("_set") or key.startswith("sets") for key in sizes):
        return _of_sets(sizes)
    tasks, each = sizes.get("tasks"), sizes.get("tasks_per_node")
    nodes = sizes.get("nodes") or (ceil(tasks, each) if tasks and each else 1)
    tasks = tasks or (each * nodes if each else _tasks_of_gpus(sizes) or nodes)
    most = max(ceil(tasks, nodes), min(each, tasks) if each else 0)
    gpus = _gpus(sizes, nodes, most, tasks)
    cores = _cores(sizes, nodes, most, gpus)
    return Shape(nodes, cores, gpus, _memory(sizes, cores, gpus), tasks % nodes != 0)


def _tasks_of_gpus(sizes: Mapping[str, int]) -> int | None:
    each = sizes.get("gpus_per_task")
    return max(1, sizes["gpus"] // each) if each and sizes.get("gpus") else None


def _gpus(sizes: Mapping[str, int], nodes: int, most: int, tasks: int) -> int:
    """GPUs on a node: those of the tasks there, else those of the node, else a share of all."""
    if "gpus_per_task" in sizes:
        return most * sizes["gpus_per_task"]
    if "gpus_per_node" in sizes:
        return sizes["gpus_per_node"]
    return ceil(sizes.get("gpus", 0), nodes)


def _cores(sizes: Mapping[str, int], nodes: int, most: int, gpus: int) -> int:
    if "cores" in sizes:
        return ceil(sizes["cores"], nodes)
    if "cores_per_task" not in sizes and "cores_per_gpu" in sizes:
        return max(most, gpus * sizes["cores_per_gpu"])
    return most * sizes.get("cores_per_task", 1)


def _memory(sizes: Mapping[str, int], cores: int, gpus: int) -> int:
    if "memory_per_node" in sizes:
        return sizes["memory_per_node"]
    return cores * sizes.get("memory_per_core", 0) + gpus * sizes.get("memory_per_gpu", 0)


def _of_sets(sizes: Mapping[str, int]) -> Shape:
    """Resource sets, as jsrun has them: ``sets`` of them, each with its cores and GPUs."""
    tasks = sizes.get("tasks")
    sets = sizes.get("sets") or ceil(tasks or 1, sizes.get("tasks_per_set", tasks or 1))
    each = sizes.get("sets_per_node")
    nodes = ceil(sets, each) if each else min(sizes.get("nodes", 1), sets)
    most = min(each or sets, ceil(sets, nodes) if not each else sets)
    return Shape(
        nodes,
        most * sizes.get("cores_per_set", 1),
        most * sizes.get("gpus_per_set", 0),
        most * sizes.get("memory_per_set", 0),
        sets % nodes != 0,
    )


def cover(shapes: Iterable[Shape]) -> Shape:
    """The smallest shape that covers each of several: they are there one after another."""
    all_of = list(shapes)
    for each in all_of:
        if all(each.covers(other) for other in all_of):
            return each
    columns = list(zip(*all_of))
    return Shape(*(max(column) for column in columns)) if columns else Shape()


def together(shapes: Iterable[Shape], nodes: int) -> Shape:
    """Several at the same time, spread over as many nodes as the widest takes, or ``nodes``."""
    all_of = sorted(shapes, reverse=True)
    width = max([nodes, *(each.nodes for each in all_of)])
    if width > MOST:  # more than are sized: nothing is spread with care over so many
        return Shape(width, *(sum(column) for column in list(zip(*all_of))[1:4]))
    loads = [[0, 0, 0] for _ in range(min(width, sum(each.nodes for each in all_of)))]
    for each in all_of:
        loads.sort(key=lambda load: (load[1], load[0], load[2]))
        for load in loads[: each.nodes]:
            load[:] = [load[0] + each.cores, load[1] + each.gpus, load[2] + each.memory_mib]
    cores, gpus, memory = (max((load[axis] for load in loads), default=0) for axis in range(3))
    return Shape(len(loads), cores, gpus, memory)
