"""What a task of a step takes, and what is said about it."""

from __future__ import annotations

import pytest
from merlin_texts import demand, hints, line, notes, size, step, study

from taskgraph_workers.launch.model import LaunchError

ROWS = (
    "global.parameters: {N: {values: [1, 2, 2], label: N.%%}, P: {values: [8, 4, 2], label: P.%%}}"
)


@pytest.mark.parametrize(
    ("run", "found"),
    [
        ("cmd: $(LAUNCHER) a\nnodes: 2\nprocs: 8", (2, 4, 0)),
        ("cmd: $(LAUNCHER) a\nnodes: 2\nprocs: 8\ncores per task: 4", (2, 16, 0)),
        ("cmd: $(LAUNCHER) a\nprocs: 8\ngpus per task: 1", (1, 8, 8)),
        ("cmd: $(LAUNCHER) a\nnodes: 2\ncores: 8", (2, 4, 0)),
        ("cmd: $(LAUNCHER) a\nnodes: 2\nprocs: 2\ngpus: 4", (2, 1, 2)),
        ("cmd: $(LAUNCHER) a\nnodes: 2\nprocs: 3\ncores per task: 2", (2, 4, 0)),
        ("cmd: x\nrestart: $(LAUNCHER) a\nprocs: 4", (1, 4, 0)),
        ("cmd: |\n  # $(LAUNCHER) a\n  b\nprocs: 1", (1, 1, 0)),
        ("cmd: $(LAUNCHER) --gpus-per-task=2 a -n 9\nprocs: 2", (1, 2, 4)),
        ("cmd: $(LAUNCHER)[2n, 4p] a\nnodes: 3\nprocs: 9", (2, 2, 0)),
        ("cmd: $(LAUNCHER)[4p] a\nnodes: 1\nprocs: 9", (1, 4, 0)),
        ("cmd: $(LAUNCHER)[2, 4] a\nnodes: 3\nprocs: 9", (2, 2, 0)),
        ("cmd: srun -N 2 -n 8 -c 2 --gres=gpu:4 a -n 99", (2, 8, 4)),
        ("cmd: srun -n 8 a\nnodes: 2\ngpus: 4", (2, 4, 2)),
        ("cmd: srun -n 1 a\nnodes: 2", (1, 1, 0)),
        ("cmd: X=1 timeout 9 /usr/bin/srun -n 4 a", (1, 4, 0)),
        ("cmd: jsrun -n 4 -a 1 -c 10 -g 1 -r 2 a", (2, 20, 2)),
        ("cmd: mpirun -np 8 -ppn 4 a", (2, 4, 0)),
        ("cmd: flux run -N 2 -n 8 -g 1 a", (2, 4, 4)),
        ("cmd: flux mini run -n 8 -c 2 a", (1, 16, 0)),
        ("cmd: aprun -n 8 -N 4 -d 2 a", (2, 8, 0)),
        ("cmd: ibrun -n 8 a", (1, 8, 0)),
        ("cmd: N=4; srun -n $N a", (1, 4, 0)),
        ("cmd: srun -N 2 -n 2 a; srun -N 2 -n 8 b", (2, 4, 0)),
        ("cmd: srun -n 2 a & srun -n 3 b & wait", (1, 5, 0)),
        ("cmd: srun -n 2 a & srun -n 3 b & wait\nnodes: 2", (2, 3, 0)),
        ("cmd: srun -N 1 -n 2 a & srun -N 1 -n 3 b & wait\nnodes: 2", (2, 3, 0)),
        ("cmd: for i in 1 2 3; do srun -n 2 a & done; wait", (1, 6, 0)),
    ],
)
def test_a_step_with_a_launcher(run: str, found: tuple[int, int, int]):
    """Keys, options written by hand, several launches: the most that they take at a time."""
    assert size(run) == found
    assert demand(run).launcher == (not run.startswith("cmd: |"))


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("cmd: $(LAUNCHER) a\nnodes: 2\nprocs: 8", True),
        ("cmd: $(LAUNCHER) a\nprocs: 8", False),
        ("cmd: $(LAUNCHER) a\nprocs: 8\nslurm: -N 1", True),
        ("cmd: $(LAUNCHER) -N 1 a\nprocs: 8", True),
        ("cmd: $(LAUNCHER)[2n, 4p] a", True),
        ("cmd: $(LAUNCHER)[4p] a\nnodes: 1", False),
        ("cmd: $(VLAUNCHER) a", True),
        ("cmd: srun -n 8 a\nnodes: 2", False),
        ("cmd: srun -N 2 -n 8 a", True),
        ("cmd: srun -N 2 -n 8 a; srun -n 8 b", False),
        ("cmd: $(LAUNCHER) a; srun -n 8 b\nprocs: 8\nslurm: -N 1", False),
        ("cmd: a", False),
    ],
)
def test_who_says_the_nodes(run: str, said: bool):
    """A flag of each launch, which Merlin writes itself where a step has the key."""
    assert demand(run).says_nodes is said


