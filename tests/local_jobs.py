"""Jobs that run on this machine, for tests: trainers that leave traces, and ways to kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taskgraph_workers.dispatch.executors import processes
from taskgraph_workers.dispatch.executors.folder import Folder
from taskgraph_workers.dispatch.executors.local import LocalExecutor
from taskgraph_workers.dispatch.executors.supervisor import MARK
from taskgraph_workers.dispatch.failpoints import VARIABLE
from taskgraph_workers.dispatch.message import key_of
from taskgraph_workers.dispatch.model import Job, Status
from taskgraph_workers.model import Dispatch

ROOT = Path(__file__).resolve().parent.parent

#: Says that it started, waits for a file named `go` if told so, and ends as it is told.
TRAINER = """
import os, sys, time
trace = os.environ["TRACE"]
def say(word):
    with open(trace, "a") as opened:
        opened.write(f"{word} {os.environ['TRAINING_RUN']}\\n")
say("start")
while len(sys.argv) > 2 and not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
say("end")
sys.exit(int(sys.argv[1]))
"""


def job(n: int = 1, **fields: Any) -> Job:
    """A job with a key of its own for every `n`."""
    whole: dict[str, Any] = {
        "key": key_of("r", n),
        "request_id": "r",
        "attempt": n,
        "image": "a/b",
        "sku": "ND6",
        "worker": "b-gpu",
        "pool": "p/b-gpu",
    }
    return Job(**{**whole, **fields})


class Bench:
    """A folder of state, a trainer, and an executor that runs it."""

    def __init__(self, folder: Path, **given: Any) -> None:
        self.folder = folder
        self.go = folder / "go"
        self.trace = folder / "trace"
        self.state = folder / "state"
        self.given = given

    def executor(self, *command: str, failpoint: str = "", **given: Any) -> LocalExecutor:
        """An executor whose jobs run this command; supervisors that it starts may be killed."""
        environ = {**os.environ, "TRACE": str(self.trace), VARIABLE: failpoint}
        dispatch = Dispatch(engine="none", commands={"a/b": command or self.trainer()})
        return LocalExecutor(self.state, dispatch, environ, **{"grace_s": 5, **self.given, **given})

    def trainer(self, code: int = 0, waits: bool = False) -> tuple[str, ...]:
        return (sys.executable, "-c", TRAINER, str(code), *([str(self.go)] if waits else []))

    def at(self, n: int = 1) -> Folder:
        return Folder(str(self.state / "jobs" / key_of("r", n)))

    @property
    def said(self) -> list[str]:
        return self.trace.read_text().splitlines() if self.trace.exists() else []

    def until(self, fact: Callable[[], Any]) -> Any:
        limit = time.monotonic() + 30
        while True:
            found = fact()
            if found:
                return found
            assert time.monotonic() < limit, (self.said, self.log)
            time.sleep(0.01)

    @property
    def log(self) -> str:
        return "".join(each.read_text() for each in self.state.glob("jobs/*/supervisor.log"))

    def ended(self, executor: LocalExecutor, n: int = 1) -> Status:
        """How a job ended: asked again and again, as the loop does."""

        def look() -> Status | None:
            status = executor.poll([key_of("r", n)])[key_of("r", n)]
            over = status.phase in {"succeeded", "failed", "canceled", "lost"}
            return status if over else None

        found: Status = self.until(look)
        return found

    def supervisor(self, n: int = 1) -> int:
        """The process that watches over a job now."""
        known = self.until(lambda: self.at(n).read("supervisor.json"))
        return int(known["pid"])

    def kill_supervisor(self, n: int = 1) -> None:
        pid = self.supervisor(n)
        os.kill(pid, signal.SIGKILL)
        self.until(lambda: processes.identity(pid) is None)

    def trainers(self, n: int = 1, run: int = 0) -> list[int]:
        """The processes of a run."""
        mark = self.at(n).at(f"run-{run}.json")
        return [p for p in processes.with_variable(MARK, mark) if processes.identity(p)]

    def clean(self) -> None:
        """End all that is left."""
        self.go.touch()
        for known in self.state.glob("jobs/*/supervisor.json"):
            held = Folder(str(known.parent)).read("supervisor.json") or {}
            processes.signal_same(held["pid"], held["identity"], signal.SIGKILL)
        for marker in self.state.glob("jobs/*/run-*.json"):
            processes.kill_all_with(MARK, str(marker))


@contextmanager
def bench(folder: Path) -> Iterator[Bench]:
    made = Bench(folder)
    try:
        yield made
    finally:
        made.clean()


def program(code: str, *args: object, **env: str) -> subprocess.Popen[str]:
    """A process of its own, that has this module."""
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)],
        env={**os.environ, "PYTHONPATH": path, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
