from __future__ import annotations

from pathlib import Path

import pytest

from slurm_cluster import SlurmCluster

pytestmark = pytest.mark.service


def test_it_has_nodes_with_gpus(slurm: SlurmCluster):
    """The nodes are those that were asked for, and up."""
    said = slurm.ask("sinfo", "-h", "-o", "%R|%D|%c|%m|%G|%l|%T")
    assert sorted(said.splitlines()) == [
        "pbatch|6|8|4000|gpu:4|infinite|idle",
        "pbig|2|36|16000|gpu:4|infinite|idle",
        "pdebug|6|8|4000|gpu:4|1:00:00|idle",
    ]


def test_it_runs_jobs(slurm: SlurmCluster, tmp_path: Path):
    """A job runs on the nodes it asks for, with GPUs, and what it says can be read."""
    script = "#!/bin/bash\nsrun bash -c 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES'\n"
    job = slurm.submit(script, "-N2", "--gres=gpu:2", cwd=tmp_path)
    assert slurm.wait_for(job) == "COMPLETED"
    assert sorted(slurm.output(job).splitlines()) == ["node1 0,1", "node2 0,1"]


def test_jobs_can_be_cleared_away(slurm: SlurmCluster, tmp_path: Path):
    """No job, running or waiting, is there afterwards, and every node is free."""
    running = slurm.submit("#!/bin/bash\nsrun sleep 600\n", "-N6", "--exclusive", cwd=tmp_path)
    waiting = slurm.submit("#!/bin/bash\nsrun sleep 600\n", "-N6", "--exclusive", cwd=tmp_path)
    slurm.wait_for(running, "RUNNING")
    slurm.clear()
    assert slurm.ask("squeue", "-h") == ""
    assert slurm.idle()
    assert {slurm.job(job)["JobState"] for job in (running, waiting)} == {"CANCELLED"}
