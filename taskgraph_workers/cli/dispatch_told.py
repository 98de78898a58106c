"""Requests as ``dispatch status`` tells of them: in a table, one by one, as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import dispatch_output
from taskgraph_workers.cli.dispatch_state import STYLES, stamped, when
from taskgraph_workers.cli.layout import Cell, Styled
from taskgraph_workers.cli.output import Output

if TYPE_CHECKING:
    from taskgraph_workers.dispatch.ledger.values import Fact, Request


@dataclass(frozen=True)
class Shown:
    """A request, and what of that was told is shown; ``count`` is of all that was."""

    request: Request
    facts: Sequence[Fact] = ()
    count: int = 0


# --- as a table -----------------------------------------------------------------------------


def show(args: argparse.Namespace, shown: Sequence[Shown], output: Output) -> None:
    """Print them as the options say."""
    if args.json:
        output.json({"requests": [_as_json(args, each) for each in shown]})
    elif args.request is not None:
        _print_one(args, shown[0], output)
    elif shown:
        show_many(shown, output)
    else:
        output.talk("there are no requests yet")


def show_many(shown: Iterable[Shown], output: Output) -> None:
    """Print a table of them."""
    rows: list[list[Cell]] = []
    for each in shown:
        request = each.request
        row = [request.sku or "", request.image or "", so_far(each)]
        rows.append([request.request_id, _state(request), *row])
        rows += [[f"  {note}"] for note in notes(request)]
    output.table(rows, ("request", "state", "sku", "image", "so far"))


def _print_one(args: argparse.Namespace, shown: Shown, output: Output) -> None:
    file = show_head(args, shown.request, output)
    if shown.facts:
        output.line()
        show_facts(shown, output)
    if file is not None and shown.request.state == "failed":
        dispatch_output.show_end(file, output)


def show_head(
    args: argparse.Namespace, request: Request, output: Output, whole: bool = True
) -> str | None:
    """Print all but facts; the file of what its trainer prints, if that is here.

    ``whole``: its path stands on one line, whatever the width, so that it can be copied.
    """
    file = dispatch_output.file_of(args, request)
    said: dict[str, Cell | None] = {
        "state": _state(request),
        "": "; ".join(notes(request)),
        "sku": request.sku,
        "image": request.image,
        "machine": request.machine,
        "executor": request.executor,
        "job": request.key,
        "attempt": str(request.attempt) if request.attempt > 1 else None,
        "run": str(request.run) if request.run else None,
        "exit code": None if request.exit_code is None else str(request.exit_code),
        "received": when(request.received_at),
        "started": when(request.started_at),
        "ended": when(request.ended_at),
    }
    output.line(Styled(request.request_id, "bold"))
    rows = [[name, value] for name, value in said.items() if value]
    if file is not None and not whole:
        rows.append(["output", dispatch_output.near(file)])
    output.table(rows, indent=2)
    if file is not None and whole:
        width = max(len(str(name)) for name, _ in rows)
        output.whole_line(f"  {'output':{width}}  {dispatch_output.near(file)}")
    return file


def show_facts(shown: Shown, output: Output) -> None:
    """Print what was told of a request, under a line that says so where it is not all."""
    left_out = shown.count - len(shown.facts)
    if left_out:
        output.line("  ", Styled(f"{left_out} earlier facts: --json has them all", "dim"))
    rows = [_fact_row(fact) for fact in shown.facts]
    output.table(rows, ("time", "so far", "run", ""), indent=2)


def _fact_row(fact: Fact) -> list[Cell]:
    told = fact.progress
    return [when(told.at), told.name, str(told.run), data_of(fact)]


def data_of(fact: Fact) -> str:
    """What was said besides, on one line."""
    return ", ".join(f"{name}: {value}" for name, value in fact.progress.data.items())


def _state(request: Request) -> Styled:
    return Styled(request.state, STYLES.get(request.state, ""))


def so_far(shown: Shown) -> str:
    """The name of what was reached last; empty where nothing was."""
    return shown.facts[-1].progress.name if shown.facts else ""


def notes(request: Request) -> list[str]:
    """Why it is as it is, as far as that is known."""
    notes = [request.reason] if request.reason else []
    if request.ended_at is None and request.unheard_since is not None:
        notes.append(f"nobody could be asked about it since {when(request.unheard_since)}")
    if request.ended_at is None and request.cancel_asked_at is not None:
        notes.append(f"asked to end at {when(request.cancel_asked_at)}")
    return notes


# --- as JSON --------------------------------------------------------------------------------


def _as_json(args: argparse.Namespace, shown: Shown) -> dict[str, Any]:
    request = shown.request
    return {
        "requestId": request.request_id,
        "state": request.state,
        "sku": request.sku,
        "image": request.image,
        "trainingVmId": request.machine,
        "progress": [_fact_as_json(fact) for fact in shown.facts],
        "reason": request.reason or None,
        "attempt": request.attempt,
        "executor": request.executor,
        "job": request.key,
        "run": request.run,
        "exitCode": request.exit_code,
        "output": dispatch_output.file_of(args, request),
        "receivedAt": stamped(request.received_at),
        "startedAt": stamped(request.started_at),
        "endedAt": stamped(request.ended_at),
        "unheardSince": stamped(request.unheard_since),
        "cancelAskedAt": stamped(request.cancel_asked_at),
    }


def _fact_as_json(fact: Fact) -> dict[str, Any]:
    told = fact.progress
    of = {"name": told.name, "at": stamped(told.at), "run": told.run, "attempt": fact.attempt}
    return {**of, "seq": told.seq, "data": dict(told.data)}
