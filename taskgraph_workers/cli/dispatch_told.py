"""Requests as ``dispatch status`` tells of them: in a table, one by one, as JSON."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import dispatch_output
from taskgraph_workers.cli.dispatch_state import STYLES, stamped, when
from taskgraph_workers.cli.layout import GAP, Cell, Part, Styled, width_of, wrap
from taskgraph_workers.cli.output import Output

if TYPE_CHECKING:
    from taskgraph_workers.dispatch.ledger.values import Fact, Request


# How wide the id of a request is that no image gives way for: as wide as a UUID.
_USUAL_ID = 36

# As much of a digest as git shows of one.
_SHORT_DIGEST = 7


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


def show_many(shown: Sequence[Shown], output: Output) -> None:
    """Print a table of them; without their images where there is no room for these."""
    heads = ("request", "state", "sku", "image", "so far")
    cells = [_cells(each) for each in shown]
    natural = [max(map(width_of, column)) for column in zip(heads, *cells)]
    natural[0] = min(natural[0], _USUAL_ID)
    wide = sum(natural) + GAP * (len(heads) - 1) > output.width
    kept = [at for at in range(len(heads)) if not (wide and heads[at] == "image")]
    rows: list[list[Cell]] = []
    for each, words in zip(shown, cells):
        styled: list[Cell] = [words[0], _state(each.request), *words[2:]]
        rows.append([styled[at] for at in kept])
        rows += [[f"  {note}"] for note in notes(each.request)]
    output.table(rows, [heads[at] for at in kept])


def _cells(shown: Shown) -> tuple[str, ...]:
    request = shown.request
    image = image_name(request.image or "")
    return request.request_id, request.state, request.sku or "", image, so_far(shown)


def image_name(image: str) -> str:
    """An image without its digest, which fills a line; what is not to be mistaken shows it whole.

    >>> image_name("me/trainer:2@sha256:0123456789ab")
    'me/trainer:2@0123456'
    """
    name, _, digest = image.partition("@")
    return f"{name}@{digest.rpartition(':')[2][:_SHORT_DIGEST]}" if digest else name


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
    said: dict[str, Part | None] = {
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
    if file is not None and not whole:
        said["output"] = dispatch_output.near(file)
    names = max(len(name) for name, value in said.items() if value)
    # Wrapped here, so that no name gives way for a value that has no blank.
    room = output.width - 2 - names - GAP
    rows: list[list[Cell]] = [
        [name, list(wrap([value if isinstance(value, Styled) else Styled(value)], room))]
        for name, value in said.items()
        if value
    ]
    output.table(rows, indent=2)
    if file is not None and whole:
        output.whole_line(f"  {'output':{names}}  {dispatch_output.near(file)}")
    return file


def show_facts(shown: Shown, output: Output) -> None:
    """Print what was told of a request, under a line that says so where it is not all."""
    left_out = shown.count - len(shown.facts)
    if left_out:
        output.line("  ", Styled(f"{left_out} earlier facts: --json has them all", "dim"))
    columns: dict[str, list[Cell]] = {
        "time": [when(fact.progress.at) for fact in shown.facts],
        "so far": [fact.progress.name for fact in shown.facts],
        "seq": _numbers(shown.facts),
        "attempt": [str(fact.attempt) for fact in shown.facts],
        "run": [str(fact.progress.run) for fact in shown.facts],
        "": [data_of(fact, shown.request) for fact in shown.facts],
    }
    if not any(columns["seq"]):
        del columns["seq"]
    if shown.request.attempt == 1:
        del columns["attempt"]
    output.table([list(row) for row in zip(*columns.values())], tuple(columns), indent=2)


def _numbers(facts: Sequence[Fact]) -> list[Cell]:
    """What tells facts of one name apart; empty where there is but one."""
    names = [(fact.attempt, fact.progress.run, fact.progress.name) for fact in facts]
    count = Counter(names)
    return [str(fact.progress.seq) if count[of] > 1 else "" for of, fact in zip(names, facts)]


def data_of(fact: Fact, request: Request) -> str:
    """What was said besides, on one line, but for the reason that is shown with its request."""
    said = {**fact.progress.data}
    if request.reason and said.get("reason") == request.reason:
        del said["reason"]
    return ", ".join(f"{name}: {value}" for name, value in said.items())


def _state(request: Request) -> Styled:
    return Styled(request.state, STYLES.get(request.state, ""))


def so_far(shown: Shown) -> str:
    """The name of what was reached last; empty where nothing was."""
    return shown.facts[-1].progress.name if shown.facts else ""


def notes(request: Request) -> list[str]:
    """Why it is as it is, as far as that is known."""
    notes = [request.reason] if request.reason else []
    if request.ended_at is None and request.unheard_since is not None:
        since = f"nobody could be asked about it since {when(request.unheard_since)}"
        notes = [": ".join((since, *notes))]
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
