"""``detect``: what tasks on this machine would find out, by the shell text that they run."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import options, reading
from taskgraph_workers.cli.output import Output
from taskgraph_workers.cli.show import check_kind, check_name, profiles_of
from taskgraph_workers.errors import Problem, WorkersError

if TYPE_CHECKING:
    from taskgraph_workers.detect import Detect, Found
    from taskgraph_workers.model import Choice, Config, Context

#: What can be asked for; ``inherited`` is no question to the machine alone.
WHAT = ("gpu-indices", "gpu-count", "gpu-memory")

_EVERYTHING = "all"


def add_parser(subparsers: Any) -> None:
    """Add ``detect`` to the command."""
    parser = options.add_command(
        subparsers,
        run,
        "What `detect` finds on this machine, and from where.",
        "taskgraph-workers detect gpu-indices gpu-memory --share 0.75\n"
        "  taskgraph-workers detect --worker b-largegpu-xlargedisk --profile onprem",
    )
    parser.mixed = True
    add = parser.add_argument
    add(
        "what",
        metavar="WHAT",
        nargs="*",
        # A text as the default, since argparse holds a list as a whole against the choices.
        default=_EVERYTHING,
        choices=(*WHAT, _EVERYTHING),
        help="gpu-indices, gpu-count, gpu-memory (default: all of them)",
    )
    add("--share", metavar="PART", type=float, help="of gpu-memory: over 0, at most 1 (default: 1)")
    add("--of", metavar="{smallest,largest,sum}", help="which memory (default: smallest)")
    add("--at-least", metavar="N", type=int, help="fewer GPUs are not enough (default: 1)")
    add("--at-least-mib", metavar="N", type=int, help="less gpu-memory is not enough (default: 1)")
    worker = parser.add_argument_group("what a worker name leaves to the machine")
    add = worker.add_argument
    add("--worker", metavar="NAME", help="all that a task would detect which asks for this name")
    add("--profile", metavar="PROFILE", help="as if this were chosen")
    add("--kind", metavar="KIND", help="as for tasks of this kind")
    options.add_level(worker, "as at this level (default: 1)")
    options.add_root(worker)
    options.add_config(worker)
    options.add_output(parser)


def run(args: argparse.Namespace, output: Output) -> int:
    """Print what was found; 1 where anything was not."""
    from taskgraph_workers.detect import detect_here

    values = _asked(args) if args.worker is None else _of_worker(args, output)
    try:
        found = detect_here(values, os.environ)
    except OSError as error:
        raise WorkersError(Problem(f"/bin/sh can't be run: {error.strerror}")) from None
    _tell(found, output)
    if args.json:
        output.json({"values": [_as_json(each, values[each.name]) for each in found]})
    else:
        for each in found:
            _print(each, values[each.name], output)
    return 1 if any(each.value is None for each in found) else 0


# --- what is asked for ----------------------------------------------------------------------


def _asked(args: argparse.Namespace) -> Mapping[str, Detect]:
    """The values that the command line names; GPU_COUNT and the like are their names."""
    for name in ("profile", "kind", "level", "root", "config"):
        if getattr(args, name) is not None:
            raise _wrong(f"--{name} goes with --worker only", "detect --worker NAME")
    asked = WHAT if _EVERYTHING in args.what else args.what
    memory = {"share": args.share, "of": args.of, "at-least": args.at_least_mib}
    gpus = {"at-least": args.at_least}
    _check_used(args, asked)
    return {
        what.replace("-", "_").upper(): _parse(what, memory if what == "gpu-memory" else gpus)
        for what in asked
    }


def _check_used(args: argparse.Namespace, asked: Any) -> None:
    """Raises WorkersError for an option that nothing asked for could obey."""
    memory, gpus = "gpu-memory" in asked, set(asked) - {"gpu-memory"}
    if not memory and any(each is not None for each in (args.share, args.of, args.at_least_mib)):
        raise _wrong("--share, --of and --at-least-mib go with gpu-memory", "add gpu-memory")
    if not gpus and args.at_least is not None:
        raise _wrong("--at-least counts GPUs", "for gpu-memory: --at-least-mib N")


def _parse(what: str, said: Mapping[str, Any]) -> Detect:
    from taskgraph_workers.detect import parse

    try:
        return parse({"detect": what, **{k: v for k, v in said.items() if v is not None}})
    except ValueError as error:
        raise _wrong(str(error)) from None


def _of_worker(args: argparse.Namespace, output: Output) -> Mapping[str, Detect]:
    """What the env of a worker name leaves to the machine. Taskgraph is not needed for it."""
    from taskgraph_workers.config import located
    from taskgraph_workers.detect import Detect
    from taskgraph_workers.model import Context
    from taskgraph_workers.resolve import resolve, task_env

    others = (args.share, args.of, args.at_least, args.at_least_mib)
    if args.what != _EVERYTHING or any(each is not None for each in others):
        raise _wrong("--worker says what to detect, and so does the rest of this command line")
    project = reading.project(args)
    kind, level = args.kind or "", args.level or "1"
    check_kind(kind, project.kinds)
    check_name(project.config, args.worker)
    context = Context(level=level, kind=kind, trust_domain=project.trust_domain)
    try:
        choice = _choice(project, args.profile, context)
        placement = resolve(project.config, args.worker, choice, context)
    except WorkersError as error:
        raise located(error, project.config) from None
    env, _ = task_env(placement, {})
    values = {name: value for name, value in env.items() if isinstance(value, Detect)}
    if not values:
        under = f" under profile {choice.profile}" if choice.profile else ""
        output.talk(f"{args.worker} leaves nothing to the machine{under}")
    return values


def _choice(project: reading.Project, profile: str | None, context: Context) -> Choice:
    """The profile that was named, else what is chosen where no run says anything."""
    from taskgraph_workers.graph.parameters import selections
    from taskgraph_workers.model import Choice
    from taskgraph_workers.resolve import choose

    config: Config = project.config
    if profile is not None:
        profiles_of(config, [profile])
        return Choice(profile, "--profile")
    return choose(selections(config, {}, context, lambda: project.kinds or ()), context.kind)


def _wrong(what: str, hint: str = "") -> WorkersError:
    return WorkersError(Problem(what, hint=hint))


# --- what was found -------------------------------------------------------------------------


def _tell(found: Iterable[Found], output: Output) -> None:
    """Where each is from, or why there is nothing; once for all that lack it for one reason."""
    lacking: dict[str, list[Found]] = {}
    for each in found:
        for note in each.notes:
            output.warn(note)
        if each.value is None:
            lacking.setdefault(_about(each, ""), []).append(each)
        else:
            output.talk(f"{each.name}: {each.said}")
    for alike in lacking.values():
        output.error(_about(alike[0], ", ".join(each.name for each in alike)))


def _about(found: Found, names: str) -> str:
    """Why there is nothing, said of these names; the text names its own twice."""
    said = found.said.replace(f"give {found.name} a value", f"give {names} a value")
    own = f"{found.name}: "
    return f"{names}: {said[len(own) :]}" if said.startswith(own) else said


def _shown(found: Found, asked: Detect) -> str | None:
    """The value; none that was inherited, since it is there already and might be a secret."""
    return None if asked.what == "inherited" else found.value


def _print(found: Found, asked: Detect, output: Output) -> None:
    value = _shown(found, asked)
    if value is not None:
        output.text(f"{found.name}={value}\n")


def _as_json(found: Found, asked: Detect) -> dict[str, Any]:
    return {
        "name": found.name,
        "detect": asked.what,
        "found": found.value is not None,
        "value": _shown(found, asked),
        "said": found.said,
        "warnings": list(found.notes),
    }
