"""What ``launch`` says: what was asked, the allocation and why, warnings, the layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import facts
from taskgraph_workers.cli.layout import Styled
from taskgraph_workers.cli.output import Output

if TYPE_CHECKING:
    from taskgraph_workers.cli.launching import Plan
    from taskgraph_workers.launch.model import Demand, Size, WorkerGroup

#: What each way to size asks, for a reader who sees it for the first time.
_ASKS = {
    "exclusive": "whole nodes for each task",
    "packed": "every mixture of tasks at once fits",
    "certain": "and in whatever order they come",
    "useful": "no more workers than there are tasks at once",
}


# --- talk -----------------------------------------------------------------------------------


def tell(plan: Plan, output: Output) -> None:
    """What was asked, the allocation, why it is that large, and every warning: on stderr."""
    for line in summary(plan):
        output.talk(line)
    tell_notes(plan, output)


def summary(plan: Plan) -> Iterator[str]:
    """The few lines that say what comes out."""
    groups = ", ".join(f"{group.number} {group.name}" for group in plan.ask.groups)
    yield f"{plan.ask.title}: {groups}"
    if plan.ask.others:
        others = ", ".join(f"--group {name}" for name in plan.ask.others)
        yield f"  not these, which have an allocation of their own: {others}"
    yield f"{_nodes(plan.sizing.nodes)} ({plan.sizing.mode}), {_job(plan)}"
    size = plan.sizing.sizes.get(plan.sizing.mode)
    for why in size.why[-1:] if size else ():
        yield f"  {why}"
    if size is not None and not size.exact:
        yield "  it may be that fewer would do: the search was cut short"


def _job(plan: Plan) -> str:
    parts = [f"each with {facts.node_text(plan.node)}"] if plan.node else []
    header = plan.header
    parts += [time_text(header.walltime_s)] if header.walltime_s is not None else []
    parts += [f"queue {header.queue}"] if header.queue else []
    flux = f", with {plan.inside.name} inside" if plan.inside else ""
    return ", ".join([*parts, f"{plan.scheduler.name}{flux}"])


def tell_notes(plan: Plan, output: Output) -> None:
    """Warnings, each with its place in front where it has one; and the spec as it ought to be."""
    for note in (*plan.notes, *plan.blockers):
        if note.file:
            for line in str(note).splitlines():
                output.talk(line)
        else:
            hint = f"\n    hint: {note.hint}" if note.hint else ""
            output.warn(f"{note.text}{hint}")
    if plan.ask.corrected is not None:
        output.talk("Merlin would do what is meant if the spec said:")
        output.talk_lines(_indented(plan.ask.corrected))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def time_text(seconds: int) -> str:
    """A duration as people read it.

    >>> time_text(1200), time_text(90061)
    ('0:20:00', '1-01:01:01')
    """
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock:0>8}" if days else clock


def _nodes(number: int) -> str:
    return f"{number} node" + ("" if number == 1 else "s")


# --- --size ---------------------------------------------------------------------------------


def show_size(plan: Plan, output: Output, as_json_: bool) -> None:
    """The sizing alone, on standard output: its derivation, and the picture of the layout."""
    if as_json_:
        output.json(as_json(plan))
        return
    tell_notes(plan, output)
    for group in plan.ask.groups:
        _show_group(group, output)
    output.line()
    for mode, size in plan.sizing.sizes.items():
        _show_size(mode, size, plan, output)
    output.line()
    for line in summary(plan):
        output.line(line)
    output.line()
    _picture(plan, output)


def _show_group(group: WorkerGroup, output: Output) -> None:
    why = f" ({group.why})" if group.why else ""
    output.line(Styled(group.name, "bold"), f": {_counted(group.number, 'worker')}{why}")
    if group.queues:
        output.line(f"  serve {', '.join(group.queues)}")
    for demand in group.demands:
        output.line("  ", Styled(demand.step, "cyan"), f": {_demand(demand, group)}")


def _demand(demand: Demand, group: WorkerGroup) -> str:
    where = "" if demand.step in group.named or not group.named else "; not named, but queued there"
    inside = "" if demand.launcher else ", inside of its worker"
    return f"{demand_text(demand)}{inside}" + (f" ({demand.why})" if demand.why else "") + where


def demand_text(demand: Demand) -> str:
    """What a task takes, as people say it."""
    parts = [_counted(demand.cores, "core")]
    parts += [_counted(demand.gpus, "GPU")] if demand.gpus else []
    parts += [f"{demand.memory_mib} MiB"] if demand.memory_mib else []
    each = " and ".join(parts)
    if demand.nodes == 1:
        return each
    return f"{demand.nodes} nodes x " + (f"({each})" if len(parts) > 1 else each)


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")


def _show_size(mode: str, size: Size | None, plan: Plan, output: Output) -> None:
    taken = mode == plan.sizing.mode
    said = "can't be told" if size is None else _nodes(size.nodes)
    if size is not None and not size.exact:
        said += " at most"
    output.line(
        Styled("* " if taken else "  ", "green"),
        Styled(f"{mode}: {said}", "green" if taken else "bold"),
        Styled(f"  {_ASKS.get(mode, '')}", "dim"),
    )
    for why in size.why if size else ():
        output.line(f"      {why}")


def _picture(plan: Plan, output: Output) -> None:
    from taskgraph_workers.launch.picture import picture

    for line in picture(plan.layout, plan.node, output.width):
        output.line(line)


# --- JSON -----------------------------------------------------------------------------------


def as_json(plan: Plan) -> dict[str, Any]:
    """The sizing as other programs read it."""
    sizing, node = plan.sizing, plan.node
    return {
        "scheduler": plan.scheduler.name,
        "inside": plan.inside.name if plan.inside else None,
        "allocation": {
            "nodes": sizing.nodes,
            "mode": sizing.mode,
            "walltime_s": plan.header.walltime_s,
        },
        "node": {
            "cores": node.cores if node else None,
            "gpus": node.gpus if node else None,
            "memory_mib": node.memory_mib if node else None,
            "from": plan.node_from or None,
        },
        "sizes": {mode: size.nodes if size else None for mode, size in sizing.sizes.items()},
        "exact": {mode: size.exact if size else None for mode, size in sizing.sizes.items()},
        "why": {mode: list(size.why) if size else [] for mode, size in sizing.sizes.items()},
        "groups": [_group_json(group, plan) for group in plan.ask.groups],
        "warnings": [
            {"line": note.line or None, "message": note.text, "hint": note.hint}
            for note in (*plan.notes, *plan.blockers)
        ],
    }


def _group_json(group: WorkerGroup, plan: Plan) -> dict[str, Any]:
    return {
        "name": group.name,
        "number": group.number,
        "per_node": list(plan.layout.per_node(group.name)),
        "steps": [demand.step for demand in group.demands],
        "queues": list(group.queues),
    }
