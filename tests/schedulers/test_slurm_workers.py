"""Workers on a real Slurm, from scripts as they are printed."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from needs import needs
from slurm_cluster import SlurmCluster
from slurm_workers import Workers, wait_until
from taskgraph_workers.schedulers.base import Job, Start

pytestmark = pytest.mark.service

FOUR = Job(nodes=4, queue="pdebug", walltime_s=600, gpus=4)
#: A task that takes what it asks for on two nodes, and tells its GPUs.
WIDE = 'srun -N 2 -n 8 bash -c "echo start \\${CUDA_VISIBLE_DEVICES-none}; sleep 2; echo end"'
NARROW = 'srun -N 1 -n 1 bash -c "echo start \\${CUDA_VISIBLE_DEVICES-none}; sleep 2; echo end"'
PLAIN = "echo start; sleep 1; echo end"


@pytest.fixture
def workers(slurm: SlurmCluster, tmp_path: Path) -> Workers:
    return Workers(slurm, tmp_path)


def whole(task: str, count: int) -> bool:
    """Whether all processes of a task have come to their end; srun may have had to wait."""
    said = Counter(line.split()[0] for line in task.splitlines())
    return said["start"] == said["end"] == count


def at_once(slurm: SlurmCluster, job: str) -> set[str]:
    """The steps that run now."""
    return set(slurm.ask("squeue", "-h", "-s", "-j", job, "-o", "%i").split())


def test_tasks_side_by_side(workers: Workers):
    """Workers that hold nothing: 34 cores of tasks run at once on 5 nodes of 8, with their GPUs."""
    job = Job(nodes=5, queue="pdebug", walltime_s=600, gpus=4)
    wide = workers.start(Start("step_1", (1, 1, 1, 1, 0), ""), WIDE)
    narrow = workers.start(Start("step_2", (0, 0, 1, 0, 1), "", task_gpus=4), NARROW)
    number = workers.submit(job, wide, narrow)
    assert [(w.group, w.index, w.node) for w in workers.wait(6)] == [
        *(("step_1", index, f"node{index + 1}") for index in range(4)),
        ("step_2", 0, "node3"),
        ("step_2", 1, "node5"),
    ]
    # The script, two groups, and six tasks.
    wait_until(lambda: len(at_once(workers.slurm, number)) == 9)
    assert workers.stop() == "COMPLETED"
    tasks = workers.tasks()
    for name, said in tasks.items():
        gpus = {line.split()[1] for line in said.splitlines() if line.startswith("start")}
        assert gpus == ({"0,1,2,3"} if name.startswith("step_2") else {"none"}), name
        assert whole(said, 1 if name.startswith("step_2") else 8), name
    assert len(workers.lines("down")) == 6
    assert workers.left() == []


def test_tasks_that_ask_for_gpus_themselves(workers: Workers):
    """Where a group's tasks differ, each way to ask srun for GPUs works."""
    tasks = {"--gpus-per-task=1": 1, "--gres=gpu:2": 2, "--gpus-per-node=3": 3, "-G 4": 4}
    starts = []
    for flag, count in tasks.items():
        group = Start(f"g{count}", (1, 0, 0, 0), "", task_gpus=None)
        starts.append(workers.start(group, NARROW.replace("-n 1", f"-n 1 {flag}")))
    workers.submit(FOUR, *starts)
    workers.wait(4)
    wait_until(lambda: all(workers.folder.glob(f"task.g{n}.*") for n in tasks.values()))
    assert workers.stop() == "COMPLETED"
    for name, said in workers.tasks().items():
        gpus = [line.split()[1] for line in said.splitlines() if line.startswith("start")]
        assert [len(each.split(",")) for each in gpus] == [int(name[1])], name


