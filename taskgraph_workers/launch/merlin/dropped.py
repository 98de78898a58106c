"""What Merlin makes of a step's sizes, where that is something else than the spec says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taskgraph_workers.launch.merlin.launchers import LAUNCHER_OF, RAW_KEY, Launch, allocation
from taskgraph_workers.launch.merlin.run import Run

#: How GPUs are said so that Merlin doesn't drop them, for each of its launchers.
_GPUS = {
    "srun": "slurm: --gpus-per-task={}",
    "flux": "gpus per task: {}",
    "jsrun": "gpus per task: {}",
}
_V_GPUS = "MERLIN_GPUS"
#: Keys that none of Merlin's launchers is told (``script_adapter.py``).
_UNSUPPORTED = ("exclusive", "reservation", "qos")


def without_launcher(run: Run) -> None:
    """A step without a launcher runs inside its worker, whatever its keys say."""
    for key in ("nodes", "procs", "cores per task", "gpus per task"):
        if run.sizes.get(key, "1") not in ("0", "1"):
            what = f"{key} has no effect: step {run.name!r} has no launcher, and runs in its worker"
            run.warn(what, key, "put $(LAUNCHER) in front of its program")


def with_launcher(run: Run, type: str, found: Sequence[tuple[Launch, Mapping[str, str]]]) -> None:
    """A step with ``$(LAUNCHER)`` or ``$(VLAUNCHER)``; each launch with its shell's variables."""
    tools = {launch.tool for launch, _ in found} & {"LAUNCHER", "VLAUNCHER"}
    if not tools:
        return
    tool = LAUNCHER_OF.get(type)
    if tool is None:
        what = f"Merlin puts nothing in place of $(LAUNCHER) where the batch type is {type}"
        run.warn(what, hint="write a type that has a launcher: slurm, flux or lsf")
        return
    if "VLAUNCHER" not in tools:
        _numbers(run)
    elif "$(VLAUNCHER)" in run.script("restart"):
        run.warn("Merlin replaces $(VLAUNCHER) in cmd only", "restart", "write $(LAUNCHER)")
    _brackets(run, [launch for launch, _ in found])
    _dropped(run, tool)
    if any(one.tool == "VLAUNCHER" and env.get(_V_GPUS, "0") != "0" for one, env in found):
        what = f"Merlin drops {_V_GPUS}: its {tool} command asks for none; launch counts it"
        run.warn(what, "cmd", f"write {_GPUS[tool].format('(GPUs of a task)')}")


def _numbers(run: Run) -> None:
    if not run.sizes.keys() & {"nodes", "procs"}:
        what = "$(LAUNCHER) needs procs: Merlin leaves it as it is without"
        run.warn(what, "cmd", "add procs: 1, or more")
    elif "procs" not in run.run:
        what = f"$(LAUNCHER) needs procs, or {run.name} fails"
        run.warn(what, "nodes", f"add procs: {_tasks(run)}", fatal=True)


def _tasks(run: Run) -> object:
    """As many tasks as there are cores, which Merlin has no key for; at least one on each node."""
    nodes, cores = run.run["nodes"], run.sizes.get("cores", "")
    # More tasks, or tasks with more cores, would be more than is asked for.
    if not cores.isdigit() or run.sizes.get("gpus per task", "0") != "0":
        return nodes
    return cores if str(nodes).isdigit() and int(cores) >= int(nodes) else nodes


def _brackets(run: Run, found: Sequence[Launch]) -> None:
    """Maestro refuses brackets that ask for more than the step has, all of them together."""
    for size, key in (("nodes", "nodes"), ("tasks", "procs")):
        try:
            total = sum(allocation(each.alloc).get(size, 0) for each in found if each.alloc)
        except ValueError:
            return
        has = run.sizes.get(key, "")
        if has.isdigit() and total > int(has):
            what = f"Merlin refuses this: the brackets of $(LAUNCHER) add up to {total} {key}"
            what = f"{what}, and the step has {has}"
            run.warn(what, key, f"write {key}: {total}", fatal=True)


def _dropped(run: Run, tool: str) -> None:
    """Name what Merlin drops. Sizes count in launch all the same."""
    hints = {
        "cores": "write procs, and cores per task where that is more than 1",
        "gpus": f"write {_GPUS[tool].format(_share(run))}",
        "gpus per task": f"write {_GPUS[tool].format(run.sizes.get('gpus per task'))}",
    }
    for key in ("cores", "gpus", *(("gpus per task",) if tool == "srun" else ())):
        if run.sizes.get(key, "0") != "0":
            what = f"Merlin drops {key!r}: its {tool} command asks for none; launch counts it"
            run.warn(what, key, hints[key])
    for key in _UNSUPPORTED:
        if run.run.get(key):
            run.warn(f"Merlin drops {key!r} of a step", key)
    for other, key in RAW_KEY.items():
        if other != tool and run.run.get(key):
            what = f"{key} has no effect: the launcher of this step is {tool}"
            run.warn(what, key, f"write {RAW_KEY[tool]}: ..., if it is meant")
    if tool == "jsrun":
        _sets(run)


def _share(run: Run) -> str:
    """The GPUs of one task, where all of the step's divide by its tasks."""
    tasks = run.sizes.get("procs", run.sizes.get("nodes", "1"))
    total = run.sizes.get("gpus", "")
    if tasks.isdigit() and total.isdigit() and int(total) % int(tasks) == 0:
        return str(int(total) // int(tasks))
    return "(GPUs of a task)"


def _sets(run: Run) -> None:
    """Merlin makes one resource set of a node, and gives it what is said for one task."""
    if run.sizes.get("procs", "1") == run.sizes.get("nodes", "1"):
        return
    for key in ("cores per task", "gpus per task"):
        if run.sizes.get(key, "1") not in ("0", "1") or (key in run.sizes and key[0] == "g"):
            what = f"Merlin's jsrun gives {key!r} to each node, whose tasks share it"
            run.warn(what, key, "say it in lsf: ..., if each task is to have its own")
