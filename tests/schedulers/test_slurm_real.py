"""Slurm itself: what it makes of our directives, and of our commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_cluster import SlurmCluster
from slurm_workers import wait_until
from taskgraph_workers import schedulers
from taskgraph_workers.schedulers.base import Answer, Command, Job, SchedulerError
from taskgraph_workers.schedulers.run import run
from taskgraph_workers.schedulers.slurm import SCHEDULER as SLURM

pytestmark = pytest.mark.service

#: Texts that other programs' generators let through.
HOSTILE = [
    "my workers",
    "a --nodes=6",
    "a#b",
    "$HOME `id` $(id)",
    'say "x"',
    'it\'s "x"',
    "a\\b\\",
    "résumé 日本",
    "-N6",
    "a;touch X",
    "",
]
ASKED = Job(nodes=2, queue="pbatch", walltime_s=600, gpus=2)

Ask = Callable[[Command], Answer]


@pytest.fixture
def ask(slurm: SlurmCluster) -> Ask:
    """What answers a command: the real thing, as our own code runs it."""
    return lambda command: run(command, environ=slurm.env)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Job], str]:
    """What writes a script that does nothing, with a header; its path."""

    def write(job: Job) -> str:
        script = tmp_path / "a script.sbatch"
        job = job._replace(output=f"{tmp_path}/out")
        script.write_text("\n".join(["#!/bin/bash", *SLURM.header(job), "true", ""]))
        return str(script)

    return write


def shown(slurm: SlurmCluster, job: Job, tmp_path: Path) -> dict[str, str]:
    """What Slurm has understood of a job, which is held so that it never runs."""
    script = "\n".join(["#!/bin/bash", *SLURM.header(job), "true", ""])
    number = slurm.submit(script, "--hold", cwd=tmp_path)
    lines = slurm.ask("scontrol", "show", "job", number).splitlines()
    said = dict(line.strip().partition("=")[::2] for line in lines)
    said["JobName"] = lines[0].partition("JobName=")[2]
    return said


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names(text: str, slurm: SlurmCluster, tmp_path: Path):
    """A name is a name, whatever is in it: it is not cut, and makes no option or command."""
    said = shown(slurm, ASKED._replace(name=text), tmp_path)
    assert said["JobName"] == text
    assert said["NumNodes"].startswith("2-2 ")


@pytest.mark.parametrize("text", [text for text in HOSTILE if text and "\\" not in text])
def test_hostile_paths(text: str, slurm: SlurmCluster, tmp_path: Path):
    """An output path is the path that was said, with the job's id where it belongs."""
    said = shown(slurm, ASKED._replace(output=f"{text}-{{id}}.out"), tmp_path)
    number = slurm.ask("squeue", "-h", "-o", "%A").split()[0]
    assert said["StdOut"] == f"{tmp_path}/{text}-{number}.out"
    assert said["NumNodes"].startswith("2-2 ")


@pytest.mark.parametrize("text", [text for text in HOSTILE if text])
def test_hostile_queues(text: str, write: Callable[[Job], str], ask: Ask):
    """A queue that isn't there is refused as one value, both in a test and at submission."""
    script = write(ASKED._replace(queue=text))
    for command in (SLURM.test(script, ""), SLURM.submit(script, "")):
        assert command is not None
        answer = ask(command)
        assert f"invalid partition specified: {text}\n" in answer.stderr
        with pytest.raises(SchedulerError, match="invalid partition"):
            SLURM.submitted(answer)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_banks(text: str, slurm: SlurmCluster, tmp_path: Path):
    """A bank is one value as well; Slurm writes it in small letters."""
    said = shown(slurm, ASKED._replace(bank=text), tmp_path)
    number = slurm.ask("squeue", "-h", "-o", "%A")
    assert slurm.ask("squeue", "-h", "-j", number, "-o", "%a") == text.lower()
    assert said["NumNodes"].startswith("2-2 ")


def test_a_whole_header(slurm: SlurmCluster, tmp_path: Path):
    """Every field reaches Slurm as it was meant."""
    job = ASKED._replace(cores=8, memory_mib=3000, bank="wbronze", walltime_s=3601, requeue=True)
    extra = ("#SBATCH --comment='of study 7'",)
    said = shown(slurm, job._replace(directives=extra), tmp_path)
    assert said["TresPerNode"] == "gres:gpu:2"
    assert said["MinCPUsNode"].startswith("8 MinMemoryNode=3000M ")
    assert said["Comment"].strip() == "of study 7"
    assert said["OverSubscribe"].startswith("NO")
    assert "TimeLimit=01:01:00" in said["RunTime"]
    assert said["Requeue"].startswith("1 ")


