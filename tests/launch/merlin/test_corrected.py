"""The corrected spec: that it is read without those warnings, and that Merlin does what it says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from merlin_values import told

from merlin_services import merlin_bin
from taskgraph_workers.launch.merlin.ask import ask
from taskgraph_workers.launch.merlin.options import Options
from taskgraph_workers.launch.merlin.read import read_spec
from taskgraph_workers.launch.model import Ask, LaunchError

# The originating issue's example: one queue by accident, keys that Merlin drops, no procs.
EXAMPLE = """\
description:
    name: example_wf
    description: worker launch
batch:
    type: TYPE
study:
# Two nodes each.
- name: step_1
  description: step 1
  run:
    cmd: $(LAUNCHER) echo "do something"
    nodes: 2
    cores: 8   # in all
- name: step_2
  description: step 2
  run:
    cmd: $(LAUNCHER) echo "do something else"
    nodes: 1
    gpus: 4
merlin:
    resources:
        workers:
            step_1_workers:
                args: -l INFO --concurrency 4 --prefetch-multiplier 1 -Ofair
                steps: [step_1]
                nodes: 1
            step_2_workers:
                args: -l INFO --concurrency 1 --prefetch-multiplier 1 -Ofair
                steps: [step_2]
                nodes: 2
"""
WRONG = ("never starts", "also runs", "drops 'cores'", "drops 'gpus'", "procs")


def asked(text: str, folder: Path) -> Ask:
    file = folder / "spec.yaml"
    file.write_text(text)
    return ask(read_spec(str(file), {}), Options(folder="/opt/merlin/bin"))


def corrected(text: str, folder: Path) -> str:
    found = asked(text, folder).corrected
    assert found is not None
    return found


def test_the_originating_example(tmp_path: Path):
    """Only what Merlin would do otherwise is changed, line by line; comments stay."""
    lines = EXAMPLE.replace("TYPE", "flux").splitlines()
    found = corrected("\n".join(lines) + "\n", tmp_path).splitlines()
    assert [line.strip() for line in found if line not in lines] == [
        "procs: 8   # in all",
        "task_queue: step_1_workers",
        "gpus per task: 4",
        "procs: 1",
        "task_queue: step_2_workers",
        "number: 4",
        "number: 2",
    ]
    assert [line.strip() for line in lines if line not in found] == [
        "cores: 8   # in all",
        "gpus: 4",
        "args: -l INFO --concurrency 4 --prefetch-multiplier 1 -Ofair",
        "nodes: 1",
        "nodes: 2",
    ]


NUMBERS = [
    ("args: --concurrency 4", "args: --concurrency 1\nnumber: 4"),
    ("args: -c4 -l INFO\nnodes: 2", "args: -c1 -l INFO\nnumber: 8"),
    ("args: '--concurrency=3 -n x'  # three", "args: '--concurrency=1 -n x'  # three\nnumber: 3"),
    ("args: --concurrency $(FOUR)", "args: --concurrency $(FOUR)"),
    ("args: --concurrency 4 -c 4", "args: --concurrency 4 -c 4"),
    ("nodes: 2", "nodes: 2"),
    ("args: --concurrency 1\nnumber: 3", "args: --concurrency 1\nnumber: 3"),
]


@pytest.mark.parametrize(("said", "after"), NUMBERS)
def test_one_number_for_nodes_and_concurrency(said: str, after: str, tmp_path: Path):
    """Which can then be changed alone; what can't be replaced without guessing is left."""
    first, last = EXAMPLE.replace("TYPE", "flux").split("                args: -l INFO --conc", 1)
    last = last[last.index("            step_2_workers") :]
    lines = "".join(f"                {line}\n" for line in ["steps: [step_1]", *said.split("\n")])
    text = f"{first}{lines}{last}".replace("study:", "env: {variables: {FOUR: 4}}\nstudy:", 1)
    found = corrected(text, tmp_path)
    block = found[found.index("steps: [step_1]") : found.index("            step_2_workers")]
    assert [line.strip() for line in block.splitlines()[1:]] == after.split("\n")
    if "number" in after:
        assert asked(found.replace("number: ", "number: 1"), tmp_path).groups[0].number > 9


