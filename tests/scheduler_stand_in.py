"""A scheduler that starts workers on this machine, for scripts to be run with bash alone."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from taskgraph_workers.errors import Problem
from taskgraph_workers.launch.script import Script, render
from taskgraph_workers.schedulers import quoting, shares
from taskgraph_workers.schedulers.base import Answer, Command, Job, SchedulerError, Start, State

SHELL = """\
tw_job_id() { echo 77; }
tw_restarts() { echo "${RESTARTS-}"; }
tw_requeue_job() { echo requeued >> requeues; }
tw_start_group() {
    local tw_index
    for ((tw_index = 0; tw_index < $2; tw_index++)); do
        WORKER_NAME="$1.j77.$tw_index.here" bash -c "$3" &
        tw_pids+=($!)
    done
}
tw_end_workers() { kill -TERM "${tw_pids[@]}" 2>/dev/null; }
"""

#: A worker as Celery's is: it takes tasks, and at a TERM ends once its task is done.
WORKER = (
    "echo start $WORKER_NAME >> log; trap 'over=yes' TERM; "
    'until [ "$over" ]; do sleep 0.2; done; sleep 0.3; echo end $WORKER_NAME >> log'
)


@dataclass
class StandIn:
    """As much of a scheduler as a script needs."""

    name: str = "here"
    extension: str = "here"
    tool: str = "true"
    tested: bool = True
    settles_late: bool = False
    starts_flux: str | None = None
    shell: str = SHELL

    def header(self, job: Job) -> list[str]:
        return [f"#HERE --name={quoting.slurm_value(job.name)}"]

    def start(self, group: Start) -> str:
        return f"tw_start_group {quoting.words([group.name, str(group.number), group.command])}"


def start(number: int, command: str = WORKER, name: str = "w") -> Start:
    return Start(name, (number,), command)


def text(*starts: Start, walltime_s: int | None = None, **fields: object) -> str:
    """A script that looks around every fifth of a second."""
    script = Script(Job(walltime_s=walltime_s), starts, every_s=0.2, **fields)  # type: ignore[arg-type]
    return render(script, StandIn())  # type: ignore[arg-type]


@dataclass
class Run:
    """A script that runs, in a folder of its own and a process group of its own."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def log(self) -> list[str]:
        file = self.folder / "log"
        return file.read_text("utf-8").splitlines() if file.exists() else []

    @property
    def said(self) -> str:
        """The output of the script so far."""
        return output_of(self.folder).read_text("utf-8")

    def wait_for(self, line: str, times: int = 1) -> None:
        """Until so many lines of the workers begin so."""
        self.until(lambda: sum(each.startswith(line) for each in self.log) >= times)

    def until(self, fact: object) -> None:
        limit = time.monotonic() + 30
        while not fact():  # type: ignore[operator]
            assert time.monotonic() < limit, self.log
            time.sleep(0.02)

    def end(self) -> tuple[int, str]:
        """The status and the output of the script; fails where it left anything running."""
        status = self.process.wait(timeout=30)
        self.until(lambda: not alive_in(self.process.pid))
        return status, self.said


def output_of(folder: Path) -> Path:
    """Where the output of a script goes: beside its folder, which is left to the script."""
    return folder.with_name(f"{folder.name}.out")


def alive_in(group: int) -> bool:
    """Whether a process of this group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def running(script: str, folder: Path, **env: str) -> Iterator[Run]:
    file = folder / "script"
    file.write_text(script, "utf-8")
    with output_of(folder).open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            ["bash", str(file)],
            cwd=folder,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Run(process, folder)
    finally:
        if alive_in(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@dataclass
class Queue(StandIn):
    """A whole scheduler, with no jobs that run: ``states`` says how each job is, look by look.

    The last state of a job stays. ``asked`` are the commands that were run.
    """

    states: list[State] = field(default_factory=lambda: [State("running")])
    refusal: str = ""
    ends: bool = True
    named: tuple[str, ...] = ()
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def output_files(self, job: Job, job_id: str) -> tuple[str, ...]:
        return shares.output_files(job, job_id)

    def submit(self, script: str, text: str) -> Command:
        return Command(("submit", script, text))

    def submitted(self, answer: Answer) -> str:
        if answer.exit_code:
            raise SchedulerError(Problem(answer.stderr))
        return answer.stdout

    def find(self, name: str) -> Command:
        return Command(("find", name))

    def found(self, name: str, answer: Answer) -> tuple[str, ...]:
        return self.named

    def poll(self, job: str) -> Command:
        return Command(("poll", job))

    def state(self, job: str, answer: Answer) -> State:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def end(self, job: str) -> Command | None:
        return Command(("end", job))

    def cancel(self, job: str) -> Command:
        return Command(("cancel", job))

    def run(self, command: Command) -> Answer:
        self.asked.append(command.argv)
        if command.argv[0] == "submit":
            return Answer(1, stderr=self.refusal) if self.refusal else Answer(0, "41")
        if command.argv[0] == "cancel":
            self.states = [State("ended", "CANCELED", succeeded=False)]
        if command.argv[0] == "end" and self.ends:
            self.states = [self.states[0], State("ended", "COMPLETED", succeeded=True)]
        return Answer(0)