@pytest.mark.parametrize(
    ("job", "accepted"),
    [
        (ASKED, True),
        (ASKED._replace(nodes=9), False),
        (ASKED._replace(gpus=5), False),
        (ASKED._replace(cores=9), False),
        (ASKED._replace(memory_mib=4001), False),
        (ASKED._replace(cores=36, queue="pbig"), True),
    ],
)
def test_asking_first(job: Job, accepted: bool, write: Callable[[Job], str], ask: Ask):
    """What fits on no node is refused before anything is submitted."""
    command = SLURM.test(write(job), "")
    assert command is not None
    answer = ask(command)
    assert (answer.exit_code == 0) == accepted, answer.stderr


def test_the_environment_decides_nothing(slurm: SlurmCluster, write: Callable[[Job], str]):
    """Variables of the user's that beat directives, such as SBATCH_PARTITION, don't."""
    environ = {**slurm.env, "SBATCH_PARTITION": "nosuch"}
    command = SLURM.submit(write(ASKED), "")
    assert SLURM.submitted(run(command, environ=environ))
    assert "invalid partition" in run(command._replace(without=()), environ=environ).stderr


def test_a_life(slurm: SlurmCluster, tmp_path: Path, ask: Ask):
    """A job is submitted, found by its name, watched, and ended."""
    job = ASKED._replace(name="the, job | x", output=f"{tmp_path}/out")
    script = tmp_path / "job.sbatch"
    body = "trap 'echo warm >> said; exit 0' USR1; sleep 600 & echo up > said; wait"
    lines = ["#!/bin/bash", *SLURM.header(job), f"cd '{tmp_path}'", body, ""]
    script.write_text("\n".join(lines))
    number = SLURM.submitted(ask(SLURM.submit(str(script), "")))
    other = SLURM.submitted(ask(SLURM.submit(str(script), "")))
    assert set(SLURM.found(job.name, ask(SLURM.find(job.name)))) == {number, other}
    assert SLURM.found("the", ask(SLURM.find("the"))) == ()
    slurm.wait_for(number, "RUNNING")
    state = SLURM.state(number, ask(SLURM.poll(number)))
    assert (state.phase, state.nodes) == ("running", "node[1-2]")
    wait_until((tmp_path / "said").exists)
    end = SLURM.end(number)
    assert end is not None
    ask(end)
    slurm.wait_for(number)
    assert SLURM.state(number, ask(SLURM.poll(number))).succeeded is True
    assert (tmp_path / "said").read_text().endswith("warm\n")
    ask(SLURM.cancel(other))
    slurm.wait_for(other)
    state = SLURM.state(other, ask(SLURM.poll(other)))
    assert (state.phase, state.reason, state.succeeded) == ("ended", "CANCELLED", False)
    assert SLURM.state("4000000", ask(SLURM.poll("4000000"))).phase == "unknown"


def test_nobody_answers(slurm: SlurmCluster, tmp_path: Path):
    """Where there is no controller, no job is taken for gone."""
    environ = {**slurm.env, "SLURM_CONF": str(tmp_path / "none.conf")}
    with pytest.raises(SchedulerError, match="can't be asked"):
        SLURM.state("1", run(SLURM.poll("1"), 2, environ))
    look = SLURM.look()
    assert look is not None
    assert SLURM.kinds(run(look, 2, environ)) == ()


def test_what_there_is(ask: Ask):
    """Partitions and their nodes, as they are."""
    look = SLURM.look()
    assert look is not None
    kinds = {kind.queue: kind for kind in SLURM.kinds(ask(look))}
    debug = kinds["pdebug"]
    assert (debug.nodes, debug.cores, debug.gpus, debug.memory_mib) == (6, 8, 4, 4000)
    assert (debug.limit_s, debug.default) == (3600, True)
    assert (kinds["pbig"].cores, kinds["pbig"].limit_s, kinds["pbig"].default) == (36, None, False)


def test_this_machine_has_it(slurm: SlurmCluster):
    """A machine with a Slurm has Slurm, also where Debian's qsub for Slurm is installed."""
    assert schedulers.native(slurm.env) == "slurm"
