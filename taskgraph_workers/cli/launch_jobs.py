"""``launch --submit``, ``--test``, ``launch status``, ``launch stop``: what meets a scheduler."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import launched, options
from taskgraph_workers.cli.layout import Cell
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError

if TYPE_CHECKING:
    from taskgraph_workers.cli.launching import Plan
    from taskgraph_workers.launch.jobs import Launch, Stopped
    from taskgraph_workers.schedulers.base import Scheduler, State

#: Where the numbered folders are, unless somebody says otherwise.
_FOLDER = "launches"

#: How long ``launch stop`` waits for tasks to be done.
_WAIT = "10m"

#: A reason that is longer gets a line of its own.
_SHORT = 24

_WHICH = "the number of a launch, or the id of its job"


def add_folder(parser: argparse._ActionsContainer) -> None:
    """``--launches``."""
    parser.add_argument(
        "--launches",
        metavar="DIR",
        default=_FOLDER,
        help="where what is submitted is kept (default: %(default)s)",
    )


def add_verbs(parser: options.Parser) -> None:
    """Add ``status`` and ``stop`` to ``launch``."""
    status = options.add_verb(
        parser,
        "status",
        run_status,
        "How jobs are that launch --submit has submitted.",
        "taskgraph-workers launch status 12",
    )
    status.add_argument("launch", metavar="LAUNCH", nargs="?", help=f"{_WHICH} (default: all)")
    stop = options.add_verb(
        parser,
        "stop",
        run_stop,
        "End workers once their tasks are done, and with them their job.",
        "taskgraph-workers launch stop 12 --wait 1h",
    )
    add = stop.add_argument
    add("launch", metavar="LAUNCH", nargs="?", help=f"{_WHICH} (default: the last)")
    add("--wait", metavar="TIME", default=_WAIT, help="then cancel the job (default: %(default)s)")
    add("--now", action="store_true", help="cancel it at once: tasks are lost")
    for verb in (status, stop):
        add_folder(verb)
        options.add_output(verb)


# --- --test and --submit --------------------------------------------------------------------


def test(plan: Plan, text: str, output: Output) -> int:
    """Ask the scheduler whether it would take the script; 1 where it would not."""
    import shutil
    import tempfile

    from taskgraph_workers.schedulers.run import run

    if output.quiet:  # else they are told among all that has to be said
        output.problems(plan.blockers)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, f"workers.{plan.scheduler.extension}")
        with open(file, "w", encoding="utf-8") as opened:
            opened.write(text)
        command = plan.scheduler.test(file, text)
        if command is None:
            output.talk(f"{plan.scheduler.name} can't be asked before a job is submitted")
            return 1 if plan.blockers else 0
        if shutil.which(command.argv[0]) is None:
            what = f"there is no {command.argv[0]} here, which would be asked"
            raise WorkersError(Problem(what, hint="call it where jobs are submitted"))
        answer = run(command)
    said = (answer.stderr.strip() or answer.stdout.strip()).replace(file, "the script")
    if answer.exit_code != 0:
        output.error(f"{plan.scheduler.name} would not take it: {said}")
        return 1
    if plan.blockers:
        return 1
    output.talk(f"{plan.scheduler.name} would take it" + (f": {said}" if said else ""))
    return 0


def submit(plan: Plan, text: str, args: argparse.Namespace, output: Output) -> int:
    """Submit the script, and print the job's id; 1 where something in it would not run."""
    from taskgraph_workers.cli import launch_notes, launching
    from taskgraph_workers.launch import jobs
    from taskgraph_workers.schedulers.run import run

    wrong = launch_notes.wrong(plan)
    if wrong and not args.force:
        if output.quiet:
            output.problems(plan.blockers)
        hint = f"{_remedy(plan)}; --force submits it as it is"
        output.problems([Problem(f"not submitted: {wrong}", hint=hint)])
        return 1
    said = launched.as_json(plan)
    submission = jobs.Submission(text, {"version": 1, **said}, launching.job_of(plan))
    launch, state = jobs.submit(args.launches, submission, plan.scheduler, run)
    if args.json:
        output.json({**said, **_as_json(launch, state)})
    else:
        output.text(f"{launch.job}\n")
    why = f" ({state.reason})" if state.reason else ""
    output.talk(f"job {launch.job} is {state.phase}{why}; kept in {launch.folder}")
    output.talk(f"its output: {_shown(launch.output_file)}")
    output.talk(f"next: taskgraph-workers launch status {launch.number}, launch stop")
    return 0


def _remedy(plan: Plan) -> str:
    """What may mend a launch of which something would not run."""
    if plan.blockers:
        return plan.blockers[0].hint or "ask for less"
    if plan.ask.corrected is not None:
        return "mend the spec (--corrected FILE writes it as it ought to be)"
    return "mend the spec"


