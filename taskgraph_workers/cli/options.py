"""The options that commands share, each written once.

A command makes its parser with :func:`add_command`, adds its own options, and then those of these
groups that it takes, in the order in which its help shall show them.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from taskgraph_workers.errors import Problem, WorkersError, did_you_mean

#: The levels there are; `config` has them for what a configuration says, and is slower to load.
LEVELS = ("1", "2", "3")

#: What ``--quiet`` does, unless a command says otherwise.
QUIET = "no warnings, no progress"

# Where Taskgraph looks for a project by itself.
_ROOTS = ("taskcluster", os.path.join("taskcluster", "ci"))

# The column where the text of a help begins.
_HELP_AT = 28

# An option with the value `--`, for which argparse has no value at all.
_DASHES = re.compile(r"(--[\w-]+=|-\w)--")
# In front of a word that is no option, whatever it looks like; no command line can hold one.
_NO_OPTION = "\0"
# What argparse says of an option with nothing behind it that may be its value.
_NO_VALUE = re.compile(r"argument ([\w/-]+): expected one argument")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Leaves examples as they are, and has the same columns in the help of each command."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, max_help_position=_HELP_AT, **options)
        # argparse forgets that subcommands are indented, and breaks their lines.
        self._action_max_length = _HELP_AT - self._current_indent - 2


class Parser(argparse.ArgumentParser):
    """argparse's, with whole option names only and the layout of examples kept.

    With ``mixed``, options may stand between its positional arguments. ``stray`` is the option
    that a word was meant for which belongs to none. ``verbs`` are parsers for what follows a first
    word that is one of them; see :func:`add_verb`. ``hints`` say, for options whose values may
    begin with a dash, how these are written.
    """

    mixed = False
    stray = ""
    # What it does not understand of a subcommand's is refused there, under its own usage.
    is_command = False
    _inside = False

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", _Help)
        super().__init__(*args, **options)
        self.verbs: dict[str, Parser] = {}
        self.hints: dict[str, str] = {}
        self._words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's; a parser of subcommands comes by here for each of them."""
        if args and args[0] in self.verbs:
            return self.verbs[args[0]].parse_known_args(args[1:], namespace)
        if self._inside:
            return super().parse_known_args(args, namespace)
        self._words = words = () if args is None else args
        bad = next((word for word in _before_dashes(words) if _DASHES.fullmatch(word)), "")
        if bad and self.is_command:
            self.error(f"argument {bad[:-2].rstrip('=')}: '--' is no value")
        self._inside = True  # the method for mixed arguments calls this one
        parse = super().parse_known_args
        if self.mixed and args is not None:
            parse, args = self.parse_known_intermixed_args, _marked(words)
        try:
            found, unknown = parse(args, namespace)
        finally:
            self._inside = False
        unknown = _unmarked(unknown)
        for name, value in vars(found).items() if self.mixed else ():
            setattr(found, name, _unmarked(value))
        if unknown and self.is_command:
            word = next((each for each in unknown if not each.startswith("-")), "")
            hint = f"did you mean {self.stray} {word}?" if word and self.stray else ""
            what = f"unrecognized arguments: {' '.join(unknown)}"
            self.error("; ".join(filter(None, (what, hint or meant(args[0], self.verbs)))))
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """As argparse's, with how a value is written that begins with a dash."""
        found = _NO_VALUE.fullmatch(message)
        names = found[1].split("/") if found else []
        for name, value in zip(self._words, self._words[1:]):
            if name in names and value.startswith("-") and value != "--":
                hint = self.hints.get(name, f"did you mean {name}={shlex.quote(value)}?")
                message = f"{message}; {hint}"
                break
        super().error(message.replace(_NO_OPTION, ""))


def meant(word: str, verbs: Iterable[str]) -> str:
    """A hint for a first word that is nearly one of the verbs, unless there is such a file."""
    return "" if os.path.exists(word) else did_you_mean(word, verbs, "")


def _marked(words: Sequence[str]) -> list[str]:
    """Words with those behind ``--`` marked as no options, and without it.

    Where arguments are mixed, argparse forgets before Python 3.13 which these were.
    """
    before = _before_dashes(words)
    return [*before, *(_NO_OPTION + word for word in words[len(before) + 1 :])]


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(each) for each in value]
    return value.lstrip(_NO_OPTION) if isinstance(value, str) else value


