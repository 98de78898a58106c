"""The options that commands share, each written once."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any


class Parser(argparse.ArgumentParser):
    """argparse's, with whole option names only and the layout of examples kept."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **options)


def add_command(
    subparsers: Any, run: Any, help: str, example: str, parents: Sequence[Any] = ()
) -> argparse.ArgumentParser:
    """A subcommand that is named like its module, with the options that all have.

    ``run(args, output)`` does it; ``example`` is shown by its help.
    """
    name = run.__module__.rsplit(".", 1)[-1]
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=help,
        description=help,
        epilog=f"example:\n  {example}",
        parents=[*parents, talk()],
    )
    parser.set_defaults(run=run)
    return parser


def talk() -> argparse.ArgumentParser:
    """How much is said, and how: what every command takes."""
    parser = argparse.ArgumentParser(add_help=False)
    group = parser.add_argument_group("output")
    amount = group.add_mutually_exclusive_group()
    amount.add_argument("-q", "--quiet", action="store_true", help="no warnings, no progress")
    amount.add_argument(
        "-v", "--verbose", action="store_true", help="more detail, and what Taskgraph logs"
    )
    group.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto: on a terminal, unless NO_COLOR is set",
    )
    return parser


def machine() -> argparse.ArgumentParser:
    """``--json``."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def project() -> argparse.ArgumentParser:
    """Which project, and what its graph is made for."""
    parser = argparse.ArgumentParser(add_help=False)
    group = parser.add_argument_group("project")
    group.add_argument(
        "--root",
        metavar="DIR",
        type=_root,
        default=None,
        help="the folder of its config.yml (default: taskcluster, else taskcluster/ci)",
    )
    group.add_argument(
        "-p",
        "--parameters",
        metavar="FILE",
        help="parameters of the graph: a file, a URL, task-id=... or project=...",
    )
    group.add_argument("--level", metavar="N", help="the level, in place of that of the parameters")
    return parser


def config_file() -> argparse.ArgumentParser:
    """``--config``: where no Taskgraph project is needed."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(
        "--config", metavar="FILE", help="a file that holds only what is below workers-config"
    )
    return parser


def root_of(args: argparse.Namespace) -> str:
    """The project's folder: the one that was named, else one that Taskgraph itself looks in."""
    if args.root is not None:
        return str(args.root)
    old = os.path.join("taskcluster", "ci")
    for folder in ("taskcluster", old):
        if os.path.exists(os.path.join(folder, "config.yml")):
            return folder
    return "taskcluster"


def _root(text: str) -> str:
    return os.path.normpath(text)


def overrides_of(args: argparse.Namespace) -> dict[str, Any]:
    """The parameters that options replace."""
    level: str | None = args.level
    return {} if level is None else {"level": level}