def test_workers_that_hold(workers: Workers):
    """Each worker that holds has GPUs of its own, next to other groups; one without sees none."""
    workers.submit(
        FOUR,
        workers.start(Start("one", (2, 2, 0, 1), "", True, 1, 1, 200), PLAIN),
        workers.start(Start("two", (1, 1, 2, 0), "", True, 2, 2), PLAIN),
        workers.start(Start("none", (1, 1, 1, 1), "", True, 3), PLAIN),
    )
    found = workers.wait(13)
    assert Counter((w.group, w.node) for w in found) == {
        **{("one", "node1"): 2, ("one", "node2"): 2, ("one", "node4"): 1},
        **{("two", "node1"): 1, ("two", "node2"): 1, ("two", "node3"): 2},
        **{("none", f"node{number}"): 1 for number in range(1, 5)},
    }
    held: dict[str, list[str]] = {}
    for worker in found:
        assert len(worker.gpus or ()) == {"one": 1, "two": 2, "none": 0}[worker.group]
        assert worker.gpus is not None
        held.setdefault(worker.node, []).extend(worker.gpus)
    assert {node: len(set(gpus)) for node, gpus in held.items()} == {
        **dict.fromkeys(("node1", "node2", "node3"), 4),
        "node4": 1,
    }
    assert all(len(set(gpus)) == len(gpus) for gpus in held.values())
    assert workers.stop() == "COMPLETED"
    assert all(whole(said, 1) for said in workers.tasks().values())
    assert workers.left() == []


def test_names_are_unique(workers: Workers):
    """Many workers on a node, more than it has cores: each has a name of its own, and all end."""
    group = Start("many", (12, 3, 12), "", task_gpus=0)
    workers.submit(Job(nodes=3, queue="pdebug", walltime_s=600), workers.start(group, PLAIN))
    found = workers.wait(27)
    assert [worker.index for worker in found] == list(range(27))
    assert Counter(w.node for w in found) == {"node1": 12, "node2": 3, "node3": 12}
    assert workers.stop() == "COMPLETED"
    assert len(workers.lines("down")) == 27
    assert workers.left() == []


def test_other_nodes_than_planned(workers: Workers):
    """In an allocation of another size all workers start, dealt over the nodes there are."""
    free = workers.start(Start("free", (3, 3, 2, 2), ""), PLAIN)
    hold = workers.start(Start("hold", (1, 1, 0, 0), "", True, 1, 1), PLAIN)
    workers.submit(FOUR, free, hold, options=("--nodes=3",))
    found = workers.wait(12)
    assert Counter(w.node for w in found) == {"node1": 4, "node2": 4, "node3": 4}
    assert workers.stop() == "COMPLETED"
    assert "planned for 4 nodes, here are 3" in workers.slurm.output(workers.id)


def test_a_task_outlives_the_asking(workers: Workers):
    """Workers are asked to end while tasks run: each task's own srun lives until it is done."""
    long = WIDE.replace("sleep 2", "sleep 6")
    workers.submit(FOUR, workers.start(Start("free", (1, 1, 1, 0), ""), long))
    workers.wait(3)
    wait_until(lambda: sum(said.count("start") for said in workers.tasks().values()) == 24)
    assert workers.stop() == "COMPLETED"
    assert [whole(said, 8) for said in workers.tasks().values()] == [True] * 3
    assert [line.split()[2] for line in workers.lines("down")] == ["1"] * 3


def test_asked_while_they_start(workers: Workers):
    """Workers that come up after the asking end too."""
    number = workers.submit(FOUR, workers.start(Start("late", (8, 8, 8, 8), ""), PLAIN))
    (workers.folder / f"workers-{number}.stop").touch()
    assert workers.slurm.wait_for(number) == "COMPLETED"
    # Some may be asked so early that they never come up.
    up, down = (sorted(line.split()[1] for line in workers.lines(w)) for w in ("up", "down"))
    assert up == down
    assert workers.left() == []


def test_asked_while_slurm_is_away(workers: Workers):
    """A step that Slurm refuses is asked for again, so that workers do end."""
    (workers.folder / "srun").write_text(
        "#!/bin/bash\n"
        f'case $* in *end_here*) mkdir "{workers.folder}/refused" && exit 1 ;; esac\n'
        f'exec {needs("srun")} "$@"\n'
    )
    (workers.folder / "srun").chmod(0o755)
    path = f"--export=ALL,PATH={workers.folder}:{os.environ['PATH']}"
    workers.submit(FOUR, workers.start(Start("free", (1, 1, 0, 0), ""), PLAIN), options=(path,))
    workers.wait(2)
    assert workers.stop() == "COMPLETED"
    assert (workers.folder / "refused").exists()
    assert len(workers.lines("down")) == 2
    workers.gone()


