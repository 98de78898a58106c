"""``dispatch status``, ``ends``, ``dead``, ``orphans``: what can be looked at."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import dispatch_letters, dispatch_state, options
from taskgraph_workers.cli.dispatch_state import when
from taskgraph_workers.cli.layout import Cell, Styled
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError

if TYPE_CHECKING:
    from taskgraph_workers.dispatch.ledger.database import Ledger
    from taskgraph_workers.dispatch.ledger.values import Fact, Machine, Request

    #: A request, and what was told of it.
    _Told = tuple[Request, Sequence[Fact]]

#: How often a table that lives is drawn anew.
_EVERY_S = 1.0

#: How long a machine may be unneeded before it is an orphan.
_AFTER = "2h"

_STYLES = {"succeeded": "green", "failed": "red", "rejected": "red", "running": "cyan"}
_BAD = ("failed", "canceled", "rejected")

# Erase what is on the terminal, and begin at its top.
_ANEW = "\033[H\033[2J"


def add_verbs(parser: options.Parser) -> None:
    """Add them to ``dispatch``."""
    _add_status(parser)
    _add_ends(parser)
    dispatch_letters.add_verbs(parser)
    _add_orphans(parser)


def _add_status(parser: options.Parser) -> None:
    verb = options.add_verb(
        parser,
        "status",
        status,
        "How far requests are.",
        "taskgraph-workers dispatch status --watch",
    )
    verb.mixed = True
    add = verb.add_argument
    add("request", metavar="REQUEST", nargs="?", help="this one, with all that was told of it")
    add("--watch", action="store_true", help="go on, as things change")
    some = options.number(1)
    newest = "the newest N (default: %(default)s)"
    add("--limit", metavar="N", type=some, default=100, help=newest)
    dispatch_state.add_state(verb)
    options.add_output(verb)


def _add_ends(parser: options.Parser) -> None:
    verb = options.add_verb(
        parser,
        "ends",
        ends,
        "End messages that were sent.",
        "taskgraph-workers dispatch ends --json",
    )
    add, some, last = verb.add_argument, options.number(1), options.number(0)
    add("--limit", metavar="N", type=some, default=1000, help="the first N (default: %(default)s)")
    add("--after", metavar="N", type=last, default=0, help="those behind number N, to go on")
    dispatch_state.add_state(verb)
    options.add_output(verb)


def _add_orphans(parser: options.Parser) -> None:
    verb = options.add_verb(
        parser,
        "orphans",
        orphans,
        "Machines that are still there, and that no training needs.",
        "taskgraph-workers dispatch orphans --after 30m",
    )
    unneeded = "unneeded for so long (default: %(default)s)"
    verb.add_argument("--after", metavar="TIME", default=_AFTER, help=unneeded)
    dispatch_state.add_state(verb)
    options.add_output(verb)


# --- status ---------------------------------------------------------------------------------


def status(args: argparse.Namespace, output: Output) -> int:
    """Print requests; 1 where the one that was asked for has not ended well."""
    with dispatch_state.opened(args, output) as ledger:
        if args.watch:
            return _watch(args, ledger, output)
        told = _told(args, ledger)
    _print(args, told, output)
    return _code(args, told)


def _code(args: argparse.Namespace, told: Sequence[_Told]) -> int:
    return 1 if args.request is not None and told[0][0].state in _BAD else 0


def _told(args: argparse.Namespace, ledger: Ledger) -> list[_Told]:
    """The requests that are shown, with all that was told of each."""
    from taskgraph_workers.dispatch.ledger import progress

    found = _found(args, ledger)
    facts = ledger.see(progress.facts_of, [each.request_id for each in found])
    return [(each, facts.get(each.request_id, ())) for each in found]


def _found(args: argparse.Namespace, ledger: Ledger) -> list[Request]:
    """The requests that are shown: the newest, and all that have not ended."""
    from taskgraph_workers.dispatch.ledger import queries

    if args.request is not None:
        return [dispatch_state.known(ledger, args.request)]
    found = list(ledger.see(queries.newest, args.limit))
    shown = {each.request_id for each in found}
    older = [each for each in ledger.see(queries.alive, args.limit) if each.request_id not in shown]
    return found + older[::-1]


def _print(args: argparse.Namespace, told: Sequence[_Told], output: Output) -> None:
    if args.json:
        output.json({"requests": [_as_json(each, known) for each, known in told]})
    elif args.request is not None:
        _one(*told[0], output)
    elif told:
        _many(told, output)
    else:
        output.talk("there are no requests yet")


def _watch(args: argparse.Namespace, ledger: Ledger, output: Output) -> int:
    """Print anew whatever changes, until what was asked for has ended, or somebody has enough."""
    terminal = sys.stdout.isatty() and not args.json
    before: list[_Told] | None = None
    while True:
        told = _told(args, ledger)
        if told != before:
            if terminal:
                output.text(_ANEW)
            elif before is not None and not args.json:
                output.text("\n")
            _print(args, told, output)
            sys.stdout.flush()
            before = told
        if args.request is not None and told[0][0].ended_at is not None:
            return _code(args, told)
        time.sleep(_EVERY_S)


def _as_json(request: Request, facts: Iterable[Fact]) -> dict[str, Any]:
    from taskgraph_workers.dispatch.log import stamp

    return {
        "requestId": request.request_id,
        "state": request.state,
        "sku": request.sku,
        "image": request.image,
        "trainingVmId": request.machine,
        "progress": [
            {
                "name": fact.progress.name,
                "at": stamp(fact.progress.at),
                "run": fact.progress.run,
                "attempt": fact.attempt,
                "data": dict(fact.progress.data),
            }
            for fact in facts
        ],
        "reason": request.reason or None,
        "attempt": request.attempt,
        "executor": request.executor,
        "exitCode": request.exit_code,
        "receivedAt": _at(request.received_at),
        "startedAt": _at(request.started_at),
        "endedAt": _at(request.ended_at),
        "unheardSince": _at(request.unheard_since),
        "cancelAskedAt": _at(request.cancel_asked_at),
    }


def _many(told: Sequence[_Told], output: Output) -> None:
    rows: list[list[Cell]] = []
    for request, facts in told:
        rows.append(
            [
                request.request_id,
                Styled(request.state, _STYLES.get(request.state, "")),
                request.sku or "",
                request.image or "",
                _so_far(request, facts),
            ]
        )
        rows += [[f"  {note}"] for note in _notes(request)]
    output.table(rows, ("request", "state", "sku", "image", "so far"))


def _so_far(request: Request, facts: Sequence[Fact]) -> str:
    """What was reached last; not how it ended, which its state says, nor what machines did then."""
    from taskgraph_workers.dispatch.model import END_ROWS, MACHINE_ROWS

    others = {*END_ROWS.values(), *(MACHINE_ROWS if request.ended_at is not None else ())}
    names = [fact.progress.name for fact in facts if fact.progress.name not in others]
    return names[-1] if names else ""


def _notes(request: Request) -> list[str]:
    notes = [request.reason] if request.reason else []
    if request.ended_at is None and request.unheard_since is not None:
        notes.append(f"nobody could be asked about it since {when(request.unheard_since)}")
    if request.ended_at is None and request.cancel_asked_at is not None:
        notes.append(f"asked to end at {when(request.cancel_asked_at)}")
    return notes


def _one(request: Request, facts: Sequence[Fact], output: Output) -> None:
    said: dict[str, Cell | None] = {
        "state": Styled(request.state, _STYLES.get(request.state, "")),
        "": "; ".join(_notes(request)),
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
    output.table([[name, value] for name, value in said.items() if value], indent=2)
    if facts:
        output.line()
        output.table([_fact_row(fact) for fact in facts], ("time", "so far", "run", ""), indent=2)


def _fact_row(fact: Fact) -> list[Cell]:
    told = fact.progress
    data = ", ".join(f"{name}: {value}" for name, value in told.data.items())
    return [when(told.at), told.name, str(told.run), data]


# --- ends -----------------------------------------------------------------------------------


def ends(args: argparse.Namespace, output: Output) -> int:
    """Print end messages, in the order in which they came to be: of the queue that has them."""
    from taskgraph_workers.dispatch import state as states
    from taskgraph_workers.dispatch.ledger import outbox

    apart = states.has_queue(dispatch_state.state_of(args))
    opened = dispatch_state.messages if apart else dispatch_state.opened
    with opened(args, output) as ledger:
        found = ledger.see(outbox.ends, args.limit, args.after)
    if args.json:
        output.json(
            {
                "ends": [dict(each.body) for each in found],
                "last": found[-1].number if found else args.after,
            }
        )
    elif found:
        rows: list[list[Cell]] = [
            [
                str(each.body["requestId"]),
                Styled(str(each.body["outcome"]), _STYLES.get(str(each.body["outcome"]), "")),
                str(each.body["trainingVmId"] or ""),
                when(each.sent_at),
            ]
            for each in found
        ]
        output.table(rows, ("request", "outcome", "machine", "sent"))
    else:
        output.talk("no end message was sent yet")
    return 0


# --- orphans --------------------------------------------------------------------------------


def orphans(args: argparse.Namespace, output: Output) -> int:
    """Print machines that should be gone; 1 where there is one."""
    from taskgraph_workers.dispatch.ledger import machines
    from taskgraph_workers.units import seconds

    try:
        after_s = seconds(args.after)
    except ValueError as error:
        raise WorkersError(Problem(f"--after: {error}")) from None
    with dispatch_state.opened(args, output) as ledger:
        found = ledger.see(machines.overdue, time.time(), after_s)
    if args.json:
        output.json({"orphans": [_machine(each) for each in found]})
    elif found:
        rows: list[list[Cell]] = [
            [each.id, each.pool, when(each.created_at), when(each.stop_asked_at)] for each in found
        ]
        output.table(rows, ("machine", "pool", "created", "asked to stop"))
    else:
        output.talk("every machine that is there is needed")
    return 1 if found else 0


def _machine(machine: Machine) -> dict[str, Any]:
    return {
        "trainingVmId": machine.id,
        "pool": machine.pool,
        "createdAt": _at(machine.created_at),
        "stopAskedAt": _at(machine.stop_asked_at),
    }


def _at(time: float | None) -> str | None:
    from taskgraph_workers.dispatch.log import stamp

    return None if time is None else stamp(time)
