"""The command ``taskgraph-workers``: one module for each of its subcommands.

Each has ``add_parser(subparsers)`` and ``run(args, output)``, which returns the exit code, and
imports a door only inside its functions. So the command starts at once where it does not need
Taskgraph.
"""

from __future__ import annotations

import argparse
import errno
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import taskgraph_workers
from taskgraph_workers.cli.options import Parser
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import WorkersError

#: The subcommands, in the order of the help; each is a module here.
COMMANDS = (
    *("check", "show", "explain", "plan", "detect", "adopt"),
    *("launch", "dispatch", "schema", "completion"),
)

#: Exit codes: all is well; faults or differences were found; it could not run.
FINE, DIFFERS, FAILED = 0, 1, 2

# What a shell says of a command that a signal ended.
_INTERRUPTED, _BROKEN_PIPE = 130, 141

# A stream that can't take more; the error of a file would name it.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


def make_parser(commands: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """The whole parser, as the command, its completion and the documentation use it.

    With fewer ``commands`` it is made sooner: each takes its module, and what that needs.
    """
    parser = Parser(
        prog="taskgraph-workers",
        description="Say once where training runs: the graph, the cluster and the queue obey.",
        epilog="Exit codes: 0 fine, 1 faults or differences, 2 could not run.",
    )
    version = f"%(prog)s {taskgraph_workers.__version__}"
    parser.add_argument("--version", action="version", version=version)
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in commands:
        import_module(f"taskgraph_workers.cli.{name}").add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code, and never lets a user's mistake be a traceback."""
    _open_what_is_closed()
    # Loading modules makes tens of thousands of objects, and hardly any garbage.
    gc.set_threshold(max(gc.get_threshold()[0], 20_000))
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read has enough
        _silence()
        return _BROKEN_PIPE
    except OSError as error:
        if error.filename is not None or error.errno not in _FULL:
            raise
        _silence()
        print(f"error: standard output can't be written: {error.strerror}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED


def _open_what_is_closed() -> None:
    """Python has None for a stream that is closed, and what the command opens would be it."""
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))


def _silence() -> None:
    """Python would complain at its end, when it flushes again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: Sequence[str] | None) -> int:
    words = sys.argv[1:] if argv is None else argv
    try:
        args = make_parser([each for each in words[:1] if each in COMMANDS] or COMMANDS).parse_args(
            words
        )
    except SystemExit as ended:  # --help, --version, and what can't be understood
        return int(ended.code or 0)
    output = Output(args.color, args.quiet, args.verbose)
    try:
        code: int = args.run(args, output)
    except WorkersError as error:
        output.problems(error.problems)
        return FAILED
    finally:
        output.clear()
    return code
