"""The graphs that a command looks at: made through the graph door, with their log and faults."""

from __future__ import annotations

import logging
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Callable, TypeVar

from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError

if TYPE_CHECKING:
    from taskgraph_workers.graph.generate import Graph, Wanted

T = TypeVar("T")

# What Taskgraph logs of an error that it raises, too; the command tells it.
_TOLD_LATER = ("Error loading tasks for kind", "workers-config: ")


def make(wanted: Wanted, name: str, output: Output, like: Graph | None = None) -> Graph:
    """A graph that is known to people by a name. Raises WorkersError, which says that name."""
    from taskgraph_workers.graph.generate import generate

    return made(lambda: generate(wanted, like), name, output)


def made(make: Callable[[], T], name: str, output: Output) -> T:
    """What ``make`` makes through the graph door, told of as :func:`make` does."""
    from taskgraph_workers.graph.generate import GraphError

    with _logging(output, name), _quiet_children():
        try:
            return make()
        except GraphError as error:
            cause = error.__cause__
            if cause is not None and output.verbose:
                told = traceback.format_exception(type(cause), cause, cause.__traceback__)
                output.talk_lines("".join(told))
            raise WorkersError(Problem(f"{name} can't be made: {error}")) from None


@contextmanager
def _logging(output: Output, name: str) -> Iterator[None]:
    handler = _Handler(output, name)
    level = logging.root.level
    logging.root.addHandler(handler)
    logging.root.setLevel(logging.INFO)
    try:
        yield
    finally:
        logging.root.setLevel(level)
        logging.root.removeHandler(handler)
        output.clear()


@contextmanager
def _quiet_children() -> Iterator[None]:
    """Taskgraph forks, and Ctrl-C reaches each child, which would print a traceback of its own."""
    owner = os.getpid()

    def stop(number: int, frame: object) -> None:
        del number, frame
        if os.getpid() != owner:
            os._exit(130)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Handler(logging.Handler):
    """Taskgraph's log with ``-v``; else our own warnings, and progress for each message."""

    def __init__(self, output: Output, name: str) -> None:
        super().__init__()
        self.output = output
        self.name_of_graph = name

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        ours = record.name.startswith("taskgraph_workers.")
        if record.levelno >= logging.ERROR and text.startswith(_TOLD_LATER):
            return
        if ours and record.levelno == logging.WARNING:
            self.output.warn(text)
        elif self.output.verbose:
            self.output.talk_lines(f"{record.levelname.lower()}: {text}")
        else:
            self.output.progress(f"Making {self.name_of_graph}: {text}")
