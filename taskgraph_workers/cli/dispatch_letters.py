"""``dispatch dead``: messages that could not work."""

from __future__ import annotations

import argparse
import base64
import time
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import dispatch_state, options
from taskgraph_workers.cli.dispatch_state import stamped, when
from taskgraph_workers.cli.layout import Cell
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError, did_you_mean

if TYPE_CHECKING:
    from taskgraph_workers.dispatch.ledger.values import Letter

#: What can be done with them.
LIST, SHOW, PUT_BACK, DISCARD = ACTS = ("list", "show", "put-back", "discard")

#: A message that can be read is shown so far.
_MOST_SHOWN = 4096


def add_verbs(parser: options.Parser) -> None:
    """Add ``dead`` to ``dispatch``."""
    verb = options.add_verb(
        parser,
        "dead",
        run,
        "Messages that could not work: list, show, put back.",
        "taskgraph-workers dispatch dead\n"
        "  taskgraph-workers dispatch dead show 3\n"
        "  taskgraph-workers dispatch dead put-back 3",
    )
    verb.mixed = True
    add = verb.add_argument
    add(
        "act",
        metavar="ACT",
        nargs="?",
        default=LIST,
        type=_act,
        choices=ACTS,
        help="list, show, put-back (queue it again), discard (default: list)",
    )
    add("letter", metavar="ID", nargs="?", type=options.number(1), help="the number of a letter")
    add(
        "--limit",
        metavar="N",
        type=options.number(1),
        default=100,
        help="the newest N (default: %(default)s)",
    )
    dispatch_state.add_state(verb)
    options.add_output(verb)


def _act(text: str) -> str:
    if text not in ACTS:
        raise argparse.ArgumentTypeError(f"there is no {text!r}: {did_you_mean(text, ACTS)}")
    return text


def run(args: argparse.Namespace, output: Output) -> int:
    """List letters, or do something with one."""
    from taskgraph_workers.dispatch.ledger import dead

    if (args.act == LIST) != (args.letter is None):
        what = f"dead {args.act} takes {'no number' if args.act == LIST else 'a number'}"
        raise WorkersError(Problem(what, hint="dispatch dead lists them"))
    with dispatch_state.opened(args, output) as ledger:
        if args.act == LIST:
            return _list(ledger.see(dead.letters, args.limit), args, output)
        found = ledger.see(dead.letter, args.letter)
        if found is None:
            what = f"there is no dead letter {args.letter}"
            raise WorkersError(Problem(what, hint="dispatch dead lists them"))
        if args.act == SHOW:
            return _show(found, args, output)
        if args.act == DISCARD:
            ledger.do(dead.discard, args.letter)
        else:
            done = ledger.do(dead.put_back, args.letter, time.time())
            if not done.ok:
                raise WorkersError(Problem(f"it can't be put back: {done.reason}"))
    if args.json:
        output.json({"id": args.letter, "done": args.act})
    else:
        told = "discarded" if args.act == DISCARD else "queued again"
        output.line(f"letter {args.letter} is {told}")
    return 0


def _list(found: tuple[Letter, ...], args: argparse.Namespace, output: Output) -> int:
    if args.json:
        output.json({"dead": [_as_json(each) for each in found]})
        return 0
    rows: list[list[Cell]] = []
    for each in found:
        times = f"{each.times}x" if each.times > 1 else ""
        rows.append([str(each.id), when(each.last_at), each.code, each.request_id or "-", times])
        rows.append([f"    {each.reason}"])
    if rows:
        output.table(rows, ("id", "last", "code", "request", ""))
    else:
        output.talk("there are no dead letters")
    return 0


def _show(letter: Letter, args: argparse.Namespace, output: Output) -> int:
    if args.json:
        output.json({**_as_json(letter), **_body(letter)})
        return 0
    said = {
        "request": letter.request_id or "-",
        "code": letter.code,
        "reason": letter.reason,
        "first": when(letter.first_at),
        "last": when(letter.last_at),
        "times": str(letter.times),
        "bytes": str(letter.size),
    }
    output.table([[name, value] for name, value in said.items()])
    output.line()
    for line in letter.body[:_MOST_SHOWN].decode("utf-8", "backslashreplace").splitlines():
        output.line(line)
    if len(letter.body) > _MOST_SHOWN:
        output.talk(f"the first {_MOST_SHOWN} bytes; --json has what is kept of it")
    return 0


def _as_json(letter: Letter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "code": letter.code,
        "reason": letter.reason,
        "requestId": letter.request_id,
        "firstAt": stamped(letter.first_at),
        "lastAt": stamped(letter.last_at),
        "times": letter.times,
        "bytes": letter.size,
    }


def _body(letter: Letter) -> dict[str, Any]:
    """The message: as text where it is one, else as base64."""
    try:
        return {"body": letter.body.decode()}
    except UnicodeDecodeError:
        return {"bodyBase64": base64.b64encode(letter.body).decode()}
