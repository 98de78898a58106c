"""Slurm's directives, commands and answers, without a Slurm; see test_slurm_real.py."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needs import needs
from scheduler_texts import TEXTS, sbatch_reads
from taskgraph_workers.schedulers.base import Answer, Job, Kind, SchedulerError, Start, State
from taskgraph_workers.schedulers.slurm import MOST_S
from taskgraph_workers.schedulers.slurm import SCHEDULER as SLURM

FULL = Job(
    name="my workers",
    nodes=2,
    output="out/w {id}.txt",
    queue="pdebug",
    bank="wbronze",
    walltime_s=1201,
    cores=8,
    gpus=4,
    memory_mib=4000,
    reservation="maintenance",
    qos="high",
    constraint="v100|a100",
    requeue=True,
    directives=("#SBATCH --comment='of study 7'",),
)


def options(lines: list[str]) -> dict[str, str]:
    """What sbatch would read: each option and its value; the last one of a name counts."""
    read = {}
    for line in lines:
        assert line.startswith("#SBATCH ")
        for word in sbatch_reads(line[len("#SBATCH ") :]):
            name, _, value = word.partition("=")
            assert name.startswith("--")
            read[name[2:]] = value
    return read


@pytest.mark.parametrize(
    ("output", "files"),
    [
        ("w-{id}.out", ("w-41.out",)),
        ("%x/%j.100%%", ("sim/41.100%",)),
        ("%u-%j.out", ()),
        ("%4j.out", ()),
        (None, ()),
    ],
)
def test_output_files(output: str | None, files: tuple[str, ...]):
    """Id and job name are put in; a name with more in it is not known from here."""
    assert SLURM.output_files(Job("sim", output=output), "41") == files


def test_header():
    """A header with all there is: one option a line, values in quotes where need be."""
    assert SLURM.header(FULL) == [
        '#SBATCH --job-name="my workers"',
        "#SBATCH --nodes=2",
        "#SBATCH --exclusive",
        "#SBATCH --mincpus=8",
        "#SBATCH --gres=gpu:4",
        "#SBATCH --mem=4000M",
        "#SBATCH --time=0-00:21:00",
        "#SBATCH --partition=pdebug",
        "#SBATCH --account=wbronze",
        "#SBATCH --qos=high",
        '#SBATCH --constraint="v100|a100"',
        "#SBATCH --reservation=maintenance",
        '#SBATCH --output="out/w %j.txt"',
        "#SBATCH --requeue --open-mode=append",
        "#SBATCH --comment='of study 7'",
    ]


def test_a_short_header():
    """What is not said is left to Slurm; without a time Slurm warns the script of its own limit."""
    assert SLURM.header(Job(exclusive=False)) == [
        "#SBATCH --job-name=workers",
        "#SBATCH --nodes=1",
        "#SBATCH --signal=B:USR1@180",
    ]


@given(st.lists(TEXTS, min_size=7, max_size=7))
def test_rendered_and_read_again(texts: list[str]):
    """Whatever names and paths hold, reading the header gives them back, and nothing else."""
    name, output, *rest = texts
    output = output.replace("\\", "/")
    fields = dict(zip(("queue", "bank", "reservation", "qos", "constraint"), rest))
    read = options(SLURM.header(Job(name=name, output=output, walltime_s=60, **fields)))
    assert read == {
        "job-name": name,
        "nodes": "1",
        "exclusive": "",
        "time": "0-00:01:00",
        "partition": fields["queue"],
        "account": fields["bank"],
        "reservation": fields["reservation"],
        "qos": fields["qos"],
        "constraint": fields["constraint"],
        "output": output,
    }


@given(st.integers(1, MOST_S))
def test_times_round_up(walltime_s: int):
    """A job never gets less time than it asks for, nor a minute more."""
    days, clock = options(SLURM.header(Job(walltime_s=walltime_s)))["time"].split("-")
    hours, minutes, seconds = map(int, clock.split(":"))
    given_s = ((int(days) * 24 + hours) * 60 + minutes) * 60 + seconds
    assert walltime_s <= given_s < walltime_s + 60
    assert hours < 24
    assert minutes < 60


def test_every_fault_of_a_header():
    """All that can't be said comes at once."""
    bad = FULL._replace(name="a\nb", output="a\\b", walltime_s=MOST_S + 1, directives=("rm x",))
    with pytest.raises(SchedulerError) as caught:
        SLURM.header(bad)
    said = [problem.message.split(":")[0] for problem in caught.value.problems]
    assert said == ["job name", "walltime", "output", "directive"]


