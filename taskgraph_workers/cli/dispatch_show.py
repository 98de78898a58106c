"""What can be looked at: ``dispatch status``, ``dead``, and here ``ends`` and ``orphans``."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import dispatch_letters, dispatch_state, dispatch_status, options
from taskgraph_workers.cli.dispatch_state import STYLES, stamped, when
from taskgraph_workers.cli.layout import Cell, Styled
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError

if TYPE_CHECKING:
    from taskgraph_workers.dispatch.ledger.values import Machine

#: How long a machine may be unneeded before it is an orphan.
_AFTER = "2h"


def add_verbs(parser: options.Parser) -> None:
    """Add them to ``dispatch``."""
    dispatch_status.add_verb(parser)
    _add_ends(parser)
    dispatch_letters.add_verbs(parser)
    _add_orphans(parser)


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
                Styled(str(each.body["outcome"]), STYLES.get(str(each.body["outcome"]), "")),
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
        "createdAt": stamped(machine.created_at),
        "stopAskedAt": stamped(machine.stop_asked_at),
    }
