"""Workers that hold beside those whose tasks bring an srun, on a real Slurm."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from slurm_cluster import SlurmCluster
from slurm_workers import Workers, wait_until
from taskgraph_workers.schedulers.base import Job, Start

pytestmark = pytest.mark.service

TWO = Job(nodes=2, queue="pdebug", walltime_s=600, gpus=4)
#: A task that keeps all cores of its node that are left, until it is told that it may end.
GREEDY = "srun -N 1 -n {cores} bash -c 'until [ -e over ]; do sleep 0.2; done; echo end'"
#: srun, where steps that hold cores are slow to come.
SLOW = """\
#!/bin/bash
case " $* " in *" --exact "*) sleep 3 ;; esac
exec {srun} "$@"
"""


@pytest.fixture
def workers(slurm: SlurmCluster, tmp_path: Path) -> Workers:
    return Workers(slurm, tmp_path)


def test_those_that_hold_have_it_first(workers: Workers):
    """However slowly they start, and wherever their group stands, no task has their cores: those
    that would take them all wait, and the workers that hold are there.
    """
    srun = workers.folder / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(SLOW.format(srun=workers.slurm.ask("bash", "-c", "command -v srun")))
    srun.chmod(0o755)
    path = workers.slurm.ask("bash", "-c", 'echo "$PATH"')
    greedy = workers.start(Start("free", (1, 1), ""), GREEDY.format(cores=8))
    fits = workers.start(Start("fits", (1, 1), ""), GREEDY.format(cores=2))
    holds = workers.start(Start("hold", (1, 2), "", True, 3, 1), "sleep 0.3")
    workers.submit(TWO, greedy, fits, holds, options=(f"--export=ALL,PATH={srun.parent}:{path}",))
    wait_until(lambda: len(workers.lines("up")) == 7)
    said = workers.slurm.ask("squeue", "-h", "-s", "-j", workers.id, "-o", "%i")
    assert "still wait" not in workers.slurm.output(workers.id), said
    where = Counter((w.group, w.node) for w in workers.wait(7) if w.group == "hold")
    assert where == {("hold", "node1"): 1, ("hold", "node2"): 2}
    workers.slurm.ask("scancel", workers.id)
    workers.slurm.clear()


def test_holders_that_fail_keep_nobody_waiting(workers: Workers):
    """Where a group can't have what it holds, the others start all the same."""
    free = workers.start(Start("free", (1, 1), ""), "sleep 0.3")
    workers.submit(TWO, free, Start("hold", (1, 0), "exec sleep 600", True, 9))
    wait_until(lambda: len(workers.lines("up")) == 2)
    assert workers.stop() == "FAILED"
    assert "a worker of hold ended with status 1" in workers.slurm.output(workers.id)


@pytest.mark.parametrize(("nodes", "said"), [(1, {8}), (2, {4}), (None, {2})])
def test_tasks_that_say_no_nodes(workers: Workers, nodes: int | None, said: set[int]):
    """They run on as many nodes as they were sized for; without that, on all there are."""
    job = Job(nodes=4, queue="pdebug", walltime_s=600, gpus=4)
    task = "srun -n 8 bash -c 'echo $SLURMD_NODENAME'; sleep 0.5"
    workers.submit(job, workers.start(Start("free", (1, 0, 0, 0), "", task_nodes=nodes), task))
    workers.wait(1)
    assert workers.stop() == "COMPLETED"
    counts = Counter(workers.tasks()[f"free.j{workers.id}.0.node1.1"].split())
    assert set(counts.values()) == said


def test_tasks_that_say_their_nodes(workers: Workers):
    """A flag beats what the group's other tasks were sized for."""
    job = Job(nodes=4, queue="pdebug", walltime_s=600, gpus=4)
    task = "srun -N 2 -n 8 bash -c 'echo $SLURMD_NODENAME'; sleep 0.5"
    workers.submit(job, workers.start(Start("free", (1, 0, 0, 0), "", task_nodes=1), task))
    workers.wait(1)
    assert workers.stop() == "COMPLETED"
    counts = Counter(workers.tasks()[f"free.j{workers.id}.0.node1.1"].split())
    assert sorted(counts.values()) == [4, 4]
