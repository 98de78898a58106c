"""Workers on a real Slurm: scripts as they are printed, and stand-ins for what they start."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from slurm_cluster import SlurmCluster
from taskgraph_workers.launch.script import Script, render
from taskgraph_workers.schedulers import quoting
from taskgraph_workers.schedulers.base import Job, Start
from taskgraph_workers.schedulers.slurm import SCHEDULER as SLURM

# A worker as Celery's is: one task after another, and at a TERM it ends once its task is done.
# Its argument is what a task does; what that says is in a file of its own.
WORKER = """\
#!/bin/bash
cd "$(dirname "$0")" || exit 1
trap 'ending=yes' TERM
number=0
echo "up $WORKER_NAME $SLURMD_NODENAME gpus=${CUDA_VISIBLE_DEVICES-unset}" >> workers
until [ "$ending" ]; do
    number=$((number + 1))
    bash -c "$1" >> "task.$WORKER_NAME.$number" 2>&1 &
    task=$!
    while kill -0 "$task" 2>/dev/null; do wait "$task"; done
done
echo "down $WORKER_NAME $number" >> workers
"""


def wait_until(is_so: Callable[[], object], timeout_s: float = 60) -> None:
    """Wait for something; fails the test where it doesn't come."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)


@dataclass(frozen=True)
class Worker:
    """What a worker said when it came up."""

    group: str
    index: int
    node: str
    gpus: tuple[str, ...] | None


class Workers:
    """A job that starts groups of workers, and what they wrote into its folder."""

    def __init__(self, slurm: SlurmCluster, folder: Path) -> None:
        self.slurm = slurm
        self.folder = folder
        self.id = ""
        (folder / "worker").write_text(WORKER)

    def start(self, group: Start, task: str) -> Start:
        """The same group, whose workers do this task again and again."""
        command = f"exec bash {self.folder}/worker {quoting.inner(task)}"
        return group._replace(command=command)

    def submit(self, job: Job, *starts: Start, options: tuple[str, ...] = ()) -> str:
        """Submit the script; the job's id. Its script looks around twice a second."""
        text = render(Script(job, starts, margin_s=20, every_s=0.5), SLURM)
        (self.folder / "script").write_text(text)
        self.id = self.slurm.submit(text, *options, cwd=self.folder)
        return self.id

    def lines(self, word: str) -> list[str]:
        """What workers said that begins with a word."""
        file = self.folder / "workers"
        said = file.read_text().splitlines() if file.exists() else []
        return [line for line in said if line.startswith(f"{word} ")]

    def wait(self, count: int) -> list[Worker]:
        """Wait until so many are up; which ones, by name."""
        wait_until(lambda: len(self.lines("up")) >= count)
        found = []
        for line in self.lines("up"):
            _, name, node, gpus = line.split()
            group, index, where = re.fullmatch(rf"(.+)\.j{self.id}\.(\d+)\.(\w+)", name).groups()
            assert where == node
            said = gpus.partition("=")[2]
            seen = None if said == "unset" else tuple(filter(None, said.split(",")))
            found.append(Worker(group, int(index), node, seen))
        return sorted(found, key=lambda worker: (worker.group, worker.index))

    def stop(self) -> str:
        """Write the stop file, and wait until the job is over; its state."""
        (self.folder / f"workers-{self.id}.stop").touch()
        return self.slurm.wait_for(self.id)

    def tasks(self) -> dict[str, str]:
        """What each task said, by worker and number."""
        found = {}
        for file in self.folder.glob("task.*"):
            found[file.name.partition(".")[2]] = file.read_text()
        return found

    def gone(self) -> None:
        """Wait until nothing is left; fails the test where something stays."""
        deadline = time.monotonic() + 30
        while left := self.left():
            assert time.monotonic() < deadline, left
            time.sleep(0.05)

    def left(self) -> list[str]:
        """Processes of the job, and files about them, that there still are."""
        mark = f"SLURM_JOB_ID={self.id}".encode()
        here = f"SLURM_CONF={self.slurm.folder}/slurm.conf".encode()
        found = [str(path) for path in Path("/tmp").glob(f"workers-*-{self.id}-*")]
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                words = environ.read_bytes().split(b"\0")
                command = (environ.parent / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if {mark, here} <= set(words):
                found.append(f"{environ.parent.name} {command}")
        return found