FREE = Start("step_1", (2, 2, 1), "exec celery -n $WORKER_NAME")
HOLD = Start("train ers", (4,), "exec work", holds=True, cores=8, gpus=1)


@pytest.mark.parametrize(
    ("group", "line"),
    [
        (FREE, "tw_start_group step_1 on=2x2,1x1 gres=none 'exec celery -n $WORKER_NAME'"),
        (FREE._replace(task_gpus=4), "tw_start_group step_1 on=2x2,1x1 gres=gpu:4 'exec celery "),
        (FREE._replace(task_gpus=None), "tw_start_group step_1 on=2x2,1x1 'exec celery "),
        (HOLD, "tw_start_group 'train ers' on=4x1 cores=8 gpus=1 'exec work'"),
        (HOLD._replace(gpus=0, memory_mib=512), "on=4x1 cores=8 gpus=0 memory=512 'exec work'"),
        (HOLD._replace(per_node=(0, 0, 1, 0, 2, 2)), " on=0x2,1x1,0x1,2x2 cores=8 gpus=1 "),
    ],
)
def test_groups(group: Start, line: str):
    """A group is one line, which an administrator can read."""
    assert line in SLURM.start(group)


@pytest.mark.parametrize("group", [FREE._replace(command="a\nb"), HOLD._replace(name="a\0")])
def test_groups_that_are_no_line(group: Start):
    """What would be more than one line is refused."""
    with pytest.raises(ValueError, match="in it"):
        SLURM.start(group)


def bash(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [needs("bash"), "-c", program], capture_output=True, text=True, check=False
    )


def test_the_shell_is_sound():
    """Bash takes the functions, and they define what a script needs, also under ``set -eu``."""
    needed = ("tw_job_id", "tw_restarts", "tw_requeue_job", "tw_start_group", "tw_end_workers")
    job = "set -eu; export SLURM_JOB_ID=7 SLURM_JOB_NODELIST=node1; scontrol() { echo node1; }\n"
    run = bash(f"{job}{SLURM.shell}\ndeclare -F {' '.join(needed)}")
    assert (run.stdout.split(), run.stderr) == (list(needed), "")


@pytest.mark.parametrize(
    ("on", "nodes", "counts", "planned"),
    [
        ("2x3,0x1,1x1", 5, "2 2 2 0 1", True),
        ("0x2,3x1", 3, "0 0 3", True),
        ("2x3,1x1", 3, "3 2 2", False),
        ("2x3,1x1", 8, "1 1 1 1 1 1 1 0", False),
        ("1x1", 2, "1 0", False),
    ],
)
def test_dealing(on: str, nodes: int, counts: str, planned: bool):
    """Workers go where they were planned; on another number of nodes they are dealt in turn."""
    job = "set -e; SLURM_JOB_ID=7 SLURM_JOB_NODELIST=x; scontrol() { seq $NODES; }\n"
    shown = '\ntw_deal "$ON"; echo "${tw_counts[@]}"'
    run = bash(f"NODES={nodes} ON={on}\n{job}{SLURM.shell}{shown}")
    assert run.stdout.strip() == counts
    assert ("dealing" not in run.stderr) == planned


def test_outside_of_slurm():
    """A script that somebody starts without Slurm says so, and starts nothing."""
    run = bash(f"unset SLURM_JOB_ID\n{SLURM.shell}\necho went on")
    assert "has to be submitted, with sbatch" in run.stderr
    assert run.returncode != 0
    assert run.stdout == ""


def test_submitting_ignores_the_environment():
    """SBATCH_* variables would beat the script's own directives, so sbatch never sees them."""
    for command in (SLURM.submit("/a b/x.sbatch", ""), SLURM.test("/a b/x.sbatch", "")):
        assert command is not None
        assert command.argv[-1] == "/a b/x.sbatch"
        assert command.without == ("SBATCH_",)


@pytest.mark.parametrize("stdout", ["4711\n", "4711;lab\n", "sbatch: lua: hello\n4711\n"])
def test_submitted(stdout: str):
    """The id is on a line of its own, with a cluster's name where there are several."""
    assert SLURM.submitted(Answer(0, stdout)) == "4711"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            Answer(1, "", "sbatch: error: invalid partition specified: nosuch\n"),
            "invalid partition specified: nosuch",
        ),
        (Answer(None, "", "no answer within 30 s"), "no answer within 30 s"),
        (Answer(0, "", ""), "said nothing"),
        (Answer(1, "12\n", ""), "12"),
    ],
)
def test_not_submitted(answer: Answer, why: str):
    """Whatever else Slurm says is an error with its own words."""
    with pytest.raises(SchedulerError, match=why):
        SLURM.submitted(answer)


