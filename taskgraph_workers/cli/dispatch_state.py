"""The options by which commands of ``dispatch`` find their state, and what they open by them."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from taskgraph_workers.cli import options
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError

if TYPE_CHECKING:
    from taskgraph_workers.dispatch.ledger.database import Ledger
    from taskgraph_workers.dispatch.ledger.values import Request
    from taskgraph_workers.dispatch.state import State

#: How states and outcomes are shown.
STYLES = {"succeeded": "green", "failed": "red", "rejected": "red", "running": "cyan"}


def add_state(parser: argparse.ArgumentParser, runs: bool = False) -> None:
    """``--state``, ``--database``, ``--broker``; for what starts trainings ``--executor``, too."""
    group = parser.add_argument_group("state")
    add = group.add_argument
    add(
        "--state",
        metavar="DIR",
        help="the folder of the ledger and of jobs here (default: TASKGRAPH_WORKERS_STATE, "
        "else taskgraph-workers in XDG_STATE_HOME)",
    )
    add(
        "--database",
        metavar="URL",
        help="where the ledger is (default: TASKGRAPH_WORKERS_DATABASE, else --state)",
    )
    add(
        "--broker",
        metavar="URL",
        help="what carries messages, such as sqlite:////FOLDER "
        "(default: TASKGRAPH_WORKERS_BROKER, else the ledger)",
    )
    if runs:
        add(
            "--executor",
            metavar="NAME",
            help="what runs requests (default: TASKGRAPH_WORKERS_EXECUTOR, else as configured)",
        )


def add_project(parser: argparse.ArgumentParser, title: str) -> None:
    """``--root``, ``--config``, ``--profile``: by what requests are placed."""
    group = parser.add_argument_group(title)
    options.add_root(group)
    options.add_config(group)
    group.add_argument(
        "--profile", metavar="PROFILE", help="where requests run, in place of what is chosen"
    )


def state_of(args: argparse.Namespace) -> State:
    """What the options and the environment say. Raises WorkersError."""
    from taskgraph_workers.dispatch.state import state_of

    names = ("state", "database", "broker", "executor")
    return state_of({name: getattr(args, name, None) for name in names})


def opened(args: argparse.Namespace, output: Output, create: bool = False) -> Ledger:
    """The ledger. Raises WorkersError where it can't be opened."""
    from taskgraph_workers.dispatch import state as states

    return _told(states.ledger(state_of(args), create), output)


def messages(args: argparse.Namespace, output: Output, create: bool = False) -> Ledger:
    """Where messages wait: the ledger, or a queue of its own. Raises WorkersError."""
    from taskgraph_workers.dispatch import state as states

    return _told(states.messages(state_of(args), create), output)


def _told(ledger: Ledger, output: Output) -> Ledger:
    if ledger.migrated_from is not None:
        output.talk(f"{ledger.called} was taken forward from an earlier version")
    return ledger


def known(ledger: Ledger, request_id: str) -> Request:
    """A request. Raises WorkersError where the ledger has none of this id."""
    from taskgraph_workers.dispatch.ledger import queries

    found = ledger.see(queries.request, request_id)
    if found is None:
        waits = "; if it was sent just now, dispatch run has yet to take it"
        what = f"there is no request {request_id!r} in {ledger.shown}"
        raise WorkersError(Problem(what, hint=f"dispatch status lists them{waits}"))
    return found


def when(at: float | None) -> str:
    """A time for people: of today, or with its day; where this machine is."""
    if at is None:
        return ""
    there, today = time.localtime(at), time.localtime()
    shown = time.strftime("%H:%M:%S", there)
    return shown if there[:3] == today[:3] else f"{time.strftime('%Y-%m-%d', there)} {shown}"


def stamped(at: float | None) -> str | None:
    """A time for programs; None where there is none."""
    from taskgraph_workers.dispatch.log import stamp

    return None if at is None else stamp(at)
