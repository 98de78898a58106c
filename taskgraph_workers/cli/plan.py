"""``plan``: what another profile, or other parameters, would change in the graph."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
        [options.project(), options.machine()],
    )
    sides = parser.add_argument_group(
        "what is compared", "PROFILE may be YAML, for instance '{train: onprem}'."
    )
    to = sides.add_argument
    to("--profile", "--to", metavar="PROFILE", dest="to", help="the profile to go to")
    to(
        "--from",
        metavar="PROFILE",
        dest="from_",
        help="the profile to come from (default: what the parameters, or select.default, say)",
    )
    to("--from-parameters", metavar="FILE", help="parameters to come from, in place of -p")
    to("--to-parameters", metavar="FILE", help="parameters to go to, in place of -p")
    to("--kind", metavar="KIND", action="append", default=[], help="this kind only (repeatable)")
    to("--target", action="store_true", help="only the tasks that the parameters target")


def run(args: argparse.Namespace, output: Output) -> int:
    """Print the plan; 1 where anything differs."""
    from taskgraph_workers.graph.compare import compare

    before, after = _graphs(args, output)
    kinds = _kinds(args.kind, (*before.kinds, *after.kinds))
    found = compare(_only(before, kinds), _only(after, kinds), after.scheduler_id)
    names = _profiles(before, kinds), _profiles(after, kinds)
    if args.json:
        output.json(planned.as_json(found, *names))
    else:
        planned.show(found, *names, output)
    return 1 if found.differs else 0


def _graphs(args: argparse.Namespace, output: Output) -> tuple[Graph, Graph]:
    """Both sides; of one moment where they have the same parameters."""
    from taskgraph_workers.graph.generate import FULL, TARGET, Wanted

    if not (args.to or args.parameters or args.to_parameters):
        hint = "for instance --profile onprem; or name parameters that choose one, with -p"
        raise WorkersError(Problem("nothing says what to go to", hint=hint))
    wanted = Wanted(
        root=options.root_of(args),
        overrides=options.overrides_of(args),
        which=TARGET if args.target else FULL,
    )
    files = (
        args.from_parameters or args.parameters or args.to_parameters,
        args.to_parameters or args.parameters or args.from_parameters,
    )
    unsaid = args.from_ is None and args.from_parameters is None
    sides = (
        replace(_side(wanted, "--from", args.from_, files[0]), unsaid=unsaid),
        _side(wanted, "--profile", args.to, files[1]),
    )
    before = graphs.make(sides[0], _name("before", args.from_, files[0]), output)
    like = before if files[0] == files[1] else None
    return before, graphs.make(sides[1], _name("after", args.to, files[1]), output, like)


def _side(wanted: Wanted, flag: str, profile: str | None, file: str | None) -> Wanted:
    choice = None if profile is None else _choice(flag, profile)
    return replace(wanted, parameters=file, choice=choice, said_by=flag)


def _choice(flag: str, text: str) -> Any:
    """What an option says of the choice: a profile, or YAML for a mapping."""
    if not text.strip().startswith("{"):
        return text
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        hint = "for instance '{train: onprem}'"
        raise WorkersError(Problem(f"{flag} is no YAML: {text}", hint=hint)) from None


def _name(side: str, profile: str | None, file: str | None) -> str:
    """What people call one side's graph."""
    told = [f"profile {profile}"] if profile else []
    told += [f"parameters {file}"] if file else []
    return f"the graph {side}" + (f" ({', '.join(told)})" if told else "")


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
