"""``dispatch run``: the loop, as a process."""

from __future__ import annotations

import argparse
import functools
import itertools
import random
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli import dispatch_state, options, reading
from taskgraph_workers.cli.output import Output

if TYPE_CHECKING:
    from taskgraph_workers.dispatch.brokers.transport import Judge
    from taskgraph_workers.dispatch.ledger.database import Ledger
    from taskgraph_workers.dispatch.log import Log
    from taskgraph_workers.dispatch.loop import Loop
    from taskgraph_workers.dispatch.state import State
    from taskgraph_workers.model import Dispatch

# How long a ledger is left alone at most that can't be opened, and how soon a stop is seen.
_MOST_WAIT_S, _NAP_S = 30.0, 0.05


def add_verbs(parser: options.Parser) -> None:
    """Add ``run`` to ``dispatch``."""
    verb = options.add_verb(
        parser,
        "run",
        run,
        "Start what messages ask for, look after it, and tell how it ended.",
        "taskgraph-workers dispatch run --config examples/dispatch/config.yml --until-idle",
    )
    how = verb.add_argument_group("how long").add_mutually_exclusive_group()
    how.add_argument(
        "--once",
        action="store_true",
        help="take what waits, start it, look once at all that is under way, and end",
    )
    how.add_argument(
        "--until-idle",
        action="store_true",
        help="end when every request has ended, its machine is let go, and every end is told",
    )
    dispatch_state.add_project(verb, "project")
    dispatch_state.add_state(verb, runs=True)
    options.add_output(verb, json=False, quiet="log warnings and errors alone")
    verb.add_argument("--log-json", action="store_true", help="log JSON, one object a line")


def run(args: argparse.Namespace, output: Output) -> int:
    """Run the loop until it is told to stop: SIGTERM or SIGINT; what is under way goes on."""
    stop = Stop()
    stop.listen()
    loop = made(args, output, stop)
    if loop is None:
        return 0
    with loop.means.ledger:
        loop.means.say.info("dispatching", ledger=loop.means.ledger.shown)
        if args.once:
            loop.once()
        else:
            loop.run(args.until_idle)
        if stop.asked:
            loop.means.say.info("stopped; what is under way goes on")
    return 0


class Stop:
    """Whether somebody asked this process to end. A second time ends it as signals do."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        """Whether somebody asked."""
        return self.asked

    def listen(self) -> None:
        """Hear of signals from now on."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, number: int, _: Any) -> None:
        self.asked = True
        signal.signal(number, signal.SIG_DFL)


def made(args: argparse.Namespace, output: Output, stopped: Stop) -> Loop | None:
    """The loop that the options describe; None where somebody asked to stop before there was one.

    Raises WorkersError for all in the configuration that would turn messages down.
    """
    from taskgraph_workers.dispatch import owners
    from taskgraph_workers.dispatch import state as states
    from taskgraph_workers.dispatch.log import Log
    from taskgraph_workers.dispatch.loop import Loop
    from taskgraph_workers.dispatch.means import Means
    from taskgraph_workers.dispatch.receive import Intake
    from taskgraph_workers.errors import WorkersError

    project = reading.project(args)
    state = dispatch_state.state_of(args)
    judging, dispatch = judge(args, project, state)
    executors = states.Executors(state, dispatch)
    executors.find(states.executor_name(state, dispatch))
    say = Log(sys.stderr, args.log_json, args.quiet)
    ledger = _opened(args, output, say, stopped)
    if ledger is None:
        return None
    means = Means(ledger, executors, say, owners.name(), stopped=stopped)
    try:
        transport = states.transport(state, means)
    except WorkersError:
        ledger.close()
        raise
    return Loop(means, Intake(means, transport, judging))


def _opened(args: argparse.Namespace, output: Output, say: Log, stopped: Stop) -> Ledger | None:
    """The ledger, as soon as it can be used; None if somebody asked to stop before.

    Raises LedgerError for what does not pass by itself, and with ``--once`` for all.
    """
    from taskgraph_workers.dispatch.backoff import delay
    from taskgraph_workers.dispatch.ledger.errors import LedgerUnavailable

    for tries in itertools.count():
        try:
            return dispatch_state.opened(args, output, create=True)
        except LedgerUnavailable as error:
            if args.once:
                raise
            wait_s = delay(tries, random.random, most_s=_MOST_WAIT_S)
            say.warn(error.problems[0].text, wait_s=round(wait_s, 1))
        until = time.monotonic() + wait_s
        while time.monotonic() < until:
            if stopped():
                return None
            time.sleep(_NAP_S)
    raise AssertionError("it is opened, or raises")


def judge(
    args: argparse.Namespace, project: reading.Project, state: State
) -> tuple[Judge, Dispatch]:
    """What is made of messages, and the configuration that says so."""
    from taskgraph_workers.config import located
    from taskgraph_workers.dispatch import place
    from taskgraph_workers.dispatch import state as states
    from taskgraph_workers.dispatch.receive import judge_of
    from taskgraph_workers.errors import ConfigError, WorkersError

    config, domain = project.config, project.trust_domain
    try:
        choice = place.choice_of(config, args.profile, domain)
        problems = place.problems(config, choice, domain)
        if any(problem.severity == "error" for problem in problems):
            raise ConfigError(*problems)
    except WorkersError as error:
        raise located(error, config) from None
    assert config.dispatch is not None
    placing = functools.partial(place.place, config, choice=choice, trust_domain=domain)
    return judge_of(placing, states.executor_name(state, config.dispatch)), config.dispatch