@pytest.mark.parametrize(
    ("type", "run", "found"),
    [
        ("slurm", "slurm: --gpus-per-task=1", (2, 4, 4)),
        ("slurm", "slurm: --gres=gpu:3 -c 2", (2, 8, 3)),
        ("slurm", "slurm: -n 4\ngpus: 4", (2, 2, 2)),
        ("slurm", "slurm: --gpus-per-node=1\ngpus: 4", (2, 4, 1)),
        ("slurm", "slurm: --gres=gpu:3\ngpus per task: 1", (2, 4, 3)),
        ("flux", "flux: --cores=6\ncores per task: 4", (2, 3, 0)),
        ("lsf-srun", "slurm: --gpus-per-task=1", (2, 4, 4)),
        ("slurm", "flux: -g 1", (2, 4, 0)),
        ("flux", "flux: -g 1 -c 2", (2, 8, 4)),
        ("flux", "slurm: --gpus-per-task=1", (2, 4, 0)),
        ("slurm", "flux: -g 1\nbatch: {type: flux}", (2, 4, 4)),
        ("lsf", "lsf: -r 2 -n 4 -c 10 -g 1", (2, 20, 2)),
        ("lsf", "lsf: -g 4", (2, 4, 4)),
        ("local", "slurm: --gpus-per-task=1", (2, 4, 0)),
    ],
)
def test_raw_flags(type: str, run: str, found: tuple[int, int, int]):
    """They beat keys, and only those of the launcher that the step really has count."""
    assert size(f"cmd: $(LAUNCHER) a\nnodes: 2\nprocs: 8\n{run}", type) == found


def test_memory_of_raw_flags():
    """Memory can be said in raw flags only."""
    assert demand("cmd: $(LAUNCHER) a\nprocs: 4\nslurm: --mem-per-cpu=2G").memory_mib == 8192


@pytest.mark.parametrize(
    ("run", "found"),
    [
        ("cmd: |\n  MERLIN_NODES=2\n  MERLIN_PROCS=8\n  $(VLAUNCHER) a", (2, 4, 0)),
        ("cmd: |\n  export MERLIN_PROCS=8\n  MERLIN_CORES=2\n  $(VLAUNCHER) a", (1, 16, 0)),
        ("cmd: |\n  MERLIN_GPUS=4\n  $(VLAUNCHER) a\nprocs: 2", (1, 2, 4)),
        ("cmd: $(VLAUNCHER) a\nnodes: 2\nprocs: 8\ncores per task: 2", (2, 8, 0)),
        (
            "cmd: |\n  MERLIN_PROCS=2\n  $(VLAUNCHER) a\n  MERLIN_PROCS=8\n  $(VLAUNCHER) b",
            (1, 8, 0),
        ),
        ("cmd: |\n  # MERLIN_PROCS=8\n  $(VLAUNCHER) a", (1, 1, 0)),
        ("cmd: |\n  MERLIN_PROCS=$(P)\n  $(VLAUNCHER) a", (1, 8, 0)),
    ],
)
def test_vlauncher(run: str, found: tuple[int, int, int]):
    """Its numbers are those of the shell's variables where it stands, else of the step's keys."""
    assert size(run, "flux", ROWS) == found


