"""PBS: directives read back by the rules of its documentation, and answers as it shows them."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needs import needs
from taskgraph_workers.schedulers.base import Answer, Job, Kind, SchedulerError, State
from taskgraph_workers.schedulers.pbs import CHANGE_FOLDER
from taskgraph_workers.schedulers.pbs import SCHEDULER as PBS

FULL = Job(
    name="sim",
    nodes=3,
    output="logs/out.txt",
    queue="normal",
    bank="wbronze",
    walltime_s=90061,
    cores=36,
    gpus=4,
    memory_mib=4000,
    constraint="model=bro",
    directives=("#PBS -m n",),
)


def read(job: Job) -> list[list[str]]:
    """The words of each directive: ``#PBS``, then as on a command line, quotes and all."""
    *header, last = PBS.header(job)
    assert last == CHANGE_FOLDER
    assert all(line.startswith("#PBS ") for line in header)
    return [shlex.split(line[len("#PBS ") :]) for line in header]


def test_header():
    """Chunks are nodes of their own, with all that the job uses there."""
    assert read(FULL) == [
        ["-N", "sim"],
        ["-l", "select=3:ncpus=36:mpiprocs=1:ngpus=4:mem=4000mb:model=bro"],
        ["-l", "place=scatter:excl"],
        ["-l", "walltime=25:01:01"],
        ["-q", "normal"],
        ["-A", "wbronze"],
        ["-j", "oe"],
        ["-o", "logs/out.txt"],
        ["-m", "n"],
    ]
    assert ["-l", "place=scatter"] in read(FULL._replace(exclusive=False))


def test_nothing_said():
    """What nobody says is left to PBS."""
    assert read(Job()) == [
        ["-N", "workers"],
        ["-l", "select=1:mpiprocs=1"],
        ["-l", "place=scatter:excl"],
        ["-j", "oe"],
    ]


def test_output():
    """PBS can't put an id into a name, so it gives the name itself, in the same folder."""
    assert ["-o", "logs/"] in read(Job(output="logs/workers_{id}.out"))
    assert not any(words[0] == "-o" for words in read(Job(output="workers_{id}.out")))
    with pytest.raises(SchedulerError, match="a job's id into"):
        PBS.header(Job(output="run-{id}/out"))


def test_reservation():
    """A reservation is a queue, so there can't be both."""
    assert ["-q", "R12"] in read(Job(reservation="R12"))
    with pytest.raises(SchedulerError, match="say one of them"):
        PBS.header(Job(reservation="R12", queue="normal"))


@pytest.mark.parametrize("name", ["", "1st", "my job", "a\n#PBS -q x", "a;b", "x" * 237])
def test_names(name: str):
    """What PBS wouldn't take for a job's name is refused, with the rule."""
    with pytest.raises(SchedulerError, match="begin with a letter"):
        PBS.header(Job(name=name))


def test_what_pbs_has_not():
    """All that can't be said to PBS is told at once."""
    with pytest.raises(SchedulerError) as caught:
        PBS.header(Job(qos="high", requeue=True, constraint="a b"))
    told = [str(problem).split(":")[0] for problem in caught.value.problems]
    assert told == ["constraint", "quality of service", "requeue"]


texts = st.text(st.characters(min_codepoint=1, max_codepoint=0x2FF), min_size=1)


@given(texts, texts, texts)
def test_values_come_back(queue: str, bank: str, output: str):
    """A value is read as it was said, or refused; it never becomes another option."""
    job = Job(queue=queue, bank=bank, output=output.replace("{id}", ""))
    try:
        words = read(job)
    except SchedulerError:
        return
    assert [option[0] for option in words] == ["-N", "-l", "-l", "-q", "-A", "-j", "-o"]
    assert [words[3][1], words[4][1], words[6][1]] == [queue, bank, job.output]


@given(texts)
def test_constraints(constraint: str):
    """A constraint is more of a chunk, or refused; it never becomes another chunk or option."""
    try:
        words = read(Job(constraint=constraint))
    except SchedulerError:
        return
    assert words[1] == ["-l", f"select=1:mpiprocs=1:{constraint}"]
    assert "+" not in constraint


@pytest.mark.parametrize("value", ["a\n#PBS -q x", "a\0", 'a"b', "a$b", "a#b", "-q"])
def test_refused(value: str):
    """What could end its line, or be read as something else, is refused."""
    with pytest.raises(SchedulerError, match="bank"):
        PBS.header(Job(bank=value))


