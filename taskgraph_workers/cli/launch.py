"""``launch``: from a Merlin spec, or a cluster of ``workers-config``, to a batch script."""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import Any

from taskgraph_workers.cli import launch_jobs, options
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError
from taskgraph_workers.texts import write_whole

_USAGE = """\
taskgraph-workers launch SPEC.yaml [options]
       taskgraph-workers launch --cluster NAME [SPEC.yaml] [options]
       taskgraph-workers launch status [LAUNCH] [options]
       taskgraph-workers launch stop [LAUNCH] [options]"""


def add_parser(subparsers: Any) -> None:
    """Add ``launch`` to the command."""
    parser = options.add_command(
        subparsers,
        run,
        "Say how many workers: print the batch script, or submit it.",
        "taskgraph-workers launch demo.yaml > workers.sbatch\n"
        "  taskgraph-workers launch demo.yaml --node cores=36,gpus=4 --size\n"
        "  taskgraph-workers launch --cluster snakepit --submit\n"
        "  taskgraph-workers launch status",
    )
    parser.usage = _USAGE
    parser.mixed = True
    add = parser.add_argument
    add("spec", metavar="SPEC", nargs="?", help="a Merlin spec (one named status: ./status)")
    add(
        "--cluster", metavar="NAME", help="a cluster of workers-config: its groups, or its defaults"
    )
    add("--group", metavar="NAME", action="append", default=[], help="this group (repeatable)")
    add(
        "--vars",
        metavar="K=V",
        nargs="+",
        action="extend",
        default=[],
        help="variables of the spec, as for merlin run",
    )
    _add_acts(parser)
    _add_sizing(parser)
    _add_header(parser)
    _add_end(parser)
    options.add_project(parser)
    group = parser.add_argument_group("for --cluster, beside a project")
    options.add_config(group)
    group.add_argument("--profile", metavar="PROFILE", help="as if this were chosen: number: auto")
    options.add_output(parser)
    launch_jobs.add_verbs(parser)
    parser.set_defaults(verbs=tuple(parser.verbs))


def _add_acts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("instead of printing the script")
    add = group.add_argument
    add(
        "--size", action="store_true", help="print how many nodes, how that comes about, the layout"
    )
    add("--test", action="store_true", help="ask the scheduler whether it would take the job")
    add("--submit", action="store_true", help="submit the script, and print the job's id")
    add("--force", action="store_true", help="with --submit: also what would not run as it is")
    add("-o", "--script", metavar="FILE", help="write the script to a file, or into a folder")
    add("--corrected", metavar="FILE", help="write the spec as it ought to be to a new file, too")
    launch_jobs.add_folder(group)


def _add_sizing(parser: argparse.ArgumentParser) -> None:
    from taskgraph_workers.launch.model import MODES

    group = parser.add_argument_group("how large")
    add = group.add_argument
    add("--nodes", metavar="N", type=int, help="so many nodes, whatever comes out")
    add("--node", metavar="HAS", help="what a node has: cores=36,gpus=4,memory=256GiB")
    add(
        "--mode",
        choices=MODES,
        help="whole nodes for each task; all mixtures of tasks fit; in any order; no more than "
        "there are tasks (default: packed, else exclusive)",
    )
    add(
        "--scheduler",
        metavar="NAME",
        help="slurm, flux, lsf, pbs or one that was added (default: the cluster's, else this "
        "machine's, else what the spec says)",
    )


def _add_header(parser: options.Parser) -> None:
    group = parser.add_argument_group("the job", "What is not given is as it says itself.")
    add = group.add_argument
    add("--name", metavar="NAME", help="the name of the job")
    add("--queue", metavar="NAME", help="the queue, or partition")
    add("--bank", metavar="NAME", help="the account that is charged")
    add("--walltime", metavar="TIME", help="90m, 2h, 1-00:00:00, H:M:S or seconds")
    add("--output", metavar="FILE", help="the job's output; {id} is its id")
    add("--reservation", metavar="NAME", help="the reservation")
    add("--qos", metavar="NAME", help="the quality of service")
    add("--constraint", metavar="TEXT", help="what its nodes must have")
    add(
        "--directive",
        metavar="LINE",
        action="append",
        default=[],
        help="a whole header line, as '#SBATCH --mail-type=END'; repeatable",
    )
    parser.hints["--directive"] = "write the whole line: --directive='#SBATCH --mail-type=END'"