@pytest.mark.parametrize(
    ("run", "found"),
    [
        ("cmd: $(LAUNCHER) a\nprocs: $(P)", (1, 8, 0)),
        ("cmd: $(LAUNCHER) a\nnodes: $(N)\nprocs: $(N)", (2, 1, 0)),
        ("cmd: srun -n $(P) a", (1, 8, 0)),
        ("cmd: X=$(P); srun -n $X a", (1, 8, 0)),
        ("cmd: $(LAUNCHER)[$(N)n, $(N)p] a\nnodes: 2\nprocs: 2", (2, 1, 0)),
        ("cmd: $(LAUNCHER) a\nprocs: 1\nslurm: -c $(P)", (1, 8, 0)),
        ("cmd: a\ncores: $(P)\ngpus: $(N)", (1, 8, 2)),
    ],
)
def test_the_most_over_the_parameters(run: str, found: tuple[int, int, int]):
    """A number may be a global parameter: the row that takes most counts."""
    assert size(run, more=ROWS) == found


def test_rows_are_looked_at_whole():
    """Not the most nodes with the most tasks: each row is a shape, and the largest counts."""
    rows = (
        "global.parameters: {N: {values: [1, 4], label: N.%%}, P: {values: [4, 16], label: P.%%}}"
    )
    run = "cmd: $(LAUNCHER) a\nnodes: $(N)\nprocs: $(P)"
    assert (size(run, more=rows), study(run, more=rows).notes) == ((4, 4, 0), ())
    assert size(run, more=ROWS) == (2, 8, 0)
    assert [line(each) for each in study(run, more=ROWS).notes] == [
        "8: study.0.run.cmd: no row of the parameters takes the most of everything in step 's':"
        " it is sized by the most of each"
    ]


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ("cmd: srun -n $X a", "it has srun -n $X: no number that can be read"),
        ("cmd: srun -n $(nproc) a", "it has srun -n $(nproc): no number that can be read"),
        ("cmd: 'srun -n 1 a : -n 2 b'", "it has srun with several programs, and ':' between them"),
        ("cmd: flux submit -n 4 a", "it submits jobs that nobody waits for"),
        ("cmd: ls | xargs -P 4 srun -n 1 a", "it starts launches by xargs"),
        ("cmd: while x; do srun -n 1 a & done", "it starts launches in the background of a loop"),
        ("cmd: $(LAUNCHER)[2n] a\nprocs: 2", "it has $(LAUNCHER)[2n] is none of the forms"),
        (
            "cmd: |\n  MERLIN_NODES=$X\n  $(VLAUNCHER) a",
            "it uses $(VLAUNCHER), and MERLIN_NODES=$X",
        ),
        ("cmd: $(LAUNCHER) a\nprocs: 2\nslurm: -c $X", "its raw flags can't be read: -c $X"),
        ("cmd: $(LAUNCHER) a\nprocs: 2\nslurm: word", "its raw flags can't be read: word"),
        ("cmd: system('srun a')\nshell: /usr/bin/env python3", "it starts a launcher out of"),
    ],
)
def test_a_step_that_cannot_be_read(run: str, told: str):
    """It is named, with why, and has no size: nobody guesses."""
    spec = study(run)
    assert spec.steps[0].demand is None
    (note,) = [each for each in spec.notes if "is not sized" in each.message]
    assert note.message.startswith(f"step 's' is not sized: {told}")
    assert note.line >= 7
    assert "--nodes" in note.hint


def test_sizes_that_are_different_for_each_sample():
    """They can't be known before the samples are."""
    samples = "merlin: {samples: {column_labels: [X], file: f.npy}}"
    found = step("cmd: $(LAUNCHER) a\nprocs: $(X)", more=samples)
    assert (found.demand, found.samples) == (None, False)


