"""`launch` on a real Slurm: a cluster's workers, from what its nodes have to a warm end."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from real_launch import HOSTILE, Site, until
from slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.service, pytest.mark.slow]

# A worker as they are: it writes down what it has, and once asked to end it finishes its task.
WORKER = """\
#!/bin/bash
gpus="GPUS=${GPUS-none} CUDA=${CUDA_VISIBLE_DEVICES-none}"
echo "start $WORKER_NAME $SLURMD_NODENAME $gpus" >> log
trap 'over=yes' TERM
until [ "$over" ]; do sleep 0.2; done
sleep 1
echo "end $WORKER_NAME" >> log
"""

LAB = """\
workers-config:
    clusters:
        lab:
            scheduler: slurm
            queue: pdebug
            walltime: 10m
            output: 'lab-{id}.out'
            groups:
                trainers:
                    number: 3
                    cores: 3
                    gpus: 2
                    env: {WORKSPACE: "8000"}
                    command: "./worker 'a b'"
                helpers: {number: 2, command: ./worker}
"""


@dataclass
class Lab(Site):
    """A user of the cluster, with a configuration and a worker in his folder."""

    def __post_init__(self) -> None:
        self.env = {"COLUMNS": "80"}
        (self.folder / "lab.yml").write_text(LAB, "utf-8")
        (self.folder / "worker").write_text(WORKER, "utf-8")
        (self.folder / "worker").chmod(0o755)

    def lab(self, *words: str, code: int = 0) -> CompletedProcess[str]:
        return self.launch("--cluster", "lab", "--config", "lab.yml", *words, code=code)

    def answer(self, *words: str, code: int = 0) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.launch(*words, "--json", code=code).stdout)
        return answer

    @property
    def log(self) -> list[str]:
        file = self.folder / "log"
        return file.read_text("utf-8").splitlines() if file.exists() else []

    def until(self, fact: Callable[[], object], job: str) -> None:
        until(fact, lambda: "\n".join([*self.log, self.slurm.output(job)]), 60)

    def started(self, job: str) -> list[str]:
        """What all five workers wrote at their start."""
        self.until(lambda: len(self.log) >= 5, job)
        return [line for line in self.log if line.startswith("start")]


@pytest.fixture
def site(slurm: SlurmCluster, tmp_path: Path) -> Lab:
    return Lab(slurm, tmp_path)


def test_from_sinfo_to_a_warm_end(site: Lab):
    """The nodes are those of the queue; each worker has its own GPUs and says so in GPUS; the
    script that is submitted is the one that is printed; and a stop lets every task be done.
    """
    printed = site.lab()
    assert "2 nodes (packed: every mixture of tasks fits)" in printed.stderr
    assert "nodes with 8 cores, 4 GPUs, 4000MiB of memory" in printed.stderr
    done = site.lab("--submit")
    job = done.stdout.strip()
    folder = site.folder / "launches" / "0001"
    assert (folder / "workers.sbatch").read_text("utf-8") == printed.stdout
    assert json.loads((folder / "sizing.json").read_text("utf-8"))["allocation"]["nodes"] == 2
    lines = site.started(job)
    names = {line.split()[1] for line in lines}
    assert {re.sub(r"\.\w+$", "", name) for name in names} == {
        *(f"trainers.j{job}.{index}" for index in range(3)),
        *(f"helpers.j{job}.{index}" for index in range(2)),
    }
    trainers = [line.split() for line in lines if "trainers" in line]
    assert {" ".join(words[3:5]) for words in trainers} == {"GPUS=0 1"}
    bound = [(words[2], words[5]) for words in trainers]
    assert len(set(bound)) == 3, bound
    assert {gpus for _, gpus in bound} <= {"CUDA=0,1", "CUDA=2,3"}
    (said,) = site.answer("status", "1")["launches"]
    assert (said["job"], said["state"], said["scheduler"]) == (job, "running", "slurm")
    assert said["output"] == str(site.folder / f"lab-{job}.out")
    stopped = site.answer("stop", job)
    assert (stopped["how"], stopped["succeeded"]) == ("warmly", True)
    assert sum(line.startswith("end") for line in site.log) == 5
    assert not list(site.folder.glob("*.stop"))
    assert site.slurm.job(job)["JobState"] == "COMPLETED"
    assert "all ended, with status 0" in Path(said["output"]).read_text("utf-8")
    assert site.answer("status")["launches"][0]["succeeded"] is True
    assert f"job {job} had ended before (COMPLETED)" in site.launch("stop", "0001").stdout


def test_the_file_alone_ends_it(site: Lab):
    """Whoever can write in the folder can end the workers, without any command of ours."""
    job = site.lab("--submit").stdout.strip()
    site.started(job)
    (site.folder / f"workers-{job}.stop").touch()
    assert site.slurm.wait_for(job) == "COMPLETED"
    assert sum(line.startswith("end") for line in site.log) == 5


def test_the_margin(site: Lab):
    """It ends by itself, long enough before its time."""
    job = site.lab("--submit", "--walltime", "10m", "--margin", "595s").stdout.strip()
    assert site.slurm.wait_for(job) == "COMPLETED"
    assert sum(line.startswith("end") for line in site.log) == 5
    assert "the time limit is 595 s ahead" in site.slurm.output(job)


def test_a_stop_at_once(site: Lab):
    """The job is canceled; a status of it says that it did not end well."""
    job = site.lab("--submit").stdout.strip()
    site.started(job)
    assert site.answer("stop", "--now")["how"] == "canceled"
    assert site.slurm.job(job)["JobState"] == "CANCELLED"
    (said,) = site.answer("status", job, code=1)["launches"]
    assert (said["state"], said["reason"], said["succeeded"]) == ("ended", "CANCELLED", False)


def test_a_stop_before_the_start(site: Lab):
    """Of a job that waits: it goes, and nothing ran."""
    other = site.slurm.submit(
        "#!/bin/bash\nsleep 60\n", "-N6", "--exclusive", "-ppdebug", cwd=site.folder
    )
    site.slurm.wait_for(other, "RUNNING")
    done = site.lab("--submit")
    assert "pending" in done.stderr
    assert "was canceled" in site.launch("stop").stdout
    assert site.log == []


def test_a_test(site: Lab):
    """Slurm is asked; what it would take and let wait for ever is refused all the same."""
    assert "slurm would take it" in site.lab("--test").stderr
    node = ("--node", "cores=8,gpus=4")
    done = site.lab("--test", "--queue", "pdebugg", *node, code=1)
    assert "slurm has no queue 'pdebugg'\n    hint: did you mean 'pdebug'?" in done.stderr
    assert "slurm would not take it: " in done.stderr
    assert "slurm has no queue" in site.lab("--queue", "pdebugg", code=2).stderr
    done = site.lab("--test", "--walltime", "2h", code=1)
    assert "a walltime of 2:00:00 is over the limit of queue pdebug, 1:00:00" in done.stderr
    done = site.lab("--submit", "--nodes", "7", code=1)
    assert "7 nodes are more than queue pdebug has, 6" in done.stderr
    assert not (site.folder / "launches").exists()


def test_a_refusal_is_kept(site: Lab):
    """What Slurm said, in the folder of the launch that came to nothing."""
    done = site.lab("--submit", "--reservation", "nowhere", code=2)
    assert "reservation is invalid" in done.stderr.lower()
    (said,) = site.answer("status")["launches"]
    assert (said["state"], said["job"]) == ("refused", None)
    assert "has no job: " in site.launch("stop", code=2).stderr


def test_nodes_that_differ(site: Lab):
    """Without a default queue of one kind, the smallest that will do is taken, and named."""
    done = site.lab("--queue", "pbig", "--size")
    assert "nodes with 36 cores, 4 GPUs" in " ".join(done.stdout.split())


def test_a_requeue(site: Lab):
    """At the margin the job goes back into the queue, once; what it wrote stays, and its workers'
    tasks are done each time.
    """
    options = ("--submit", "--walltime", "10m", "--margin", "595s", "--requeue", "1")
    job = site.lab(*options).stdout.strip()
    site.until(lambda: "back into the queue" in site.slurm.output(job), job)
    site.slurm.wait_for(job, "PENDING")

    def has_ended() -> bool:
        # Slurm itself would wait two minutes more; it may set that time after it was asked not to.
        how = site.slurm.job(job)
        if how["JobState"] == "PENDING":
            site.slurm.run("scontrol", "update", f"job={job}", "StartTime=now")
            time.sleep(2)  # each time begins the waiting anew
        return bool(how["JobState"] == "COMPLETED")

    site.until(has_ended, job)
    said = site.slurm.output(job)
    assert said.count("processes started") == 2
    assert "not requeued: it was 1 times already" in said
    assert sum(line.startswith("end") for line in site.log) == 10


def test_hostile_names(site: Lab):
    """Of the folder, the job, its output and its workers: they are names, and run nothing."""
    folder = site.folder / HOSTILE
    folder.mkdir()
    other = Lab(site.slurm, folder)
    text = LAB.replace("helpers:", "'h $(touch owned)':").replace("lab-{id}.out", "o $x;y-{id}")
    (folder / "lab.yml").write_text(text, "utf-8")
    job = other.lab("--submit", "--name", HOSTILE, "--directive", "#SBATCH --comment=x").stdout
    job = job.strip()
    lines = other.started(job)
    assert any(f"start h $(touch owned).j{job}.1." in line for line in lines)
    shown = site.slurm.ask("squeue", "-h", "-j", job, "-o", "%j|%k")
    assert shown == f"{HOSTILE}|x"
    assert other.answer("stop")["how"] == "warmly"
    assert (folder / f"o $x;y-{job}").exists()
    assert sum(line.startswith("end") for line in other.log) == 5
    assert not list(site.folder.rglob("owned*"))
