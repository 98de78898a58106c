"""From an entry of ``workers-config.clusters`` to an :class:`Ask`.

The workers of such a group hold what they need, since their tasks run inside of them: each counts
as one task of one node, with the group's cores (1 unless said), GPUs and memory.

There is no key for a container, since each site has another engine. The command is where it goes,
``apptainer exec --nv worker.sif start-worker x.yml``, and what the engine needs first goes
into ``setup``. GPUS and WORKSPACE are in the environment that the engine is started in.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from taskgraph_workers.config import located
from taskgraph_workers.errors import TOP, Path, Problem, did_you_mean
from taskgraph_workers.launch import env
from taskgraph_workers.launch.model import Ask, Demand, LaunchError, WorkerGroup
from taskgraph_workers.machines import Cluster, Group
from taskgraph_workers.model import Config

#: Workers of Taskcluster that end after their task at an INT, and at once at a TERM: generic-worker
#: asks for os.Interrupt alone, and start-worker, which runs it, for no signal (taskcluster 71).
_INTERRUPTED = frozenset({"generic-worker", "start-worker"})


def find(config: Config, name: str) -> Cluster:
    """The cluster of this name. Raises LaunchError, with what there is, where there is none."""
    if name in config.clusters:
        return config.clusters[name]
    hint = did_you_mean(name, config.clusters)
    if not config.clusters:
        hint = "workers-config has no clusters"
    raise LaunchError(Problem(f"there is no cluster {name!r}", hint=hint))


def ask(
    config: Config,
    cluster: Cluster,
    only: Sequence[str] = (),
    widths: Mapping[str, int] | None = None,
    trust_domain: str = "",
) -> Ask:
    """What a cluster asks for: all its groups, or ``only`` those named.

    ``widths`` are the numbers of groups that say ``auto``, by name; ``trust_domain`` is what
    ``{trust-domain}`` stands for in pools.

    :raises LaunchError: with every fault, each with its place.
    """
    chosen = _chosen(cluster, only)
    problems = [*poolless(chosen), *_unnumbered(chosen, widths or {})]
    if problems:
        raise located(LaunchError(*problems), config)
    groups = tuple(_group(config, each, widths or {}, trust_domain) for each in chosen)
    notes = [note for each, group in zip(chosen, groups) for note in _notes(each, group)]
    return Ask(
        title=f"cluster {cluster.name}",
        groups=groups,
        header=cluster.header,
        scheduler=cluster.scheduler,
        setup=cluster.setup,
        others=tuple(name for name in cluster.groups if only and name not in only),
        notes=tuple(located(note, config) for note in notes),
        file=_line(config, cluster.path)[1],
    )


def _chosen(cluster: Cluster, only: Sequence[str]) -> list[Group]:
    unknown = [name for name in only if name not in cluster.groups]
    if unknown:
        where = f"cluster {cluster.name} has no group"
        raise LaunchError(
            *(Problem(f"{where} {name!r}", (), _hint(name, cluster)) for name in unknown)
        )
    if not cluster.groups:
        hint = f"write groups below clusters.{cluster.name}, or name a spec"
        raise LaunchError(Problem(f"cluster {cluster.name} has no groups", hint=hint))
    return [group for name, group in cluster.groups.items() if not only or name in only]


def _hint(name: str, cluster: Cluster) -> str:
    return did_you_mean(name, cluster.groups) or "it has no groups"


def poolless(groups: Iterable[Group]) -> Iterator[Problem]:
    """Each group that says ``number: auto``, and not of which pool tasks are to be counted."""
    hint = "say pool: provisioner/worker-type, or write the number"
    for group in groups:
        if group.number is None and not group.pool:
            what = "number: auto counts the tasks of a pool, and this group has none"
            yield Problem(what, (*group.path, "number"), hint)


def _unnumbered(groups: Iterable[Group], widths: Mapping[str, int]) -> Iterator[Problem]:
    for group in groups:
        if group.number is None and group.pool and group.name not in widths:
            path: Path = (*group.path, "number")
            yield Problem("auto needs a graph, and there is none here", path, "write how many")


def _group(
    config: Config, group: Group, widths: Mapping[str, int], trust_domain: str
) -> WorkerGroup:
    number = widths[group.name] if group.number is None else group.number
    cores, gpus, memory = group.cores or 1, group.gpus or 0, group.memory_mib or 0
    demand = Demand(
        step=group.name,
        cores=cores,
        gpus=gpus,
        memory_mib=memory,
        launcher=False,
    )
    words = group.command
    return WorkerGroup(
        name=group.name,
        number=number,
        demands=(demand,),
        command=words if isinstance(words, str) else shlex.join(words),
        env=env.env_of(config, group, trust_domain),
        why="as many tasks can run at once" if group.number is None else "",
        line=_line(config, group.path)[0],
    )


def _notes(group: Group, made: WorkerGroup) -> Iterator[Problem]:
    """What will not be as it looks."""
    program = _program(made.command)
    if program in _INTERRUPTED:
        what = f"{program} ends at once when it is asked to end, and its task is lost"
        hint = "write a script that sends it INT at a TERM: how-to/taskcluster-workers-on-slurm"
        yield Problem(what, (*group.path, "command"), hint, "warning")
    if env.ends_with_its_shell(made.command):
        what = (
            "a shell stays in front of the worker, and the worker may not learn that it is to end"
        )
        hint = "write exec before the program that is to end by a TERM"
        yield Problem(what, (*group.path, "command"), hint, "warning")
    gpus = made.env.get("GPUS")
    if isinstance(gpus, str) and len(gpus.split()) != (group.gpus or 0):
        what = f"GPUS is {gpus!r}, but each worker has {group.gpus or 0} GPUs"
        hint = "write GPUS: {detect: gpu-indices} below env, or another number of gpus"
        yield Problem(what, (*group.path, "gpus"), hint, "warning")


def _program(command: str) -> str:
    """The name of the program that a line starts; nothing where it is not plain."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    words = words[1:] if words[:1] == ["exec"] else words
    return os.path.basename(words[0]) if words else ""


def _line(config: Config, path: Path) -> tuple[int, str]:
    """The line and the file where a key path stands; 0 and nothing where nobody knows."""
    if config.trace is None or path[:1] != TOP:
        return 0, ""
    place, source = config.trace.place(path, {})
    return place.line, source.shown