@pytest.mark.parametrize(
    ("row", "state"),
    [
        ("25|RUNNING|None|node[2-3]", State("running", "", "node[2-3]")),
        ("25|COMPLETING|None|node1", State("running", "", "node1")),
        ("25|PENDING|PartitionNodeLimit|", State("pending", "PartitionNodeLimit")),
        ("25|PENDING|BeginTime|", State("pending", "BeginTime")),
        ("25|CANCELLED|None|node[2-3]", State("ended", "CANCELLED", "node[2-3]", False)),
        ("25|TIMEOUT|TimeLimit|node1", State("ended", "TIMEOUT", "node1", False)),
        ("25|COMPLETED|None|node1", State("ended", "COMPLETED", "node1", True)),
        ("25|CANCELLED by 0|None|(null)", State("ended", "CANCELLED", "", False)),
        ("25|SOMETHING_NEW|None|node1", State("running", "", "node1")),
    ],
)
def test_states(row: str, state: State):
    """What squeue says of a job, as recorded; other jobs don't matter."""
    answer = Answer(0, f"2|RUNNING|None|node9\n{row}\n")
    assert SLURM.state("25", answer) == state


@pytest.mark.parametrize(
    "answer",
    [
        Answer(1, "", "slurm_load_jobs error: Invalid job id specified\n"),
        Answer(0, ""),
        Answer(0, "125|RUNNING|None|node1\n"),
    ],
)
def test_a_job_that_nobody_knows(answer: Answer):
    """A job that Slurm doesn't know, or doesn't know any more, is unknown."""
    assert SLURM.state("25", answer) == State("unknown")


@pytest.mark.parametrize(
    "answer",
    [
        Answer(1, "", "slurm_load_jobs error: Unable to contact slurm controller\n"),
        Answer(None, "", "no answer within 30 s"),
    ],
)
def test_nobody_to_ask(answer: Answer):
    """Where Slurm doesn't answer a job is not taken for gone, nor for not submitted."""
    with pytest.raises(SchedulerError, match="can't be asked for job 25"):
        SLURM.state("25", answer)
    with pytest.raises(SchedulerError, match="can't be asked for jobs"):
        SLURM.found("x", answer)


def test_found_by_name():
    """Jobs of the very name, whatever is in it, and no others."""
    answer = Answer(0, "7|a\n8|a,b|c d\n9|b|c d\n10|a,b|c d\n")
    assert SLURM.found("a,b|c d", answer) == ("8", "10")


def test_kinds():
    """Nodes in several states are one kind; sorts of GPUs are added up; threads are no cores."""
    said = """\
pdebug*|2|8|4000|gpu:4|1:00:00|1|8
pdebug*|4|8|4000|gpu:4|1:00:00|1|8
pbatch|6|8|4000|gpu:4|infinite|1|8
gpu|3|128|515000|gpu:a100:2(S:0-1),gpu:v100:4(S:0),nvme:1|1-12:00:00|2|32
cpu|100|256|1|(null)|30:00|2|64
counted|5|64|1|(null)|30:00|2|32
old|1|16+|64000+|mygpu:2|n/a
"""
    assert SLURM.kinds(Answer(0, said)) == (
        Kind("pdebug", 6, 8, 4, 4000, 3600, default=True),
        Kind("pbatch", 6, 8, 4, 4000, None),
        Kind("gpu", 3, 64, 6, 515000, 129600),
        Kind("cpu", 100, 128, 0, 1, 1800),
        Kind("counted", 5, 64, 0, 1, 1800),
        Kind("old", 1, 16, 0, 64000, None),
    )


@pytest.mark.parametrize(
    "answer",
    [
        Answer(1, "", "slurm_load_partitions: Unable to contact slurm controller"),
        Answer(None),
        Answer(0, "no partition\n|0|0|0|(null)|infinite|1\n"),
    ],
)
def test_no_kinds(answer: Answer):
    """Where sinfo says nothing of use, nothing is known."""
    assert SLURM.kinds(answer) == ()