def test_canceled(workers: Workers):
    """When the job is canceled nothing is left, not even a worker that doesn't care."""
    # This Slurm has no cgroups, so it loses what is forked while it kills: all has to be there.
    task = WIDE.replace("sleep 2; echo end", "exec sleep 600").replace("-n 8", "-n 6")
    free = workers.start(Start("free", (1, 1, 1, 0), ""), task)
    stubborn = "trap '' TERM; sleep 600 & sleep 600 & touch $WORKER_NAME; wait"
    # Those that hold are first, or tasks might take their cores.
    number = workers.submit(FOUR, Start("hold", (1, 0, 0, 1), stubborn, True, 1, 1), free)
    wait_until(lambda: sum(said.count("start") for said in workers.tasks().values()) == 18)
    wait_until(lambda: len(list(workers.folder.glob("hold.*"))) == 2)
    workers.slurm.ask("scancel", number)
    assert workers.slurm.wait_for(number) == "CANCELLED"
    workers.slurm.clear()
    workers.gone()


def test_one_that_fails(workers: Workers):
    """A worker that dies takes no other with it, of its own group or of another."""
    dies = Start("dies", (1, 1, 0, 0), '[ "$SLURMD_NODENAME" != node1 ] || exit 5; exec sleep 600')
    workers.submit(FOUR, dies, workers.start(Start("lives", (0, 1, 1, 1), ""), PLAIN))
    workers.wait(3)
    wait_until(lambda: "exit code 5" in workers.slurm.output(workers.id))
    count = len(workers.tasks())
    wait_until(lambda: len(workers.tasks()) > count + 3)
    assert any("sleep\x00600\x00" in line for line in workers.left())
    assert workers.stop() == "FAILED"
    assert workers.left() == []


def test_what_a_worker_inherits(workers: Workers):
    """A worker can be interrupted, and its variables are those of the script, not of its step."""
    file = workers.folder / "interrupted"
    env = "env; srun -n 2 bash -c 'echo rank $SLURM_PROCID of $SLURM_NTASKS'"
    workers.submit(
        FOUR,
        Start("int", (1, 0, 0, 0), f"trap 'touch {file}; exit' INT; kill -INT $$; sleep 600"),
        workers.start(Start("env", (0, 2, 0, 0), ""), f"{env}; sleep 1"),
    )
    workers.wait(2)
    wait_until(file.exists)
    assert workers.stop() == "COMPLETED"
    lines = set(workers.tasks()[f"env.j{workers.id}.1.node2.1"].splitlines())
    assert {"rank 0 of 2", "rank 1 of 2", "SLURM_EXACT=1", "SLURM_GRES=none"} <= lines
    assert {"SLURM_PROCID=0", "SLURM_NNODES=4", "SLURM_TASKS_PER_NODE=8(x4)"} <= lines
    names = {line.partition("=")[0] for line in lines}
    assert not {"SLURM_NTASKS", "SLURM_STEP_ID", "SLURM_CPUS_PER_TASK", "SLURM_OVERCOMMIT"} & names


def test_requeued(workers: Workers):
    """The functions for a requeue put the job back into its queue, and count it."""
    job = Job(nodes=1, queue="pdebug", walltime_s=600, requeue=True)
    number = workers.submit(job, Start("again", (1,), "sleep 600"))
    text = (workers.folder / "script").read_text()
    functions = text[text.index("tw_job_id()") : text.index("tw_forget_steps()")]
    run = ("env", f"SLURM_JOB_ID={number}", "bash", "-c")
    assert workers.slurm.ask(*run, f"{functions}tw_restarts; tw_job_id").split() == ["0", number]
    workers.slurm.wait_for(number, "RUNNING")
    workers.slurm.ask(*run, f"{functions}tw_requeue_job")
    workers.slurm.wait_for(number, "PENDING")
    assert workers.slurm.job(number)["Restarts"] == "1"