@pytest.mark.parametrize("type", ["flux", "slurm", "lsf"])
def test_it_is_read_without_those_warnings(type: str, tmp_path: Path):
    """Read again, it asks for the same, of both groups, and there is nothing left to correct."""
    before = asked(EXAMPLE.replace("TYPE", type), tmp_path)
    assert [part for part in WRONG if part in told(before)] == list(WRONG)
    after = asked(before.corrected or "", tmp_path)
    assert [part for part in WRONG if part in told(after)] == []
    assert after.corrected is None
    sizes = [
        (group.number, [(d.step, d.nodes, d.cores, d.gpus) for d in group.demands])
        for group in after.groups
    ]
    assert sizes == [(4, [("step_1", 2, 4, 0)]), (2, [("step_2", 1, 1, 4)])]


LAUNCHES = {
    "slurm": ["srun -n 8 -N 2 echo", "srun -n 1 -N 1 --gres=gpu:4 echo"],
    "flux": ["flux run -n 8 -N 2 echo", "flux run -n 1 -N 1 -g 4 echo"],
}


@pytest.mark.service
@pytest.mark.once
@pytest.mark.parametrize("type", ["slurm", "flux"])
def test_merlin_does_what_it_says(type: str, tmp_path: Path):
    """Merlin itself starts both groups, each with its queue, and its launchers get the numbers."""
    bin = merlin_bin()
    file = tmp_path / "corrected.yaml"
    file.write_text(corrected(EXAMPLE.replace("TYPE", type), tmp_path))
    (tmp_path / "flux").write_text("#!/bin/sh\necho 'commands: flux-core-0.88.0'\n")
    (tmp_path / "flux").chmod(0o755)
    env = {"HOME": str(tmp_path), "PATH": f"{tmp_path}{os.pathsep}{bin}:/usr/bin:/bin"}

    def merlin(*words: str) -> str:
        command = [str(bin / "merlin"), *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    workers = merlin("run-workers", "--echo", str(file))
    assert re.findall(r"-n (\w+)\.%+h -Q '?(\S+?)['\"\s]", workers) == [
        ("step_1_workers", "[merlin]_step_1_workers"),
        ("step_2_workers", "[merlin]_step_2_workers"),
    ]
    said = merlin("run", "--local", "--dry", str(file))
    # Of its own default, 'shell', Merlin says that in every run.
    assert re.findall(r"'(\w+)' is not supported", said.replace("'shell'", "")) == []
    scripts = sorted(tmp_path.glob("example_wf_*/step_*/step_*.sh"))
    launches = [" ".join(script.read_text().splitlines()[-1].split()) for script in scripts]
    assert [line.partition(' "')[0] for line in launches] == LAUNCHES[type]


def test_the_first_group_keeps_a_queue_that_is_written(tmp_path: Path):
    """Where a shared queue is written, only the group that never starts gets another one."""
    text = EXAMPLE.replace("TYPE", "slurm")
    text = text.replace("nodes: 2\n    cores", "task_queue: q\n    nodes: 2\n    cores")
    text = text.replace("nodes: 1\n    gpus", "nodes: 1\n    task_queue: q\n    gpus")
    value = yaml.safe_load(corrected(text, tmp_path))
    queues = [step["run"]["task_queue"] for step in value["study"]]
    assert queues == ["q", "step_2_workers"]


def test_cores_beside_procs_are_cores_per_task(tmp_path: Path):
    """Who says procs and cores has said how many each of them takes."""
    text = EXAMPLE.replace("TYPE", "slurm").replace("cores: 8", "cores: 32\n    procs: 8")
    value = yaml.safe_load(corrected(text, tmp_path))
    run = value["study"][0]["run"]
    assert (run["procs"], run["cores per task"], "cores" in run) == (8, 4, False)
    fewer = EXAMPLE.replace("TYPE", "slurm").replace("cores: 8", "cores: 4\n    procs: 8")
    assert yaml.safe_load(corrected(fewer, tmp_path))["study"][0]["run"]["cores"] == 4


def test_gpus_of_each_task_stay_as_many(tmp_path: Path):
    """Where GPUs are said for each task, cores make no more tasks of it."""
    text = EXAMPLE.replace("TYPE", "flux").replace("cores: 8", "cores: 8\n    gpus per task: 2")
    run = yaml.safe_load(corrected(text, tmp_path))["study"][0]["run"]
    assert (run["procs"], run["cores per task"], run["gpus per task"]) == (2, 4, 2)


def test_raw_flags_are_kept(tmp_path: Path):
    """GPUs are added to the flags that are there, and flags that ask for GPUs stay alone."""
    text = EXAMPLE.replace("TYPE", "slurm")
    more = yaml.safe_load(corrected(text.replace("gpus: 4", "gpus: 4\n    slurm: -t 5"), tmp_path))
    assert more["study"][1]["run"]["slurm"] == "-t 5 --gres=gpu:4"
    assert "gpus" not in more["study"][1]["run"]
    raw = text.replace("gpus: 4", "gpus: 4\n    slurm: --gpus-per-task=2")
    kept = yaml.safe_load(corrected(raw, tmp_path))
    assert kept["study"][1]["run"]["slurm"] == "--gpus-per-task=2"


def test_a_launcher_gets_a_task_for_each_node(tmp_path: Path):
    """Fewer cores than nodes are as many tasks as nodes: a launcher takes no fewer."""
    text = EXAMPLE.replace("TYPE", "slurm").replace("cores: 8", "cores: 1")
    assert yaml.safe_load(corrected(text, tmp_path))["study"][0]["run"]["procs"] == 2


def test_a_queue_of_that_name_is_there_already(tmp_path: Path):
    """The new queue's name is none that another step has."""
    step = "- {name: step_3, description: d, run: {cmd: x, task_queue: step_2_workers}}\nmerlin:"
    text = EXAMPLE.replace("TYPE", "slurm").replace("merlin:", step)
    value = yaml.safe_load(corrected(text, tmp_path))
    queues = [each["run"]["task_queue"] for each in value["study"]]
    assert queues == ["step_1_workers", "step_2_workers_queue", "step_2_workers"]


def test_the_default_worker_is_nothing_to_correct(tmp_path: Path):
    """Steps that nobody names run where their queue is served: that is no accident."""
    text = """\
description: {name: x, description: y}
study:
- {name: a, description: d, run: {cmd: "true", task_queue: q}}
- {name: b, description: d, run: {cmd: "true", task_queue: q}}
merlin:
  resources:
    workers:
      w: {steps: [a], number: 2}
"""
    assert asked(text, tmp_path).corrected is None


def test_nothing_is_printed_where_nothing_is_wrong(tmp_path: Path):
    """A spec that Merlin runs as it says has no corrected text, nor has one with only a number."""
    good = corrected(EXAMPLE.replace("TYPE", "slurm"), tmp_path)
    assert asked(good, tmp_path).corrected is None


def test_both_name_the_same_step(tmp_path: Path):
    """Two groups for one step can't be parted by queues: they are let share it."""
    text = """\
description: {name: x, description: y}
study:
- {name: a, description: d, run: {cmd: "true"}}
merlin:
  resources:
    overlap: false  # as it was
    workers:
      w: {number: 2}
      v: {steps: [a], number: 2}
"""
    found = corrected(text, tmp_path)
    assert found == text.replace("overlap: false", "overlap: true")
    assert [group.name for group in asked(found, tmp_path).groups] == ["w", "v"]


def test_groups_that_are_not_launched_are_checked_too(tmp_path: Path):
    """What is wrong with a group that is left out is a fault of the spec all the same."""
    text = EXAMPLE.replace("TYPE", "slurm").replace("--concurrency 1", "--concurrency x")
    with pytest.raises(LaunchError, match="'x' is no number of processes"):
        asked(text, tmp_path)


def test_shared_anchors_are_left_alone(tmp_path: Path):
    """Where two steps share a run by an alias, nothing is changed behind their backs."""
    text = """\
description: {name: x, description: y}
batch: {type: slurm}
study:
- name: a
  description: d
  run: &run
    cmd: $(LAUNCHER) x
    nodes: 2
- {name: b, description: d, run: *run}
"""
    assert asked(text, tmp_path).corrected is None
