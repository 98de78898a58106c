"""A spec and a cluster to launch, and how the command ended that did."""

from __future__ import annotations

from typing import NamedTuple

SPEC = """\
description: {name: demo, description: two steps}
batch: {type: slurm, queue: pdebug, walltime: "00:20:00"}
study:
- name: simulate
  description: on two nodes
  run: {cmd: $(LAUNCHER) ./simulate, nodes: 2, procs: 8, task_queue: simulate}
- name: train
  description: on four GPUs
  run: {cmd: $(LAUNCHER) ./train, nodes: 1, procs: 1, gpus: 4, task_queue: train}
merlin:
  resources:
    workers:
      simulators: {args: --concurrency 1, steps: [simulate], number: 4}
      trainers: {args: --concurrency 1, steps: [train], number: 2}
"""

LAB = """\
workers:
    aliases:
        b-gpu: {provisioner: lab, worker-type: gpu, implementation: generic-worker, os: linux}
workers-config:
    workers:
        b-gpu: {env: {GPUS: "0 1", WORKSPACE: "8000"}}
    clusters:
        lab:
            scheduler: slurm
            node: {cores: 36, gpus: 4, memory: 256GiB}
            queue: pdebug
            bank: wbronze
            walltime: 20m
            margin: 3m
            job-name: lab workers
            setup: [module load cuda]
            groups:
                trainers: {pool: lab/gpu, number: 5, cores: 8, gpus: 2, command: [start-worker, x]}
                helpers: {number: 3, command: "start-helper --port $PORT"}
"""


class Done(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


LAB_OPTIONS = ("--cluster", "lab", "--config", "lab.yml")
NODE = ("--node", "cores=36,gpus=4")
