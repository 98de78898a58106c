"""What ``launch`` says: what was asked, the allocation and why, warnings, the layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import facts, launch_notes
from taskgraph_workers.cli.layout import Styled
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import counted
from taskgraph_workers.units import clock_text

if TYPE_CHECKING:
    from taskgraph_workers.cli.launching import Plan
    from taskgraph_workers.launch.model import Demand, Size, WorkerGroup

#: What each way to size asks, for a reader who sees it for the first time.
_ASKS = {
    "exclusive": "whole nodes for each task",
    "packed": "every mixture of tasks fits",
    "certain": "no task waits, however tasks come and go",
    "useful": "no more workers than there are tasks at once",
    "given": "as it is written",
}

#: The most lines of a reason that the summary repeats.
_FEW = 6


# --- talk -----------------------------------------------------------------------------------


def tell(plan: Plan, output: Output, corrected: bool = True) -> None:
    """All that is to be said, on stderr: what is wrong in a line, what was asked, the allocation
    and why it is that large; then every warning, and (``corrected``) the spec as it ought to be.
    """
    wrong = launch_notes.verdict(plan)
    if wrong:
        output.talk(Styled(f"{wrong}: see below.", "red"))
        output.talk()
    for line in summary(plan):
        output.talk(line)
    output.talk()
    launch_notes.tell_notes(plan, output)
    if corrected:
        launch_notes.tell_corrected(plan, output, whole=True)
    _tell_order(plan, output)


def summary(plan: Plan) -> Iterator[str]:
    """The few lines that say what comes out."""
    groups = ", ".join(f"{group.number} {group.name}" for group in plan.ask.groups)
    yield f"{plan.ask.title}: {groups}"
    if plan.ask.others:
        others = ", ".join(f"--group {name}" for name in plan.ask.others)
        yield f"  not these, which have an allocation of their own: {others}"
    mode = plan.sizing.mode
    yield f"{counted(plan.sizing.nodes, 'node')} ({mode}: {_ASKS[mode]})"
    yield from (f"  {why}" for why in _reason(plan.sizing.sizes.get(mode), mode))
    yield _job(plan)


def _reason(size: Size | None, mode: str) -> Iterator[str]:
    """Why it is that many nodes, without what each task takes."""
    if size is None:
        return
    last = 1 if size.exact else 2
    yield from size.why[-last:] if mode == "packed" or len(size.why) > _FEW else size.why
    if size.unread:
        yield f"without what {' and '.join(size.unread)} may take, since nobody can tell"
    elif not size.exact and not size.cut_short:
        yield "it may be that fewer would do"


def _job(plan: Plan) -> str:
    header = plan.header
    parts = [f"nodes with {facts.node_text(plan.node)}"] if plan.node else []
    limit = header.walltime_s
    parts.append("no walltime" if limit is None else f"walltime {clock_text(limit)}")
    parts += [f"queue {header.queue}"] if header.queue else []
    flux = f", with {plan.inside.name} inside" if plan.inside else ""
    name = plan.known.name if plan.known else "no scheduler yet"
    return "; ".join([f"for {name}{flux}", *parts])


def _tell_order(plan: Plan, output: Output) -> None:
    """Merlin's own rule: where nothing is queued soon after the workers start, the job is done."""
    if plan.ask.until is None:
        return
    import shlex

    from taskgraph_workers.config.locate import Source
    from taskgraph_workers.launch.merlin.options import Options

    command = f"merlin run {shlex.quote(Source(plan.ask.file).shown)}"
    output.talk(
        f"Queue the study first ({command}):"
        f" a job that finds no work for {Options().monitor_s} s ends."
    )


# --- --size ---------------------------------------------------------------------------------


def show_size(plan: Plan, output: Output, as_json_: bool) -> None:
    """The sizing alone, on standard output: its derivation, and the picture of the layout."""
    if as_json_:
        output.json(as_json(plan))
        return
    launch_notes.tell_notes(plan, output)
    launch_notes.tell_corrected(plan, output, whole=False)
    wrong = launch_notes.verdict(plan)
    if wrong:
        output.line(Styled(f"{wrong}.", "red"))
        output.line()
    for group in plan.ask.groups:
        _show_group(group, output)
    output.line()
    for mode, size in plan.sizing.sizes.items():
        _show_size(mode, size, plan, output)
    output.line()
    for line in summary(plan):
        output.line(line)
    _picture(plan, output)


def _show_group(group: WorkerGroup, output: Output) -> None:
    why = f" ({group.why})" if group.why else ""
    output.line(Styled(group.name, "bold"), f": {counted(group.number, 'worker')}{why}")
    if group.queues:
        output.line(f"  serve {', '.join(group.queues)}")
    for demand in group.demands:
        # The workers of a cluster's group have no step but themselves.
        name = "each" if demand.step == group.name else demand.step
        output.line("  ", Styled(name, "cyan"), f": {_demand(demand, group)}")


def _demand(demand: Demand, group: WorkerGroup) -> str:
    from taskgraph_workers.launch.size.words import needed

    where = "" if demand.step in group.named or not group.named else "; not named, but queued there"
    inside = "" if demand.launcher else ", inside of its worker"
    return f"{needed(demand)}{inside}" + (f" ({demand.why})" if demand.why else "") + where


def _show_size(mode: str, size: Size | None, plan: Plan, output: Output) -> None:
    taken = mode == plan.sizing.mode
    said = f"unknown ({_unknown(mode, plan)})" if size is None else counted(size.nodes, "node")
    if size is not None and size.unread:
        said += f" without {' and '.join(size.unread)}"
    elif size is not None and not size.exact:
        said += " at most"
    output.line(
        Styled("* " if taken else "  ", "green"),
        Styled(f"{mode}: {said}", "green" if taken else "bold"),
        Styled(f": {_ASKS[mode]}", "dim"),
    )
    for why in size.why if size else ():
        output.line(f"      {why}")


def _unknown(mode: str, plan: Plan) -> str:
    """Why an answer is not known, or what it needs."""
    from taskgraph_workers.launch.size.build import unknown
    from taskgraph_workers.launch.size.words import node_option

    if mode == "exclusive":
        return "no task has a launcher"
    if mode == "useful" and not plan.ask.stages:
        return "no study to count tasks in"
    if plan.node is None:
        return "needs --node"
    return f"needs {node_option(unknown(plan.ask.groups, plan.node))}"


def _picture(plan: Plan, output: Output) -> None:
    from taskgraph_workers.launch.picture import picture

    lines = picture(plan.layout, plan.node, output.width)
    if lines:
        output.line()
    for line in lines:
        output.line(line)


# --- JSON -----------------------------------------------------------------------------------


def as_json(plan: Plan) -> dict[str, Any]:
    """The sizing as other programs read it."""
    sizing, node = plan.sizing, plan.node
    return {
        "scheduler": plan.known.name if plan.known else None,
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
            for note in map(launch_notes.brief, (*plan.notes, *plan.blockers))
        ],
        "corrected": plan.ask.corrected,
    }


def _group_json(group: WorkerGroup, plan: Plan) -> dict[str, Any]:
    return {
        "name": group.name,
        "number": group.number,
        "per_node": list(plan.layout.per_node(group.name)),
        "steps": [demand.step for demand in group.demands],
        "queues": list(group.queues),
    }
