"""Clusters."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_cases import KINDS, cases

from taskgraph_workers.config.clusters import SCHEDULERS
from taskgraph_workers.detect import Detect
from taskgraph_workers.machines import Cluster, Group, Header, Node


@pytest.mark.parametrize(("body", "told"), cases("clusters.txt"))
def test_faults(project, body: str, told: str):
    """Each fault of a cluster is told with its place."""
    assert project.told(body, KINDS) == told


def test_a_cluster(project):
    """What a node has is rounded down, what a worker needs up; `auto` is worked out later."""
    config = project.config(
        """
        clusters:
            lab:
                scheduler: slurm
                node: {cores: 36, gpus: 4, memory: 256GB}
                queue: pdebug
                bank: wbronze
                walltime: "00:20:00"
                setup: [module load cuda, . /opt/worker/bin/activate]
                directives: ['#SBATCH --mail-type=END']
                groups:
                    trainers:
                        pool: lab/gpu
                        number: auto
                        cores: 8
                        gpus: 4
                        memory: 16GB
                        command: [start-worker, /etc/worker.yml]
                    helpers: {command: start-worker}
        """
    )
    at = ("workers-config", "clusters", "lab")
    assert config.clusters["lab"] == Cluster(
        name="lab",
        scheduler="slurm",
        path=at,
        node=Node(cores=36, gpus=4, memory_mib=244140),
        header=Header(
            queue="pdebug", bank="wbronze", walltime_s=1200, directives=("#SBATCH --mail-type=END",)
        ),
        setup=("module load cuda", ". /opt/worker/bin/activate"),
        groups={
            "trainers": Group(
                name="trainers",
                command=("start-worker", "/etc/worker.yml"),
                path=(*at, "groups", "trainers"),
                pool="lab/gpu",
                number=None,
                cores=8,
                gpus=4,
                memory_mib=15259,
            ),
            "helpers": Group("helpers", "start-worker", (*at, "groups", "helpers")),
        },
    )


def test_the_rest_of_a_header(project):
    """What a job's header says besides, how the job ends, and its workers' env."""
    config = project.config(
        """
        clusters:
            lab:
                scheduler: slurm
                margin: 2m
                requeue: 3
                job-name: my workers
                output: 'logs/{id}.out'
                reservation: morning
                qos: high
                constraint: v100
                groups:
                    trainers:
                        command: start
                        env: {GPUS: "0 1", WORKSPACE: {detect: gpu-memory}, TOKEN: null}
        """
    )
    lab = config.clusters["lab"]
    assert (lab.margin_s, lab.requeue) == (120, 3)
    assert lab.header == Header(
        name="my workers",
        output="logs/{id}.out",
        reservation="morning",
        qos="high",
        constraint="v100",
    )
    env = {"GPUS": "0 1", "WORKSPACE": Detect("gpu-memory"), "TOKEN": None}
    assert lab.groups["trainers"].env == env


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize(("walltime", "seconds"), [("90m", 5400), ("2h", 7200), (60, 60)])
def test_every_scheduler(project, scheduler: str, walltime: object, seconds: int):
    """A scheduler is all that a cluster needs; durations are read the same for all of them."""
    config = project.config(f"clusters: {{c: {{scheduler: {scheduler}, walltime: {walltime}}}}}")
    assert config.clusters["c"].header.walltime_s == seconds


def test_a_scheduler_of_another_package(project, site_scheduler: Path):
    """One that is registered is taken by its name, and is not loaded to read a configuration."""
    (site_scheduler / "site_scheduler.py").write_text("raise SystemExit(1)")
    config = project.config("clusters: {c: {scheduler: condor}}")
    assert config.clusters["c"].scheduler == "condor"
    told = project.told("clusters: {c: {scheduler: condro}}", KINDS)
    assert "there is no scheduler 'condro'\n    hint: did you mean 'condor'?" in told
