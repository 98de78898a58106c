"""A real Slurm of several nodes, all of them on this machine, for as long as tests run.

Everything it needs lies in a folder of its own; clients find it by ``SLURM_CONF``. Nodes are told
apart by ``SLURMD_NODENAME``, since ``hostname`` is the same on each. GPUs are copies of /dev/null.
"""

from __future__ import annotations

import os
import random
import re
import socket
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from keeper import Keeper, keeper
from needs import lacking, needs

OVER = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE"}


@dataclass(frozen=True)
class Nodes:
    """Alike nodes, ``NAME1`` and up, and their partitions; the very first one is the default."""

    name: str
    count: int
    cores: int
    gpus: int = 4
    memory_mib: int = 4000
    partitions: tuple[str, ...] = ()


#: Six nodes for most tests, and two large ones.
NODES = (
    Nodes("node", 6, 8, partitions=("pdebug", "pbatch")),
    Nodes("big", 2, 36, memory_mib=16000, partitions=("pbig",)),
)

# JobAcctGather and cgroups are out: they want a machine of their own.
CONFIGURATION = """\
ClusterName=testcluster
FirstJobId={job}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
SlurmdParameters=config_overrides
SlurmctldTimeout=30
SlurmdTimeout=60
MessageTimeout=20
KillWait=2
InactiveLimit=0
Waittime=0
PropagateResourceLimits=NONE
"""


