"""``explain``: why a worker name, or a task, gets what it gets."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import graphs, options, reading
from taskgraph_workers.cli.output import Output
from taskgraph_workers.cli.show import check_kind, check_name, profiles_of
from taskgraph_workers.errors import PlacementError, Problem, WorkersError, did_you_mean

if TYPE_CHECKING:
    from taskgraph_workers.cli.explained import Source, Story
    from taskgraph_workers.errors import Path
    from taskgraph_workers.graph.recorder import Asked, Record
    from taskgraph_workers.model import Choice, Config, Context

#: How the option for another profile is named where sources are told.
WHAT_IF = "--profile"


def add_parser(subparsers: Any) -> None:
    """Add ``explain`` to the command."""
    parser = options.add_command(
        subparsers,
        run,
        "Why a value is what it is: who said it, where, and what it overrode.",
        "taskgraph-workers explain b-largegpu WORKSPACE\n"
        "  taskgraph-workers explain --task train-teacher-1 --profile onprem",
    )
    parser.mixed = True
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="a worker name (not with --task)")
    add(
        "key",
        metavar="KEY",
        nargs="?",
        help="pool, provisioner, worker-type, implementation, os, the name of an environment "
        "variable, resources.X or worker.X (default: all)",
    )
    add("--task", metavar="LABEL", help="a task of the graph, with what it says itself")
    add("--profile", metavar="PROFILE", help="as if this were chosen")
    add("--kind", metavar="KIND", default="", help="as for tasks of this kind")
    options.add_config(parser)
    options.add_project(parser)
    options.add_output(parser)


def run(args: argparse.Namespace, output: Output) -> int:
    """Print the explanation; 1 where the name leads nowhere."""
    from taskgraph_workers.cli import explained

    _check(args)
    name, key = (None, args.name) if args.task else (args.name, args.key)
    try:
        story = _of_task(args, output) if name is None else _of_name(args, name)
    except _Nowhere as nowhere:
        if not args.json:
            explained.show_choice(nowhere.config, nowhere.choice, nowhere.sources, output)
        output.problems(nowhere.problems)
        return 1
    if args.json:
        output.json(explained.as_json(story, key))
    else:
        explained.show(story, key, output)
    return 0


class _Nowhere(WorkersError):
    """A name that can't be placed, and the choice that it can't be placed under."""

    def __init__(
        self, error: WorkersError, config: Config, choice: Choice, sources: list[Source]
    ) -> None:
        super().__init__(*error.problems)
        self.config, self.choice, self.sources = config, choice, sources


def _check(args: argparse.Namespace) -> None:
    wrong = ""
    if args.task is None and args.name is None:
        wrong = "nothing says what to explain"
    elif args.task is not None and (args.config is not None or args.kind):
        wrong = "--task goes with neither --config nor --kind"
    elif args.task is not None and args.key is not None:
        wrong = "there is a NAME and --task"
    if wrong:
        hint = "explain NAME [KEY], or explain --task LABEL [KEY]"
        raise WorkersError(Problem(wrong, hint=hint))


# --- a name, without Taskgraph --------------------------------------------------------------


def _of_name(args: argparse.Namespace, name: str) -> Story:
    from taskgraph_workers.model import Context

    project = reading.project(args)
    config = project.config
    check_kind(args.kind, project.kinds)
    parameters = _parameters(args.parameters)
    context = Context(
        level=str(args.level or parameters.get("level") or "1"),
        project=parameters.get("project") or "",
        tasks_for=parameters.get("tasks_for") or "",
        kind=args.kind,
        trust_domain=project.trust_domain,
    )
    sources = _sources(config, parameters, context, project.kinds or (), args.profile)
    overrides = [each.said.overrides for each in sources if each.said and each.said.overrides]
    if not any(name in layer.entries for layer in overrides):
        check_name(config, name)
    return _story(config, name, context, sources)


def _parameters(file: str | None) -> Mapping[str, Any]:
    """Parameters out of a file; what Taskgraph could fetch from elsewhere it fetches for --task."""
    if file is None:
        return {}
    import yaml

    try:
        with open(file, "rb") as opened:
            said = yaml.safe_load(opened)
    except (OSError, ValueError, yaml.YAMLError):
        said = None
    if not isinstance(said, Mapping):
        raise WorkersError(Problem("there is no such file of parameters", file=file))
    return said


def _sources(
    config: Config,
    parameters: Mapping[str, Any],
    context: Context,
    kinds: tuple[str, ...],
    profile: str | None,
) -> list[Source]:
    """Each source that the choice may come from, strongest first, and what it says."""
    from taskgraph_workers.cli.explained import Source
    from taskgraph_workers.config import located
    from taskgraph_workers.config.environment import VARIABLE
    from taskgraph_workers.graph.parameters import PARAMETER, selections
    from taskgraph_workers.model import Selection

    try:
        said = {s.source: s for s in selections(config, parameters, context, lambda: kinds)}
    except WorkersError as error:
        raise located(error, config) from None
    names = [VARIABLE, f"parameter {PARAMETER}"]
    if config.select.parameter is not None:
        names.append(f"parameter {config.select.parameter}")
    names.append("select.default")
    what_if = []
    if profile is not None:
        profiles_of(config, [profile])
        what_if = [Source(WHAT_IF, Selection(WHAT_IF, (), {"default": profile}))]
    return what_if + [Source(name, said.get(name)) for name in names]


def _choice(sources: list[Source], kind: str) -> Choice:
    from taskgraph_workers.resolve import choose

    return choose([each.said for each in sources if each.said is not None], kind)


def _story(config: Config, name: str, context: Context, sources: list[Source]) -> Story:
    from taskgraph_workers.cli.explained import Story
    from taskgraph_workers.config import located
    from taskgraph_workers.resolve import resolve

    choice = _choice(sources, context.kind)
    try:
        placement = resolve(config, name, choice, context)
    except PlacementError as error:
        raise _Nowhere(located(error, config), config, choice, sources) from None
    return Story(config, context, choice, sources, placement)


# --- a task of the graph --------------------------------------------------------------------


def _of_task(args: argparse.Namespace, output: Output) -> Story:
    from taskgraph_workers.graph.generate import Wanted
    from taskgraph_workers.graph.kind_files import KindFile
    from taskgraph_workers.graph.recorder import record
    from taskgraph_workers.graph.run import kinds_folder, kinds_of

    wanted = Wanted(options.root_of(args), args.parameters, options.overrides_of(args))
    seen: Record | None = graphs.made(lambda: record(wanted, args.task), "the graph", output)
    if seen is None:
        hint = "so every task runs where Taskgraph's own aliases say"
        raise WorkersError(Problem("there is no workers-config", hint=hint))
    asked = _asked(seen, args.task)
    run = seen.runs[asked.kind]
    kinds = kinds_of(seen.graph_config)
    sources = _sources(seen.config, seen.parameters, run.context, kinds, args.profile)
    choice = _choice(sources, asked.kind)
    asked = asked.under(run.context.under(choice))
    story = _story(seen.config, asked.name, run.context, sources)
    file = KindFile(os.path.join(kinds_folder(seen.graph_config), asked.kind))
    task = asked.label[len(asked.kind) + 1 :]

    def find(problem: Problem, path: Path, value: Any) -> Problem:
        return file.at(problem, str(path[-1]), str(value), task)

    own = {**asked.worker, **(asked.before_run or {}), "env": asked.env}
    return replace(story, label=asked.label, own=own, find=find)


def _asked(seen: Record, label: str) -> Asked:
    from taskgraph_workers.graph.checks import unregistered

    if label in seen.asked:
        return seen.asked[label]
    if label in seen.unpicked:
        raise WorkersError(seen.unpicked[label][1])
    if label in seen.pools:
        kind, pool = seen.pools[label]
        missing = unregistered(seen.graph_config)
        raise WorkersError(
            Problem(
                f"nothing here places {label!r}: it runs on {pool}, as kind {kind!r} says itself",
                hint="its tasks do not go through the `run` and `task` transforms",
            )
            if missing is None
            else missing
        )
    failed = [Problem(f"kind {k!r} can't be loaded: {why}") for k, why in seen.failed.items()]
    hint = did_you_mean(label, seen.asked)
    raise WorkersError(Problem(f"there is no task {label!r} in the graph", hint=hint), *failed)
