"""``dispatch status``: how far requests are, once or as they go on."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from taskgraph_workers.cli import dispatch_state, dispatch_told, dispatch_watch, options
from taskgraph_workers.cli.dispatch_told import Shown
from taskgraph_workers.cli.output import Output

if TYPE_CHECKING:
    from taskgraph_workers.dispatch.ledger.database import Ledger
    from taskgraph_workers.dispatch.ledger.values import Request

#: So many facts of one request are shown.
_MOST_FACTS = 50

_BAD = ("failed", "canceled", "rejected")


def add_verb(parser: options.Parser) -> None:
    """Add ``status`` to ``dispatch``."""
    verb = options.add_verb(
        parser,
        "status",
        run,
        "How far requests are.",
        "taskgraph-workers dispatch status --watch",
    )
    verb.mixed = True
    add = verb.add_argument
    add("request", metavar="REQUEST", nargs="?", help="this one, with what was told of it")
    add("--watch", action="store_true", help="go on, as things change")
    some = options.number(1)
    newest = "the newest N (default: %(default)s)"
    add("--limit", metavar="N", type=some, default=100, help=newest)
    dispatch_state.add_state(verb)
    options.add_output(verb)


def run(args: argparse.Namespace, output: Output) -> int:
    """Print requests; 1 where the one that was asked for has not ended well."""
    with dispatch_state.opened(args, output) as ledger:
        if args.watch:
            last = dispatch_watch.watch(args, lambda: _look(args, ledger), output)
            return last if isinstance(last, int) else _code(args, last)
        shown = _look(args, ledger)
    dispatch_told.show(args, shown, output)
    return _code(args, shown)


def _code(args: argparse.Namespace, shown: Sequence[Shown]) -> int:
    return 1 if args.request is not None and shown[0].request.state in _BAD else 0


def _look(args: argparse.Namespace, ledger: Ledger) -> list[Shown]:
    """The requests that are shown, with what is shown of each."""
    from taskgraph_workers.dispatch.ledger import progress

    found = _found(args, ledger)
    if args.json:
        facts = ledger.see(progress.facts_of, [each.request_id for each in found])
        told = [facts.get(each.request_id, ()) for each in found]
        return [Shown(each, some, len(some)) for each, some in zip(found, told)]
    if args.request is not None:
        some, count = ledger.see(progress.last, found[0].request_id, _MOST_FACTS)
        return [Shown(found[0], some, count)]
    return [_reached(ledger, each) for each in found]


def _found(args: argparse.Namespace, ledger: Ledger) -> list[Request]:
    """The newest requests, and of older ones that have not ended as many, the oldest."""
    from taskgraph_workers.dispatch.ledger import queries

    if args.request is not None:
        return [dispatch_state.known(ledger, args.request)]
    found = list(ledger.see(queries.newest, args.limit))
    shown = {each.request_id for each in found}
    older = [each for each in ledger.see(queries.alive, args.limit) if each.request_id not in shown]
    return found + older[::-1]


def _reached(ledger: Ledger, request: Request) -> Shown:
    """With what was reached last: not how it ended, which its state says, nor its machine's end."""
    from taskgraph_workers.dispatch.ledger import progress
    from taskgraph_workers.dispatch.model import END_ROWS, MACHINE_ROWS

    others = {*END_ROWS.values(), *(MACHINE_ROWS if request.ended_at is not None else ())}
    fact = ledger.see(progress.reached, request.request_id, others)
    return Shown(request) if fact is None else Shown(request, (fact,), 1)