class SlurmCluster:
    """The cluster: its clients' environment, and what tests ask it."""

    def __init__(self, kept: Keeper, nodes: Sequence[Nodes]) -> None:
        self.folder = kept.folder
        self.nodes = nodes
        self._kept = kept

    @property
    def env(self) -> dict[str, str]:
        """The environment for its clients: ours, with nothing of another Slurm's."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH", "SRUN"))}
        return {**env, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(
        self,
        *command: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        timeout_s: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as a user of this cluster would; whatever its exit code."""
        return subprocess.run(
            command,
            cwd=cwd,
            env={**self.env, **(env or {})},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def ask(self, *command: str) -> str:
        """What a command printed; fails the test where it failed."""
        done = self.run(*command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def submit(self, script: str, *options: str, cwd: Path) -> str:
        """Submit the text of a script from a folder; the id of its job."""
        done = self.run("sbatch", "--parsable", *options, cwd=cwd, stdin=script)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip().partition(";")[0]

    def job(self, job: str) -> dict[str, str]:
        """What ``scontrol show job`` says of it: JobState, NodeList, StdOut, ..."""
        return dict(re.findall(r"(\S+?)=(\S*)", self.ask("scontrol", "-o", "show", "job", job)))

    def wait_for(self, job: str, *states: str, timeout_s: float = 120) -> str:
        """Wait until a job is in one of these states, or over if none is given; which one.

        Fails the test where it is over in another one, or takes too long.
        """
        deadline = time.monotonic() + timeout_s
        while (state := self.job(job)["JobState"]) not in (states or OVER):
            assert state not in OVER, f"job {job} is {state}\n{self.output(job)}"
            assert time.monotonic() < deadline, f"job {job} is still {state}\n{self.output(job)}"
            time.sleep(0.1)
        return state

    def output(self, job: str) -> str:
        """What the job wrote so far."""
        file = Path(self.job(job)["StdOut"])
        return file.read_text(errors="replace") if file.exists() else ""

    def clear(self) -> None:
        """Cancel every job, and wait until the nodes are free again."""
        if self.ask("squeue", "-h"):
            self.ask("scancel", "--user", "root", "--signal=KILL", "--full")
            self.ask("scancel", "--user", "root")
        deadline = time.monotonic() + 30
        patience = time.monotonic() + 8
        while self.ask("squeue", "-h") or not self.idle():
            assert time.monotonic() < deadline, self.ask("sinfo") + self.ask("squeue")
            if time.monotonic() > patience:
                # Slurm may wait a minute and more for the end of a step that it killed.
                for state in (["state=down", "reason=clear"], ["state=resume"]):
                    self.run("scontrol", "update", f"node={','.join(_names(self.nodes))}", *state)
                patience = deadline
            time.sleep(0.1)

    def idle(self) -> bool:
        """Whether all nodes are up, and none has anything to do."""
        names = self.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N", timeout_s=10).stdout
        return len(set(names.split())) == sum(each.count for each in self.nodes)

    def start(self) -> bool:
        """Start it; whether it came up: a port may have been taken in between."""
        _write(self.folder, self.nodes)
        conf = str(self.folder / "slurm.conf")
        self._kept.start(needs("slurmctld"), "-D", "-i", "-f", conf)
        for name in _names(self.nodes):
            self._kept.start(needs("slurmd"), "-D", "-f", conf, "-N", name)
        deadline = time.monotonic() + 15
        while not self.idle():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True


@contextmanager
def slurm_cluster(nodes: Sequence[Nodes] = NODES) -> Iterator[SlurmCluster]:
    """Start a cluster, for as long as the block runs; skips the test where that can't be done."""
    for tool in ("slurmctld", "slurmd", "sbatch", "srun"):
        needs(tool)
    if os.geteuid() != 0:
        lacking("Slurm with GPUs of its own needs root, who may make devices")
    for _ in range(3):
        with keeper("slurm") as kept:
            cluster = SlurmCluster(kept, nodes)
            if cluster.start():
                yield cluster
                return
            said = kept.log() + (kept.folder / "slurmctld.log").read_text()
    raise AssertionError(f"Slurm does not start\n{said}")


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, from where no client's own ports are."""
    found: list[int] = []
    for port in random.SystemRandom().sample(range(12000, 32000), 2000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no free ports")


def _names(nodes: Sequence[Nodes]) -> list[str]:
    return [f"{each.name}{index}" for each in nodes for index in range(1, each.count + 1)]


def _write(folder: Path, nodes: Sequence[Nodes]) -> None:
    """The configuration, and the folders and devices that it names."""
    for name in ("state", "run", "dev", *(f"spool/{name}" for name in _names(nodes))):
        (folder / name).mkdir(parents=True, exist_ok=True)
    most = max(each.gpus for each in nodes)
    for index in range(most):
        _device(folder / "dev" / f"gpu{index}")
    host = socket.gethostname().partition(".")[0]
    ports = free_ports(1 + len(_names(nodes)))
    # No job of another cluster on this machine has its number: scripts have files named like it.
    job = 1000 * random.SystemRandom().randrange(1, 60_000)
    lines = [CONFIGURATION.format(host=host, port=ports.pop(), folder=folder, job=job)]
    gres = ["AutoDetect=off"]
    for each in nodes:
        for name in _names([each]):
            lines.append(
                f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports.pop()} "
                f"CPUs={each.cores} Sockets=1 CoresPerSocket={each.cores} ThreadsPerCore=1 "
                f"RealMemory={each.memory_mib} State=UNKNOWN"
                + (f" Gres=gpu:{each.gpus}" if each.gpus else "")
            )
            if each.gpus:
                files = ",".join(f"{folder}/dev/gpu{index}" for index in range(each.gpus))
                gres.append(f"NodeName={name} Name=gpu File={files}")
    for number, each in enumerate(nodes):
        names = ",".join(_names([each]))
        for partition in each.partitions:
            is_default = number == 0 and partition == each.partitions[0]
            limits = "Default=YES MaxTime=1:00:00 DefaultTime=10" if is_default else ""
            lines.append(f"PartitionName={partition} Nodes={names} State=UP {limits}".rstrip())
    (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
    (folder / "gres.conf").write_text("\n".join(gres) + "\n")
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")


def _device(path: Path) -> None:
    if not path.exists():
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            lacking("this machine lets nobody make devices, so Slurm has no GPUs")
