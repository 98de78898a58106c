"""``adopt``: say in ``workers-config`` what a config.yml says in tables of its own."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import options
from taskgraph_workers.cli.layout import Cell
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import ConfigError, Problem, WorkersError

if TYPE_CHECKING:
    from taskgraph_workers.adopt.compose import Adopted
    from taskgraph_workers.adopt.hand import Hand
    from taskgraph_workers.adopt.verify import Difference, Report

#: As many differences are told where the table of them is not asked for.
_FEW = 3


def add_parser(subparsers: Any) -> None:
    """Add ``adopt`` to the command."""
    parser = options.add_command(
        subparsers,
        run,
        "Print the workers-config that says what hand-written tables say.",
        "taskgraph-workers adopt --default gcp-spot -o taskcluster/workers.yml",
    )
    where = parser.add_mutually_exclusive_group()
    options.add_root(where)
    where.add_argument("--config", metavar="FILE", help="the config.yml itself")
    add = parser.add_argument
    add("--default", metavar="NAME", help="the class that the default branches are for")
    add(
        "--class",
        metavar="NAME",
        dest="classes",
        action="append",
        default=[],
        help="one more class that runs choose (repeatable)",
    )
    add("--parameter", metavar="PATH", help="the dotted path of the parameter with a run's classes")
    add(
        "--verify",
        metavar="FILE",
        nargs="?",
        const="-",
        help="compare every placement instead: of what is printed, or of a FILE",
    )
    add("-o", "--output", metavar="FILE", help="write it to a new file, which can be included")
    _add_tables(parser)
    options.add_output(parser, json=False)


def _add_tables(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the hand-written tables", "Where they have other names.")
    add = group.add_argument
    add(
        "--names-key",
        metavar="KEY",
        default="local-worker-aliases",
        help="worker names (default: %(default)s)",
    )
    add(
        "--env-key",
        metavar="KEY",
        default="worker-configuration",
        help="env by alias (default: %(default)s)",
    )
    add(
        "--class-key",
        metavar="KEY",
        default="worker-class",
        help="names differ by-KEY (default: %(default)s)",
    )
    add(
        "--needs",
        metavar="NAMES",
        default="GPUS,WORKSPACE",
        help="env without which the code gives none (default: %(default)s)",
    )


def run(args: argparse.Namespace, output: Output) -> int:
    """Print, write or verify the configuration; 1 where it does not say just the same."""
    from taskgraph_workers.adopt.compose import Wanted, compose
    from taskgraph_workers.adopt.verify import verify

    hand = _hand(args)
    adopted = compose(hand, Wanted(args.default, tuple(args.classes), args.parameter))
    _tell(hand, adopted, output)
    _tell_own_env(hand, output)
    code = 1 if any(each.severity == "error" for each in adopted.problems) else 0
    text = adopted.text if args.verify in (None, "-") else _content(args.verify)
    try:
        report = verify(hand, text, adopted.classes)
    except ConfigError as error:
        output.problems(error.problems)
        report = None
    if args.verify is not None:
        return max(code, _show(report, adopted, output))
    code = max(code, _warn(report, output))
    if args.output is None:
        output.text(adopted.text)
    else:
        _write(args.output, adopted.text)
    return code


def _hand(args: argparse.Namespace) -> Hand:
    from taskgraph_workers.adopt.hand import Keys, read
    from taskgraph_workers.config.locate import Source
    from taskgraph_workers.config.unread import content_of

    file = args.config or os.path.join(options.root_of(args), "config.yml")
    needs = tuple(filter(None, args.needs.replace(",", " ").split()))
    keys = Keys(args.names_key, args.env_key, args.class_key, needs)
    return read(Source(file, content_of(file)), keys, _kinds(os.path.dirname(file)))


def _kinds(folder: str) -> tuple[str, ...]:
    """The kinds of a project: the folders beside its config.yml that hold a kind.yml."""
    kinds = os.path.join(folder, "kinds")
    try:
        names = sorted(os.listdir(kinds))
    except OSError:
        return ()
    return tuple(each for each in names if os.path.isfile(os.path.join(kinds, each, "kind.yml")))


def _tell_own_env(hand: Hand, output: Output) -> None:
    """Where a kind sets itself what its machine's env says, which comes out differently."""
    from taskgraph_workers.adopt.kinds import own_env
    from taskgraph_workers.config.locate import Source
    from taskgraph_workers.config.unread import content_of

    names = {name for env in hand.env.values() for name in env}
    for kind in hand.kinds:
        file = os.path.join(os.path.dirname(hand.source.file), "kinds", kind, "kind.yml")
        for problem in own_env(Source(file, content_of(file)), names):
            output.talk_lines(str(problem))


