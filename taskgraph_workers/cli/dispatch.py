"""``dispatch``: a start message becomes one training, once, and its end is told."""

from __future__ import annotations

import argparse
from typing import Any

from taskgraph_workers.cli import dispatch_acts, dispatch_run, dispatch_show, options
from taskgraph_workers.cli.dispatch_letters import ACTS
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError, did_you_mean

# Inside of `dispatch`, where the column of texts begins.
_TEXT_AT = 12


def add_parser(subparsers: Any) -> None:
    """Add ``dispatch`` to the command."""
    parser = options.add_command(
        subparsers,
        run,
        "Start trainings that messages ask for, each once, and tell how they ended.",
        "taskgraph-workers dispatch send start.json\n"
        "  taskgraph-workers dispatch run --until-idle\n"
        "  taskgraph-workers dispatch status --watch",
    )
    parser.usage = f"{parser.prog} COMMAND [options]"
    parser.add_argument("verb", metavar="COMMAND", nargs="?", help="one of those below")
    # What stands behind a word that is no command tells nothing: the word is what is refused.
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options.add_output(parser, json=False)
    for module in (dispatch_run, dispatch_acts, dispatch_show):
        module.add_verbs(parser)
    told = [f"  {name:{_TEXT_AT - 2}}{each.description}" for name, each in parser.verbs.items()]
    parser.epilog = "\n".join(["commands:", *told, "", parser.epilog or ""])
    parser.set_defaults(verbs=tuple(parser.verbs))


def run(args: argparse.Namespace, output: Output) -> int:
    """Refuse what is no command of ``dispatch``. Raises WorkersError always."""
    if args.verb is None:
        what = "dispatch takes a command"
        raise WorkersError(Problem(what, hint=f"there is: {', '.join(args.verbs)}"))
    if args.verb in args.verbs:
        what = "options of dispatch stand behind its command"
        raise WorkersError(Problem(what, hint=f"dispatch {args.verb}, and then options"))
    what = f"dispatch has no command {args.verb!r}"
    hint = f"dispatch dead {args.verb}" if args.verb in ACTS else ""
    raise WorkersError(Problem(what, hint=hint or did_you_mean(args.verb, args.verbs)))