@pytest.mark.once
def test_qsub_of_slurm(tmp_path: Path):
    """The wrapper that Debian has for Slurm reads the same out of our options."""
    words = read(FULL._replace(constraint=None, directives=()))
    resources = ",".join(value for option, value in words if option == "-l")
    others = [word for option in words if option[0] != "-l" for word in option]
    argv = [needs("qsub"), "-sbatchline", "-l", resources, *others, "workers.pbs"]
    configuration = tmp_path / "slurm.conf"
    configuration.write_text("ClusterName=none\nSlurmctldHost=localhost\nNodeName=n\n")
    env = {**os.environ, "SLURM_CONF": str(configuration)}
    line = subprocess.run(argv, capture_output=True, text=True, check=True, env=env).stdout
    assert shlex.split(line)[1:] == [
        *("-o", "logs/out.txt", "-N3", "--mincpus=36", "--ntasks-per-node=1", "-t1502"),
        *("--mem=4000M", "--cpus-per-task=36", "--account=wbronze", "-J", "sim", "-p", "normal"),
        "workers.pbs",
    ]


def test_output_files():
    """A name that is given is taken; one with an id is PBS's own, without the server's name."""
    given = (Job("w", output=name) for name in ("out/a.txt", "out/a-{id}.txt", "{id}", None))
    found = [PBS.output_files(job, "123.server") for job in given]
    assert found == [("out/a.txt",), ("out/w.o123",), ("w.o123",), ()]


def test_submitted():
    """The id, with its server; what else it says is the reason why there is none."""
    assert PBS.submit("/x/workers.pbs", "").argv == ("qsub", "/x/workers.pbs")
    assert PBS.submitted(Answer(0, "1234.pbs01.example\n")) == "1234.pbs01.example"
    with pytest.raises(SchedulerError, match="Unknown queue"):
        PBS.submitted(Answer(170, "", "qsub: Unknown queue\n"))


JOB = """\
Job Id: 1234.pbs01
    Job_Name = sim
    job_state = {state}
    exec_host = node1/0*36+node2/0*3
	6
    Submit_arguments = <jsdl-hpcpa:Argument>x = y</jsdl-hpcpa:Argument>
{more}
"""


@pytest.mark.parametrize(
    ("state", "more", "expected"),
    [
        ("Q", "    comment = Not Running: too few", State("pending", "Not Running: too few")),
        ("H", "", State("pending", "H")),
        ("R", "", State("running", "R", "node1/0*36+node2/0*36")),
        (
            "F",
            "    Exit_status = 0",
            State("ended", "exit status 0", "node1/0*36+node2/0*36", True),
        ),
        ("F", "    Exit_status = 271", State("ended", "exit status 271", "*", False)),
        ("F", "    comment = deleted", State("ended", "deleted", "*", None)),
        ("Z", "", State("unknown", "Z", "*")),
    ],
)
def test_state(state: str, more: str, expected: State):
    """Every state of a job; a long value goes on in the next line."""
    said = PBS.state("1234.pbs01", Answer(0, JOB.format(state=state, more=more)))
    if expected.nodes == "*":
        expected = expected._replace(nodes=said.nodes)
    assert said == expected


def test_unknown():
    """A job that nobody knows is unknown; where nobody can be asked, that is said instead."""
    assert PBS.state("1", Answer(153, "", "qstat: Unknown Job Id 1.pbs01")) == State("unknown")
    gone = "qstat: 1.pbs01 Job has finished, use -x or -H to obtain historical job information"
    assert PBS.state("1", Answer(35, "", gone)) == State("unknown")
    with pytest.raises(SchedulerError, match="cannot connect to server"):
        PBS.state("1", Answer(1, "", "qstat: cannot connect to server pbs01"))
    with pytest.raises(SchedulerError, match="cannot connect to server"):
        PBS.found("w", Answer(1, "", "qselect: cannot connect to server pbs01"))


def test_found():
    """The ids that qselect prints, which is asked for this user's jobs of that name."""
    assert PBS.found("w", Answer(0, "12.pbs01\n14.pbs01\n")) == ("12.pbs01", "14.pbs01")
    assert PBS.find("$(id)").argv[-1] == "$(id)"


NODES = """\
node1
     Mom = node1
     state = free
     resources_available.mem = 263865068kb
     resources_available.ncpus = 36
     resources_available.ngpus = 4

node2
     Mom = node2
     state = job-busy
     resources_available.mem = 263865068kb
     resources_available.ncpus = 36
     resources_available.ngpus = 4

node3
     state = down,offline
     resources_available.ncpus = 36

login
     state = free
     queue = long
     resources_available.mem = 8gb
     resources_available.ncpus = 8
"""


def test_kinds():
    """Alike nodes are counted together; those that are down are left out."""
    assert PBS.kinds(Answer(0, NODES)) == (
        Kind("", 2, 36, 4, 257680, default=True),
        Kind("long", 1, 8, 0, 8192),
    )
    assert PBS.kinds(Answer(1, "", "pbsnodes: cannot connect")) == ()