def test_a_launcher_in_another_language():
    """Maestro replaces ``$(LAUNCHER)`` as text, wherever it stands."""
    assert size("cmd: system('$(LAUNCHER) a')\nshell: /usr/bin/env python3\nprocs: 4") == (1, 4, 0)


def test_without_a_launcher():
    """A step runs inside its worker: a core, or its own totals; what has no effect is told."""
    run = "cmd: a\nnodes: 2\nprocs: 8\ncores per task: 2\ngpus per task: 1"
    found = demand(run)
    assert (found.nodes, found.cores, found.gpus, found.launcher) == (1, 1, 0, False)
    assert [note.partition(" has no effect")[0] for note in notes(study(run))] == [
        "9: study.0.run.nodes: nodes",
        "10: study.0.run.procs: procs",
        "11: study.0.run.cores per task: cores per task",
    ]
    assert size("cmd: a\ncores: 4\ngpus: 1") == (1, 4, 1)
    assert notes(study("cmd: a\nnodes: 1\nprocs: 1")) == []


@pytest.mark.parametrize(
    "keys",
    ["cores: 4\ncores per task: 2", "gpus: 4\ngpus per task: 2", "cores: 4\ncores per task: 1"],
)
def test_a_size_that_is_said_twice(keys: str):
    """Of the whole step and of each task: which of them counts is not guessed."""
    with pytest.raises(LaunchError, match="say one of them"):
        study(f"cmd: $(LAUNCHER) a\nprocs: 2\n{keys}")


def test_a_demand_says_how_it_came_about():
    """The sentence names the keys and what they make."""
    found = demand("cmd: $(LAUNCHER) a\nnodes: 2\nprocs: 8\ngpus: 2")
    assert found.why == "nodes 2, procs 8, gpus 2: 4 cores and 1 GPU a node, on 2 nodes"
    assert (found.line, found.written_nodes) == (5, 2)
    assert demand("cmd: a").why == "no launcher: it runs inside its worker"
    assert demand("cmd: $(LAUNCHER) a\nprocs: 8").written_nodes == 0
    assert demand("cmd: srun -N 2 a").written_nodes == 2
    assert demand("cmd: $(LAUNCHER) a\nprocs: 8\nslurm: -N 2").written_nodes == 2
    assert demand("cmd: a\nnodes: 3").written_nodes == 3


@pytest.mark.parametrize(
    ("type", "run", "told", "hint"),
    [
        (
            "slurm",
            "cores: 8",
            "8: study.0.run.cmd: $(LAUNCHER) needs procs: Merlin leaves it as it is",
            "add procs",
        ),
        (
            "slurm",
            "nodes: 2",
            "9: study.0.run.nodes: $(LAUNCHER) needs procs, or s fails",
            "add procs: 2",
        ),
        ("slurm", "nodes: 2\ncores: 8", "9: study.0.run.nodes:", "add procs: 8"),
        ("slurm", "nodes: 4\ncores: 2", "9: study.0.run.nodes:", "add procs: 4"),
        (
            "flux",
            "nodes: 2\ncores: 8\ngpus per task: 1",
            "9: study.0.run.nodes:",
            "add procs: 2",
        ),
        ("slurm", "procs: 2\ngpus: 4", "10: study.0.run.gpus: Merlin drops 'gpus'", "=2"),
        (
            "flux",
            "procs: 2\ngpus: 4",
            "10: study.0.run.gpus: Merlin drops 'gpus'",
            "gpus per task: 2",
        ),
        (
            "slurm",
            "procs: 2\ngpus per task: 1",
            "10: study.0.run.gpus per task: Merlin drops",
            "=1",
        ),
        ("slurm", "procs: 2\ncores: 4", "10: study.0.run.cores: Merlin drops 'cores'", "procs"),
        ("slurm", "procs: 2\nqos: high", "10: study.0.run.qos: Merlin drops 'qos' of a step", ""),
        ("slurm", "procs: 2\nflux: -g 1", "10: study.0.run.flux: flux has no effect", "slurm: ..."),
        (
            "lsf",
            "procs: 2\ngpus per task: 1",
            "10: study.0.run.gpus per task: Merlin's jsrun",
            "lsf",
        ),
        ("local", "procs: 2", "8: study.0.run.cmd: Merlin puts nothing in place of", "slurm"),
        ("slurm", "procs: 2\nprocz: 1", "10: study.0.run.procz: 'procz' is no key", "'procs'"),
        ("slurm", "nodes: 2\nprocs: 3", "10: study.0.run.procs: the tasks of step 's' do not", ""),
        ("slurm", "nodes: '2'\nprocs: 2", "9: study.0.run.nodes: Merlin refuses a number in", "2"),
    ],
)
def test_what_merlin_does_otherwise(type: str, run: str, told: str, hint: str):
    """Each way in which Merlin runs something else than is said is a warning, with its line."""
    (note,) = study(f"cmd: $(LAUNCHER) a\n{run}", type).notes[:1]
    assert line(note).startswith(told)
    assert hint in note.hint