def _add_end(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the end")
    add = group.add_argument
    add(
        "--margin",
        metavar="TIME",
        help="workers end so long before the walltime (default: a tenth, 30s to 5m)",
    )
    add("--requeue", metavar="N", type=int, help="then the job comes again, N times at most")


def run(args: argparse.Namespace, output: Output) -> int:
    """Print the script, or do what was asked for instead; 1 where it is refused."""
    from taskgraph_workers.cli import launch_notes, launched, launching

    _spec_behind_vars(args)
    _check(args)
    try:
        plan = launching.plan(args, output)
    except WorkersError as error:
        found = sorted(error.problems, key=lambda each: each.severity != "error")
        raise type(error)(*map(launch_notes.brief, found)) from None
    if args.corrected is not None:
        launch_notes.write_corrected(plan, args.corrected, output)
    if args.size:
        launched.show_size(plan, output, args.json)
        return 0
    text = launching.script_of(plan)
    if args.script is not None:
        output.talk(f"written to {write(args.script, text, plan.scheduler.extension)}")
    acts = args.test or args.submit
    if not acts and args.json:
        output.json({**launched.as_json(plan), "script": text})
    elif not acts and args.script is None:
        output.text(text)
        sys.stdout.flush()
    # Behind the script, so that a terminal shows it last.
    launched.tell(plan, output, corrected=args.corrected is None)
    code = launch_jobs.test(plan, text, output) if args.test else 0
    return launch_jobs.submit(plan, text, args, output) if args.submit and not code else code


def _check(args: argparse.Namespace) -> None:
    """Raises WorkersError for options that don't go together, and for a command misspelled."""
    if args.size and (args.submit or args.test):
        acts = "--submit" if args.submit else "--test"
        what = f"--size only shows how many nodes, and {acts} acts: say one of them"
        raise WorkersError(Problem(what))
    if args.force and not args.submit:
        raise WorkersError(Problem("--force goes with --submit only"))
    meant = options.meant(args.spec, args.verbs) if args.spec else ""
    if meant:
        what = f"there is no file {args.spec!r}, and no such command"
        raise WorkersError(Problem(what, hint=meant))


def _spec_behind_vars(args: argparse.Namespace) -> None:
    """``--vars A=1 demo.yaml``: the word without ``=`` is the spec. Raises WorkersError."""
    others = [word for word in args.vars if not re.match(r"\w+=", word)]
    if len(others) == 1 and args.spec is None:
        args.spec = others.pop()
        args.vars.remove(args.spec)
    if others:
        what = f"--vars takes NAME=VALUE, not {others[0]!r}"
        raise WorkersError(Problem(what, hint="--vars N_SAMPLES=10 OUTPUT=/scratch"))


def write(file: str, text: str, extension: str) -> str:
    """Write a script, as a whole, to a file or to ``workers.EXTENSION`` in a folder; its name.

    Raises WorkersError for a file that is not a script of ours.
    """
    if os.path.isdir(file) or file.endswith(os.sep):
        file = os.path.join(file, f"workers.{extension}")
    try:
        if os.path.exists(file) and not _is_ours(file):
            what = "is there already, and no script of launch"
            raise WorkersError(Problem(what, hint="move it away first", file=file))
        write_whole(file, text, program=True)
    except OSError as error:
        raise WorkersError(Problem(f"can't be written: {error.strerror}", file=file)) from None
    return file


def _is_ours(file: str) -> bool:
    """Whether a file, and not a pipe or a device, holds a script of ours. Raises OSError."""
    from taskgraph_workers.launch.script import is_ours

    if not os.path.isfile(file):
        return False
    with open(file, encoding="utf-8", errors="replace") as opened:
        return is_ours(opened.read())