def _before_dashes(words: Sequence[str]) -> Sequence[str]:
    """The words before ``--``, behind which none is an option."""
    return words[: words.index("--")] if "--" in words else words


def number(least: int) -> Callable[[str], int]:
    """A type of argument: a whole number from this one on that every database takes."""

    def read(text: str) -> int:
        value = int(text)
        if not least <= value < 2**63:
            raise argparse.ArgumentTypeError(f"takes a number from {least} on")
        return value

    read.__name__ = "number"
    return read


def add_command(subparsers: Any, run: Any, summary: str, example: str) -> Parser:
    """A subcommand that is named like the module of ``run(args, output)``, which does it.

    ``example`` is one that a reader can try; the help shows it.
    """
    parser: Parser = subparsers.add_parser(
        run.__module__.rsplit(".", 1)[-1],
        help=summary,
        description=summary,
        epilog=f"example:\n  {example}",
    )
    parser.is_command = True
    parser.set_defaults(run=run)
    return parser


def add_verb(parser: Parser, name: str, run: Any, summary: str, example: str) -> Parser:
    """A command of a command, beside which it takes an argument of its own.

    It is one as the first word behind the command; a file of that name is reached as ``./name``.
    """
    verb = Parser(
        prog=f"{parser.prog} {name}", description=summary, epilog=f"example:\n  {example}"
    )
    verb.is_command = True
    verb.set_defaults(run=run)
    parser.verbs[name] = verb
    return verb


def add_project(parser: argparse.ArgumentParser) -> None:
    """Which project, and what its graph is made for: ``--root``, ``-p``, ``--level``."""
    group = parser.add_argument_group("project")
    add_root(group)
    group.add_argument(
        "-p",
        "--parameters",
        metavar="FILE",
        help="parameters of the graph: a file, a URL, task-id=... or project=...",
    )
    add_level(group, "the level, in place of that of the parameters")


def add_root(parser: argparse._ActionsContainer) -> None:
    """``--root``."""
    parser.add_argument(
        "--root",
        metavar="DIR",
        help="the folder of its config.yml (default: taskcluster, else taskcluster/ci)",
    )


def add_level(parser: argparse._ActionsContainer, help: str, default: str | None = None) -> None:
    """``--level``."""
    parser.add_argument("--level", metavar="N", choices=LEVELS, default=default, help=help)


def add_config(parser: argparse._ActionsContainer) -> None:
    """``--config``: where no Taskgraph project is needed."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="a file with the key workers-config, in place of a project's",
    )


def add_output(parser: argparse.ArgumentParser, json: bool = True, quiet: str = QUIET) -> None:
    """What is printed, and how; every command takes these, most of them ``--json`` too.

    ``quiet`` is what its ``--quiet`` does.
    """
    group = parser.add_argument_group("output")
    if json:
        group.add_argument("--json", action="store_true", help="print one JSON object")
    amount = group.add_mutually_exclusive_group()
    amount.add_argument("-q", "--quiet", action="store_true", help=quiet)
    amount.add_argument(
        "-v", "--verbose", action="store_true", help="more detail, and what Taskgraph logs"
    )
    group.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto: on a terminal, unless NO_COLOR is set",
    )


def root_of(args: argparse.Namespace) -> str:
    """The project's folder: the one that was named, else one that Taskgraph itself looks in.

    Raises WorkersError where there is none, with one that is near.
    """
    if args.root is not None:
        return os.path.normpath(str(args.root))
    for folder in _ROOTS:
        if os.path.exists(os.path.join(folder, "config.yml")):
            return folder
    file = os.path.join(_ROOTS[0], "config.yml")
    hint = near() or "say --root DIR" + (", or --config FILE" if hasattr(args, "config") else "")
    raise WorkersError(Problem("there is no such file that can be read", (), hint, file=file))


def near() -> str:
    """A hint for who is inside of a project, not at its top."""
    above, here = os.curdir, ""
    while os.path.abspath(above) != here:
        here = os.path.abspath(above)
        for folder in _ROOTS:
            root = os.path.normpath(os.path.join(above, folder))
            if os.path.exists(os.path.join(root, "config.yml")):
                return (
                    f"say --root {os.path.relpath(root)}, or call it in {os.path.normpath(above)}"
                )
        above = os.path.join(above, os.pardir)
    return "say --root ." if os.path.exists("config.yml") else ""


def overrides_of(args: argparse.Namespace) -> dict[str, Any]:
    """The parameters that options replace."""
    return {} if args.level is None else {"level": args.level}