def test_brackets_that_add_up_to_more_than_the_step_has():
    """Maestro refuses the step then."""
    run = "cmd: $(LAUNCHER)[2n,2p] a; $(LAUNCHER)[2n,2p] b\nnodes: 3\nprocs: 4"
    (note,) = study(run).notes
    assert (note.path[-1], "add up to 4 nodes" in note.message) == ("nodes", True)
    assert hints([note]) == ["write nodes: 4"]


@pytest.mark.parametrize(
    ("type", "hint"),
    [
        ("flux", "write gpus per task: (GPUs of a task)"),
        ("slurm", "write slurm: --gpus-per-task=(GPUs of a task)"),
    ],
)
def test_gpus_of_vlauncher_are_dropped(type: str, hint: str):
    """Merlin replaces $(VLAUNCHER) without them, for each of its schedulers."""
    (note,) = study("cmd: MERLIN_GPUS=4; $(VLAUNCHER) a", type).notes
    assert ("Merlin drops MERLIN_GPUS" in note.message, note.hint) == (True, hint)
    assert study("cmd: MERLIN_GPUS=0; $(VLAUNCHER) a", type).notes == ()
    assert study("cmd: MERLIN_GPUS=4; srun -n 1 a", type).notes == ()


@pytest.mark.parametrize(
    ("run", "whole"),
    [
        ("cmd: $(LAUNCHER) a\nnodes: 2\nprocs: 2\nflux: --exclusive", True),
        ("cmd: MERLIN_NODES=2; $(VLAUNCHER) a\nflux: -x", True),
        ("cmd: $(LAUNCHER) -x a\nnodes: 2\nprocs: 2", True),
        ("cmd: flux run -x -N 2 -n 2 a", True),
        ("cmd: flux run -N 2 a", True),
        ("cmd: flux run -N 2 -n 2 a", False),
        ("cmd: flux run -N 2 -n 2 a\nflux: -x", False),
        ("cmd: srun --exclusive -N 2 -n 2 a\nflux: -x", False),
        ("cmd: a\nnodes: 2\nflux: -x", False),
    ],
)
def test_whole_nodes(run: str, whole: bool):
    """A task that flux gives whole nodes is told from one that leaves room for others."""
    found = demand(run, "flux")
    assert (found.whole, "takes the whole" in found.why) == (whole, whole)
    assert found.written_nodes == 2


def test_a_launcher_that_is_handed_on():
    """What another program starts with it can't be seen."""
    (note,) = study("cmd: python run.py --launcher srun -n 8").notes
    assert "hands a launcher to python" in note.message
    assert study("cmd: which srun; module load mpirun; command -v srun; echo srun").notes == ()


def test_a_launcher_without_a_number():
    """It takes what its job has, which the spec doesn't say."""
    (note,) = study("cmd: mpirun a").notes
    assert "mpirun without a number of tasks" in note.message
