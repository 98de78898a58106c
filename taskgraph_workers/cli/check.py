"""``check``: every fault of the configuration, and of the graph against it, in one go."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import graphs, options, reading
from taskgraph_workers.cli.layout import Cell, Line, Styled
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import ConfigError, Problem, dotted

if TYPE_CHECKING:
    from taskgraph_workers.graph.recorder import Record

#: How grave a problem is, and how that is shown. A run refuses an error.
SEVERITIES = {"error": "red", "warning": "yellow", "info": "dim"}

_NOT_LOOKED_AT = "The graph was not looked at: mend the configuration first."


def add_parser(subparsers: Any) -> None:
    """Add ``check`` to the command."""
    parser = options.add_command(
        subparsers,
        run,
        "Every fault of the configuration, and of the graph against it.",
        "taskgraph-workers check --strict",
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 for a warning, too")
    options.add_config(parser)
    options.add_project(parser)
    options.add_output(parser)


def run(args: argparse.Namespace, output: Output) -> int:
    """Print what is wrong; 1 where there is an error."""
    found, looked = _problems(args, output)
    found = in_order(found)
    if args.json:
        output.json({"problems": [as_json(each) for each in found], "graph": looked})
    else:
        show(found, output)
        if not looked and args.config is None and _has_error(found):
            output.line(_NOT_LOOKED_AT)
    count = Counter(each.severity for each in found)
    return 1 if count["error"] or (args.strict and count["warning"]) else 0


def _problems(args: argparse.Namespace, output: Output) -> tuple[list[Problem], bool]:
    """All problems, and whether the graph was looked at for them."""
    from taskgraph_workers.config.load import without_key
    from taskgraph_workers.config.review import review

    try:
        project = reading.project(args)
    except ConfigError as error:
        if all(each.line for each in error.problems):
            return list(error.problems), False
        raise  # there is no file to find faults in
    found = list(project.read.problems)
    config = project.read.config
    if config is None or _has_error(found):
        return found, False
    if not project.read.found:
        return [without_key(project.read)._replace(severity="warning")], False
    graph = args.config is None or config.dispatch is None
    found += review(config, project.trust_domain, graph)
    if config.dispatch is not None:
        from taskgraph_workers.dispatch.review import review as review_dispatch

        found += review_dispatch(config)
    if args.config is not None:
        return found, False
    seen = _seen(args, output)
    return found if seen is None else _with_graph(found, seen), True


def _seen(args: argparse.Namespace, output: Output) -> Record | None:
    from taskgraph_workers.graph.generate import Wanted
    from taskgraph_workers.graph.recorder import record

    wanted = Wanted(options.root_of(args), args.parameters, options.overrides_of(args))
    return graphs.made(lambda: record(wanted), "the graph", output)


def _with_graph(found: Iterable[Problem], seen: Record) -> list[Problem]:
    """What was found, without what the tasks settle, and what is wrong with them."""
    from taskgraph_workers.config.trial import tasks_decide
    from taskgraph_workers.graph.review import review

    all_seen = not seen.failed
    return [*(each for each in found if not (all_seen and tasks_decide(each))), *review(seen)]


def _has_error(found: Iterable[Problem]) -> bool:
    return any(each.severity == "error" for each in found)


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Problems by file and line, each once; no warning of the loader's that is an error, too."""
    found = list(dict.fromkeys(problems))
    errors = {_place(each) for each in found if each.severity == "error" and each.line}
    left = [each for each in found if each.severity != "warning" or _place(each) not in errors]
    return sorted(left, key=lambda each: (not each.file, *_place(each), _rank(each)))


def _rank(problem: Problem) -> int:
    return list(SEVERITIES).index(problem.severity)


def _place(problem: Problem) -> tuple[str, int, int]:
    return problem.file, problem.line, problem.column


def as_json(problem: Problem) -> dict[str, Any]:
    """A problem as other programs read it; what is not known of its place is null."""
    return {
        "severity": problem.severity,
        "file": problem.file or None,
        "line": problem.line or None,
        "column": problem.column or None,
        "path": dotted(problem.path),
        "message": problem.text,
        "hint": problem.hint,
    }


def show(found: Sequence[Problem], output: Output) -> None:
    """The problems as people read them: by file, and how many there are."""
    rows: list[list[Cell]] = []
    for file, there in groupby(found, key=lambda problem: problem.file):
        rows += [[Styled(file or "(no file)", "bold")], *map(_row, there), [""]]
    output.table(rows, indent=2)
    output.line(*_total(found))


def _row(problem: Problem) -> list[Cell]:
    place = ":".join(str(part) for part in (problem.line, problem.column) if part)
    lines: list[Line] = [Styled(dotted(problem.path), "cyan")] if problem.path else []
    lines.append(problem.text)
    lines += [[Styled("hint: ", "dim"), problem.hint]] if problem.hint else []
    return [place, Styled(problem.severity, SEVERITIES.get(problem.severity, "")), lines]


def _total(found: Sequence[Problem]) -> Iterator[str | Styled]:
    count = Counter(each.severity for each in found)
    if not count:
        yield Styled("No problems.", "green")
        return
    for index, (severity, style) in enumerate(SEVERITIES.items()):
        number = count[severity]
        plural = "" if number == 1 or severity == "info" else "s"
        yield ", " if index else ""
        yield Styled(f"{number} {severity}{plural}", style if number else "")
    yield "."