def _content(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read()
    except (OSError, ValueError) as error:
        raise WorkersError(Problem(f"can't be read: {error}", file=file)) from None


def _write(file: str, text: str) -> None:
    try:
        with open(file, "x", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as error:
        hint = "nothing is overwritten; move it away first"
        exists = isinstance(error, FileExistsError)
        raise WorkersError(
            Problem(f"can't be written: {error.strerror}", hint=hint * exists, file=file)
        ) from None


# --- talk -----------------------------------------------------------------------------------


def _tell(hand: Hand, adopted: Adopted, output: Output) -> None:
    """What was found while the tables were read."""
    ordered = sorted(adopted.problems, key=lambda each: (each.line, each.column))
    for each in ordered:
        if each.severity == "error":
            output.problems([each])
        elif each.file:
            output.talk_lines(str(each))
        else:
            output.warn(f"{each.message}\n    hint: {each.hint}")
    if adopted.left:
        lines = ", ".join(_ranges(adopted.left))
        output.talk(f"comments about the tables themselves are left behind: lines {lines}")


def _ranges(lines: Sequence[int]) -> Iterator[str]:
    """Lines as people say them.

    >>> list(_ranges((3, 4, 5, 9)))
    ['3-5', '9']
    """
    for _, run_ in groupby(enumerate(lines), key=lambda each: each[1] - each[0]):
        numbers = [line for _, line in run_]
        yield str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def _warn(report: Report | None, output: Output) -> int:
    """The first differences, where nobody asked for them."""
    if report is None:
        return 1
    _problems(report.problems, output)
    told = list(_rows(report.differences))
    for row in told[:_FEW]:
        output.error("{}, {}, {}: {}: by hand {}, here {}".format(*row))
    if told:
        more = len(told) - _FEW
        output.talk(*([f"and {more} more; " if more > 0 else ""]), "adopt --verify shows them all")
    return 1 if told else 0


def _problems(problems: Iterable[Problem], output: Output) -> None:
    """What the loader says. What it reads stands in no file, so it has no lines."""
    for each in problems:
        text = f"{'.'.join(map(str, each.path))}: {each.message}"
        output.warn(text) if each.severity == "warning" else output.error(text)


# --- verify ---------------------------------------------------------------------------------


def _show(report: Report | None, adopted: Adopted, output: Output) -> int:
    """The table of differences, and how many placements were compared."""
    if report is None:
        return 1
    _problems(report.problems, output)
    for key in report.unknown:
        output.warn(f"no name is known that {key!r} matches, so it was not compared")
    rows: list[list[Cell]] = [list(row) for row in _rows(report.differences)]
    if rows:
        output.table(rows, ("name", "profile", "where", "what", "by hand", "here"))
        output.line()
    count = len({(d.name, d.profile, d.level, d.kind) for d in report.differences})
    output.line(
        f"{report.compared} placements compared"
        f" ({len(adopted.classes)} profiles: {', '.join(adopted.classes)}): "
        + (f"{count} differ" if count else "no difference")
    )
    return 1 if rows else 0


def _rows(differences: Iterable[Difference]) -> Iterator[tuple[str, ...]]:
    """Differences that are alike in a row of one."""
    alike: dict[tuple[str, ...], list[Difference]] = {}
    for each in differences:
        key = (each.name, each.profile, each.what, each.by_hand, each.here)
        alike.setdefault(key, []).append(each)
    for (name, profile, what, by_hand, here), found in alike.items():
        yield name, profile, _where(found), what, by_hand, here


def _where(differences: Sequence[Difference]) -> str:
    levels = sorted({each.level for each in differences})
    kinds = sorted({each.kind for each in differences if each.kind})
    where = f"level {' and '.join(levels)}"
    return f"{where}, {kinds[0]}" if len(kinds) == 1 else where