def _shown(file: str | None) -> str:
    """A file from the current folder, where that is shorter."""
    return "unknown" if file is None else min(os.path.relpath(file), file, key=len)


# --- status ---------------------------------------------------------------------------------


def run_status(args: argparse.Namespace, output: Output) -> int:
    """Print how jobs are; 1 where one that was asked for has failed, or is not known."""
    from taskgraph_workers.launch import jobs

    if args.launch is None:
        found = jobs.launches(args.launches)
    else:
        found = [jobs.pick(args.launches, args.launch)]
    states = [(launch, _state(launch, output)) for launch in found]
    if args.json:
        output.json({"launches": [_as_json(launch, state) for launch, state in states]})
    elif not states:
        output.talk(f"nothing was launched in {args.launches}")
    else:
        _show(states, output)
    return 1 if args.launch is not None and _is_bad(states[0][1]) else 0


def _is_bad(state: State) -> bool:
    return state.phase not in ("pending", "running") and not state.succeeded


def _state(launch: Launch, output: Output) -> State:
    """How a job is; ``unknown``, with what was said, where its scheduler can't be asked."""
    from taskgraph_workers.launch import jobs, lost
    from taskgraph_workers.schedulers.base import State
    from taskgraph_workers.schedulers.run import run

    output.progress(f"asking about launch {launch.number}")
    try:
        if lost.is_lost(launch):
            return lost.state_of(launch, _scheduler(launch), run)
        needed = launch.job is not None and launch.ended is None
        return jobs.state_of(launch, _scheduler(launch) if needed else None, run)
    except WorkersError as error:
        return State("unknown", error.problems[0].text)
    finally:
        output.clear()


def _scheduler(launch: Launch) -> Scheduler:
    from taskgraph_workers import schedulers

    return schedulers.find(launch.scheduler)


def _show(states: Iterable[tuple[Launch, State]], output: Output) -> None:
    rows: list[list[Cell]] = []
    for launch, state in states:
        reason = "" if state.reason.upper() == state.phase.upper() else state.reason
        file = _shown(launch.output_file) if launch.job else ""
        short = reason if len(reason) <= _SHORT else ""
        number = f"{launch.number:04d}"
        rows.append([number, launch.job or "-", state.phase, short, state.nodes, file])
        rows += [[f"      {reason}"]] if reason != short else []
    output.table(rows, ("launch", "job", "state", "reason", "nodes", "output"))


def _as_json(launch: Launch, state: State) -> dict[str, Any]:
    return {
        "number": launch.number,
        "job": launch.job,
        "scheduler": launch.scheduler or None,
        "state": state.phase,
        "reason": state.reason or None,
        "nodes": state.nodes or None,
        "succeeded": state.succeeded,
        "output": launch.output_file,
        "folder": os.path.abspath(launch.folder),
    }


# --- stop -----------------------------------------------------------------------------------


def run_stop(args: argparse.Namespace, output: Output) -> int:
    """End a launch, and say how that went; 1 where it took too long and was canceled."""
    from taskgraph_workers import schedulers
    from taskgraph_workers.launch import jobs, lost
    from taskgraph_workers.schedulers.run import run
    from taskgraph_workers.units import seconds

    try:
        wait_s = seconds(args.wait)
    except ValueError as error:
        raise WorkersError(Problem(f"--wait: {error}")) from None
    launch = jobs.pick(args.launches, args.launch)
    if launch.job is None:
        state = _state(launch, output)
        what = f"launch {launch.number:04d} has no job: {state.reason or state.phase}"
        hint = "look whether the scheduler has its job" if lost.is_lost(launch) else ""
        raise WorkersError(Problem(what, hint=hint))
    told = f"job {launch.job}: its workers end once their tasks are done; waiting"
    scheduler = schedulers.find(launch.scheduler)
    stopped = jobs.stop(launch, scheduler, run, wait_s, args.now, lambda: output.talk(told))
    if args.json:
        output.json({"how": stopped.how, **_as_json(launch, stopped.state)})
    else:
        output.line(_told(launch, stopped, args.wait))
    return 1 if stopped.how == "killed" else 0


def _told(launch: Launch, stopped: Stopped, wait: str) -> str:
    reason = f" ({stopped.state.reason})" if stopped.state.reason else ""
    said = {
        "ended": "had ended before",
        "canceled": "was canceled",
        "warmly": "has ended, and its workers' tasks were done",
        "killed": f"was not done after {wait}, and was canceled",
    }[stopped.how]
    return f"job {launch.job} {said}{reason}"
