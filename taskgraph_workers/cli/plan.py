"""``plan``: what another profile, or other parameters, would change in the graph."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import graphs, options, planned
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError, did_you_mean

if TYPE_CHECKING:
    from taskgraph_workers.graph.compare import TaskJson
    from taskgraph_workers.graph.generate import Graph, Wanted


def add_parser(subparsers: Any) -> None:
    """Add ``plan`` to the command."""
    parser = options.add_command(
        subparsers,
        run,
        "Which tasks move under another profile, and what that takes.",
        "taskgraph-workers plan --from gcp-spot --profile onprem",
    )
    parser.stray = "--profile"
    sides = parser.add_argument_group(
        "what is compared", "A PROFILE may be YAML, too, for a choice by kind: '{train: onprem}'."
    )
    add = sides.add_argument
    add("--profile", metavar="PROFILE", dest="to", help="the profile to go to")
    add(
        "--from",
        metavar="PROFILE",
        dest="from_",
        help="the profile to come from (default: what is chosen where nobody says)",
    )
    add("--to-parameters", metavar="FILE", help="parameters to go to, in place of -p")
    add("--from-parameters", metavar="FILE", help="parameters to come from, in place of -p")
    add("--kind", metavar="KIND", action="append", default=[], help="this kind alone (repeatable)")
    add("--target", action="store_true", help="only what the parameters target and what it needs")
    options.add_project(parser)
    options.add_output(parser)
    parser.add_argument("--html", metavar="FILE", help="write it as a page for a reviewer, too")


def run(args: argparse.Namespace, output: Output) -> int:
    """Print the plan; 1 where anything differs."""
    from taskgraph_workers.graph.compare import compare
    from taskgraph_workers.graph.generate import check
    from taskgraph_workers.graph.plan_json import as_json

    sides = _sides(args)
    if args.html:
        _check_folder(args.html)
    known = [kind for side in sides for kind in check(side.wanted)]
    kinds = _kinds(args.kind, known)
    before, after = _graphs(sides, output)
    found = compare(_only(before, kinds), _only(after, kinds), after.scheduler_id)
    names = _profiles(before, kinds), _profiles(after, kinds)
    if args.html:
        _write_page(args.html, as_json(found, *names), output)
    if args.json:
        output.json(as_json(found, *names))
    else:
        planned.show(found, *names, output)
    return 1 if found.differs else 0


@dataclass(frozen=True)
class Side:
    """One of the two graphs: what it is made from, and what people call it."""

    wanted: Wanted
    name: str


def _sides(args: argparse.Namespace) -> tuple[Side, Side]:
    """What is asked for. A side without parameters of its own has those of the other."""
    if args.to is None and not (args.parameters or args.to_parameters):
        hint = "for instance --profile onprem; or name parameters that choose one, with -p"
        raise WorkersError(Problem("nothing says what to go to", hint=hint))
    before = args.from_parameters or args.parameters or args.to_parameters
    after = args.to_parameters or args.parameters or args.from_parameters
    unsaid = args.from_ is None and args.from_parameters is None
    return (
        _side(args, "--from", args.from_, before, unsaid),
        _side(args, "--profile", args.to, after),
    )


def _side(
    args: argparse.Namespace,
    flag: str,
    profile: str | None,
    file: str | None,
    unsaid: bool = False,
) -> Side:
    from taskgraph_workers.config.environment import choice_in
    from taskgraph_workers.graph.generate import FULL, TARGET, Wanted

    wanted = Wanted(
        root=options.root_of(args),
        parameters=file,
        overrides=options.overrides_of(args),
        choice=None if profile is None else choice_in(profile, flag),
        unsaid=unsaid,
        said_by=flag,
        which=TARGET if args.target else FULL,
    )
    told = [f"profile {profile}"] if profile else []
    told += [f"parameters {file}"] if file else []
    name = "the graph before" if flag == "--from" else "the graph after"
    return Side(wanted, name + (f" ({', '.join(told)})" if told else ""))


def _graphs(sides: tuple[Side, Side], output: Output) -> tuple[Graph, Graph]:
    """Both graphs; of one moment where they have the same parameters."""
    first, second = sides
    before = graphs.make(first.wanted, first.name, output)
    same = first.wanted.parameters == second.wanted.parameters
    return before, graphs.make(second.wanted, second.name, output, before if same else None)


def _kinds(asked: Sequence[str], known: Sequence[str]) -> frozenset[str] | None:
    """The kinds to look at; None for all. Raises WorkersError for one that there is not."""
    wrong = [
        Problem(f"there is no kind {kind!r}", hint=did_you_mean(kind, known))
        for kind in asked
        if kind not in known
    ]
    if wrong:
        raise WorkersError(*wrong)
    return frozenset(asked) if asked else None


def _only(graph: Graph, kinds: frozenset[str] | None) -> Mapping[str, TaskJson]:
    return {
        label: task for label, task in graph.tasks.items() if kinds is None or task["kind"] in kinds
    }


def _profiles(graph: Graph, kinds: frozenset[str] | None) -> Mapping[str, str | None]:
    return {k: p for k, p in graph.profiles.items() if kinds is None or k in kinds}


def _check_folder(file: str) -> None:
    """Before graphs are made, which may take minutes."""
    folder = os.path.dirname(file) or "."
    if not os.path.isdir(folder):
        raise WorkersError(Problem(f"--html {file}: there is no folder {folder}"))


def _write_page(file: str, plan: Mapping[str, Any], output: Output) -> None:
    from taskgraph_workers.graph.plan_html import render

    try:
        with open(file, "w", encoding="utf-8") as page:
            page.write(render(plan))
    except OSError as error:
        raise WorkersError(Problem(f"--html {file} can't be written: {error.strerror}")) from None
    output.talk(f"wrote {file}")
