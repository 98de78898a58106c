"""LSF: directives read back by the rules of its documentation, and answers as it shows them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from share_scripts import commands

from taskgraph_workers.schedulers.base import Answer, Job, SchedulerError, State
from taskgraph_workers.schedulers.lsf import Lsf, here

LSF, CSM = Lsf(csm=False), Lsf(csm=True)
FULL = Job(
    name="sim",
    nodes=3,
    output="logs/workers-{id}.out",
    queue="normal",
    bank="wbronze",
    walltime_s=1201,
    cores=36,
    gpus=4,
    reservation="r1",
    constraint="mem>1000",
    requeue=True,
    directives=("#BSUB -alloc_flags smt4",),
)


def read(header: list[str]) -> list[list[str]]:
    """The words of each directive: ``#BSUB``, then as on a command line, quotes and all."""
    assert all(line.startswith("#BSUB ") for line in header)
    return [shlex.split(line[len("#BSUB ") :]) for line in header]


def test_slots():
    """Ordinary LSF is asked for slots, all of a host's; GPUs are those of each host."""
    assert read(LSF.header(FULL)) == [
        ["-J", "sim"],
        ["-n", "108"],
        ["-R", "span[ptile=36]"],
        ["-x"],
        ["-gpu", "num=4"],
        ["-W", "0:21"],
        ["-q", "normal"],
        ["-P", "wbronze"],
        ["-o", "logs/workers-%J.out"],
        ["-U", "r1"],
        ["-R", "select[mem>1000]"],
        ["-r"],
        ["-alloc_flags", "smt4"],
    ]


def test_nodes():
    """LSF with CSM is asked for nodes: all of each, and the launch node is not counted."""
    words = read(CSM.header(FULL))
    assert words[:4] == [["-J", "sim"], ["-nnodes", "3"], ["-W", "0:21"], ["-q", "normal"]]
    assert ["-G", "wbronze"] in words
    assert not any(option[0] in ("-n", "-x", "-gpu") for option in words)


def test_which_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Which of both it is hangs on whether this machine has jsrun."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert here() == LSF
    monkeypatch.setenv("PATH", commands(tmp_path, {"jsrun": "jsrun"}))
    assert here() == CSM
    assert CSM.header(Job()) != LSF.header(Job())


def test_shared_hosts():
    """A job that shares its hosts says what it takes of them, memory too."""
    words = read(LSF.header(Job(nodes=2, cores=4, exclusive=False, memory_mib=512)))
    assert words[1:] == [["-n", "8"], ["-R", "span[ptile=4]"], ["-R", "rusage[mem=512MB/host]"]]


def test_unknown_cores():
    """Where nobody knows the cores of a host, it is one slot on each, and the host is ours."""
    assert read(LSF.header(Job(nodes=2)))[1:] == [["-n", "2"], ["-R", "span[ptile=1]"], ["-x"]]


texts = st.text(st.characters(min_codepoint=1, max_codepoint=0x2FF), min_size=1)


@given(texts, texts, texts)
def test_values_come_back(name: str, queue: str, output: str):
    """A value is read as it was said, or refused; it never becomes another option."""
    try:
        header = LSF.header(Job(name=name, queue=queue, output=output))
    except SchedulerError:
        return
    words = read(header)
    assert [option[0] for option in words] == ["-J", "-n", "-R", "-x", "-q", "-o"]
    assert (words[0][1], words[4][1]) == (name, queue)
    assert words[5][1] == output.replace("{id}", "%J")


@pytest.mark.parametrize("value", ["a\n#BSUB -n 4", "a\0", 'a"b', "a$b", "a`b`", "a#b", "-n"])
def test_refused(value: str):
    """What could end its line, or be read as something else, is refused."""
    with pytest.raises(SchedulerError, match="queue"):
        LSF.header(Job(queue=value))


def test_quality_of_service():
    """LSF has none, and says what may be meant."""
    with pytest.raises(SchedulerError, match="-sla"):
        LSF.header(Job(qos="high"))


def test_output_files():
    """The id stands where it was asked for, in our way or in LSF's."""
    assert LSF.output_files(Job(output="w-{id}.%J"), "42") == ("w-42.42",)
    assert LSF.output_files(Job(), "42") == ()


def test_submit():
    """The script is given by standard input, as every LSF reads its directives."""
    command = LSF.submit("/x/workers.lsf", "text")
    assert (command.argv, command.stdin) == (("bsub",), "text")
    assert LSF.submitted(Answer(0, "Job <42> is submitted to default queue <normal>.\n")) == "42"
    refused = Answer(255, "", "normal1: No such queue. Job not submitted.\n")
    with pytest.raises(SchedulerError, match="No such queue"):
        LSF.submitted(refused)
    with pytest.raises(SchedulerError, match="exit code None"):
        LSF.submitted(Answer(None))


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("PEND|-|-", State("pending", "PEND")),
        ("RUN|36*a:36*b|-", State("running", "RUN", "36*a:36*b")),
        ("DONE|36*a|-", State("ended", "DONE", "36*a", True)),
        ("EXIT|36*a|130", State("ended", "EXIT 130", "36*a", False)),
        ("UNKWN|36*a|-", State("unknown", "UNKWN", "36*a")),
    ],
)
def test_state(said: str, state: State):
    """Every state of a job."""
    assert LSF.state("42", Answer(0, f"{said}\n")) == state


def test_unknown():
    """A job that nobody knows is unknown; where nobody can be asked, that is said instead."""
    assert LSF.state("1", Answer(255, "", "Job <1> is not found\n")) == State("unknown")
    with pytest.raises(SchedulerError, match="LIM is down"):
        LSF.state("1", Answer(255, "", "LIM is down; try later\n"))


def test_found():
    """Jobs of a name are those that have all of it; none is an answer too."""
    assert LSF.found("w", Answer(0, "12|w\n13|w2\n14|w\n")) == ("12", "14")
    assert LSF.found("w", Answer(255, "", "No unfinished job found\n")) == ()
    with pytest.raises(SchedulerError, match="LIM is down"):
        LSF.found("w", Answer(255, "", "LIM is down"))


def test_untested():
    """It says of itself that it was never tried."""
    assert not LSF.tested
