"""``dispatch send``, ``cancel``, ``progress``, ``replay``, ``backup``: what changes something."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

from taskgraph_workers.cli import dispatch_output, dispatch_run, dispatch_state, options, reading
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError

#: More than this is no message, whatever it is.
_MOST_BYTES = 16 * 1024 * 1024

#: What tells a trainer where to report, and about what.
_PROGRESS_FILE, _REQUEST_ID = "TRAINING_PROGRESS_FILE", "TRAINING_REQUEST_ID"


def add_verbs(parser: options.Parser) -> None:
    """Add them to ``dispatch``."""
    _add_send(parser)
    _add_cancel(parser)
    _add_progress(parser)
    _add_replay(parser)
    _add_backup(parser)


def _add_send(parser: options.Parser) -> None:
    verb = options.add_verb(
        parser,
        "send",
        send,
        "Queue start messages, as they are.",
        "taskgraph-workers dispatch send examples/dispatch/start.json",
    )
    verb.mixed = True
    verb.add_argument("files", metavar="FILE", nargs="+", help="a message (-: standard input)")
    dispatch_state.add_state(verb)
    options.add_output(verb)


def _add_cancel(parser: options.Parser) -> None:
    verb = options.add_verb(
        parser,
        "cancel",
        cancel,
        "Ask for a training to end.",
        "taskgraph-workers dispatch cancel c3feb8b2-287e-11e8-b467-0ed5f89f718b",
    )
    verb.mixed = True
    verb.add_argument("request", metavar="REQUEST", help="its requestId")
    dispatch_state.add_state(verb)
    options.add_output(verb)


def _add_progress(parser: options.Parser) -> None:
    verb = options.add_verb(
        parser,
        "progress",
        progress,
        "Tell how far a training is: for trainers.",
        'taskgraph-workers dispatch progress "$TRAINING_REQUEST_ID" imagesDownloaded',
    )
    verb.mixed = True
    add = verb.add_argument
    add("request", metavar="REQUEST", help="its requestId")
    add("name", metavar="NAME", help="what was reached, such as modelIteration1Done")
    add("--data", metavar="JSON", help="an object with more about it")
    more = "tells facts of one name apart (default: 0)"
    add("--seq", metavar="N", type=int, default=0, help=more)
    dispatch_state.add_state(verb)
    options.add_output(verb, json=False)


def _add_replay(parser: options.Parser) -> None:
    verb = options.add_verb(
        parser,
        "replay",
        replay,
        "Tell again how a request ended, or try it again.",
        "taskgraph-workers dispatch replay c3feb8b2-287e-11e8-b467-0ed5f89f718b",
    )
    verb.mixed = True
    add = verb.add_argument
    add("request", metavar="REQUEST", help="its requestId")
    add("--again", action="store_true", help="train again, as one more attempt at the request")
    dispatch_state.add_project(verb, "project, for --again")
    dispatch_state.add_state(verb, runs=True)
    options.add_output(verb)


def _add_backup(parser: options.Parser) -> None:
    verb = options.add_verb(
        parser,
        "backup",
        backup,
        "Copy the ledger, while others work on it.",
        "taskgraph-workers dispatch backup /backup/ledger.sqlite",
    )
    verb.add_argument("file", metavar="FILE", help="the copy, which is not there yet")
    dispatch_state.add_state(verb)
    options.add_output(verb)


# --- send -----------------------------------------------------------------------------------


def send(args: argparse.Namespace, output: Output) -> int:
    """Queue messages. What will be refused is queued, too, and is said here."""
    from taskgraph_workers.dispatch import message
    from taskgraph_workers.dispatch.ledger import queue
    from taskgraph_workers.dispatch.model import Refused

    bodies = [(name, _read(name)) for name in args.files]
    sent: list[dict[str, Any]] = []
    with dispatch_state.messages(args, output, create=True) as opened:
        for name, body in bodies:
            found = message.read(body)
            opened.do(queue.put, queue.START, body, time.time())
            reason = found.reason if isinstance(found, Refused) else None
            if reason is not None:
                output.warn(f"{name} will be refused: {reason}")
            sent.append({"file": name, "requestId": found.request_id, "reason": reason})
            if not args.json:
                where = dispatch_output.near(opened.shown)
                output.whole_line(f"queued {found.request_id or name} in {where}")
    if args.json:
        output.json({"sent": sent})
    return 0


def _read(name: str) -> bytes:
    try:
        if name == "-":
            body = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with open(name, "rb") as opened:
                body = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise WorkersError(Problem(f"can't be read: {error.strerror}", file=name)) from None
    if len(body) > _MOST_BYTES:
        raise WorkersError(Problem(f"has more than {_MOST_BYTES} bytes: no message", file=name))
    return body


# --- cancel ---------------------------------------------------------------------------------


def cancel(args: argparse.Namespace, output: Output) -> int:
    """Ask for the end; 1 where it came in another way before."""
    from taskgraph_workers.dispatch.ledger import attempts
    from taskgraph_workers.dispatch.model import CANCELED, FINAL

    with dispatch_state.opened(args, output) as ledger:
        dispatch_state.known(ledger, args.request)
        state = str(ledger.do(attempts.ask_cancel, args.request, time.time()))
    if args.json:
        output.json({"requestId": args.request, "state": state, "asked": state not in FINAL})
    elif state in FINAL:
        output.line(f"{args.request} had ended before: {state}")
    else:
        output.line(f"{args.request} is {state}, and was asked to end")
    return 1 if state in FINAL - {CANCELED} else 0


# --- progress -------------------------------------------------------------------------------


def progress(args: argparse.Namespace, output: Output) -> int:
    """Tell a fact: into the file of the training that this runs in, else into the ledger."""
    from taskgraph_workers.dispatch.executors import progress_file
    from taskgraph_workers.dispatch.ledger import progress as facts
    from taskgraph_workers.dispatch.model import MOST_FACTS, Progress

    data, now = _data_of(args.data), time.time()
    file = os.environ.get(_PROGRESS_FILE)
    said = {"name": args.name, "at": now, "seq": args.seq, "data": data}
    if file is not None and os.environ.get(_REQUEST_ID) == args.request:
        try:
            progress_file.append(file, args.name, data, now, args.seq)
        except ValueError as error:
            raise _no_fact(str(error)) from None
        except OSError as error:
            raise WorkersError(Problem(f"can't be written: {error.strerror}", file=file)) from None
        return 0
    with dispatch_state.opened(args, output) as ledger:
        known = dispatch_state.known(ledger, args.request)
        fact = progress_file.check(said, Progress("", now, known.run or 0))
        if isinstance(fact, str):
            raise _no_fact(fact)
        if not ledger.do(facts.append, args.request, known.attempt, [fact]):
            if ledger.see(facts.is_full, args.request, known.attempt):
                raise _no_fact(f"{MOST_FACTS} facts were told of it already")
            output.talk(f"{fact.name} was told before; --seq tells more of one name apart")
    return 0


def _data_of(text: str | None) -> dict[str, Any]:
    from taskgraph_workers.dispatch.executors.progress_file import parse

    if text is None:
        return {}
    try:
        value = parse(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise WorkersError(Problem("--data takes a JSON object", hint='such as {"loss": 0.5}'))
    return value


def _no_fact(why: str) -> WorkersError:
    return WorkersError(Problem(f"this can't be told: {why}"))


# --- replay ---------------------------------------------------------------------------------


def replay(args: argparse.Namespace, output: Output) -> int:
    """Print the end message of a request that has ended, or begin one more attempt."""
    from taskgraph_workers.dispatch.ledger import outbox, receipt
    from taskgraph_workers.dispatch.model import FINAL, Refused

    with dispatch_state.opened(args, output) as ledger:
        known = dispatch_state.known(ledger, args.request)
        if known.state not in FINAL:
            what = f"request {args.request!r} has not ended: it is {known.state}"
            raise WorkersError(Problem(what, hint="dispatch status, or dispatch cancel"))
        if not args.again:
            end = ledger.see(outbox.end_of, outbox.id_of(args.request, known.attempt))
            output.json({"end": None if end is None else dict(end.body)})
            return 0
        judge, _ = dispatch_run.judge(args, reading.project(args), dispatch_state.state_of(args))
        body = ledger.see(receipt.body_of, args.request)
        verdict = judge(body)
        if isinstance(verdict, Refused):
            raise WorkersError(Problem(f"it can't run now: {verdict.reason}"))
        again = ledger.do(receipt.again, verdict, time.time())
    if again is None:
        raise WorkersError(Problem(f"request {args.request!r} goes on already"))
    if args.json:
        output.json({"requestId": args.request, "attempt": again})
    else:
        output.line(f"{args.request} is tried again, as attempt {again}")
    return 0


# --- backup ---------------------------------------------------------------------------------


def backup(args: argparse.Namespace, output: Output) -> int:
    """Copy the ledger into a new file, whole or not at all."""
    target = os.path.abspath(args.file)
    with dispatch_state.opened(args, output) as ledger:
        ledger.backup(target)
        if args.json:
            output.json({"ledger": ledger.shown, "backup": target})
        else:
            output.line(f"{ledger.shown} is copied to {target}")
    return 0
