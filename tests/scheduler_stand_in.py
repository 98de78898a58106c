"""A scheduler that starts workers on this machine, for scripts to be run with bash alone."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from taskgraph_workers.launch.script import Script, render
from taskgraph_workers.schedulers import quoting
from taskgraph_workers.schedulers.base import Job, Start

SHELL = """\
job_id() { echo 77; }
restarts() { echo "${RESTARTS-}"; }
requeue_job() { echo requeued >> requeues; }
start_group() {
    local index
    for ((index = 0; index < $2; index++)); do
        WORKER_NAME="$1.j77.$index.here" bash -c "$3" &
        pids+=($!)
    done
}
end_workers() { kill -TERM "${pids[@]}" 2>/dev/null; }
"""

#: A worker as Celery's is: it takes tasks, and at a TERM ends once its task is done.
WORKER = (
    "echo start $WORKER_NAME >> log; trap 'over=yes' TERM; "
    'until [ "$over" ]; do sleep 0.2; done; sleep 0.3; echo end $WORKER_NAME >> log'
)


@dataclass(frozen=True)
class StandIn:
    """As much of a scheduler as a script needs."""

    name: str = "here"
    extension: str = "here"
    tool: str = "true"
    tested: bool = True
    shell: str = SHELL

    def header(self, job: Job) -> list[str]:
        return [f"#HERE --name={quoting.slurm_value(job.name)}"]

    def start(self, group: Start) -> str:
        return f"start_group {quoting.words([group.name, str(group.number), group.command])}"


def start(number: int, command: str = WORKER, name: str = "w") -> Start:
    return Start(name, (number,), command)


def text(*starts: Start, walltime_s: int | None = None, **fields: object) -> str:
    """A script that looks around every fifth of a second."""
    script = Script(Job(walltime_s=walltime_s), starts, every_s=0.2, **fields)  # type: ignore[arg-type]
    return render(script, StandIn())  # type: ignore[arg-type]


@dataclass
class Run:
    """A script that runs, in a folder of its own and a process group of its own."""

    process: subprocess.Popen[str]
    folder: Path

    @property
    def log(self) -> list[str]:
        file = self.folder / "log"
        return file.read_text("utf-8").splitlines() if file.exists() else []

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
        said, _ = self.process.communicate(timeout=30)
        self.until(lambda: not alive_in(self.process.pid))
        return self.process.returncode, said


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
    process = subprocess.Popen(
        ["bash", str(file)],
        cwd=folder,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield Run(process, folder)
    finally:
        if alive_in(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
