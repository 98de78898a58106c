"""What bash makes of a script for Flux, with a stand-in that starts workers on this machine."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from share_scripts import COMMAND, Run, assert_ends_warmly, commands, fields, index_of, start

from taskgraph_workers.schedulers.base import Start
from taskgraph_workers.schedulers.flux import SCHEDULER

JOB = "fRWm8Fh"


def flux(folder: Path, *groups: Start, shape: str = "3 8 4", **env: str) -> Run:
    """Start these groups, in an instance of so many brokers, each with cores and GPUs."""
    state = folder / "state"
    state.mkdir()
    (state / "shape").write_text(shape)
    path = commands(folder, {"flux": "flux.py"})
    said = {"PATH": path, "FLUX_STAND_IN": str(state), "FLUX_ENCLOSING_ID": "ƒRWm8Fh", **env}
    return start(folder, SCHEDULER, groups, said)


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_shares(tmp_path: Path, locale: str):
    """Each node starts as many as it should, with names of their own; all end warmly."""
    run = flux(
        tmp_path, Start("a", (2, 2, 1), COMMAND), Start("b.c", (0, 1, 1), COMMAND), LC_ALL=locale
    )
    up = [fields(note) for note in run.until("up", 7)]
    run.stop(JOB)
    run.finish_tasks()
    code = run.end()
    groups = Counter((note["name"].split(".j")[0], note["rank"]) for note in up)
    assert groups == {("a", "0"): 2, ("a", "1"): 2, ("a", "2"): 1, ("b.c", "1"): 1, ("b.c", "2"): 1}
    node = os.uname().nodename.split(".")[0]
    assert {note["name"] for note in up} == {
        *(f"a.j{JOB}.{index}.{node}" for index in range(5)),
        *(f"b.c.j{JOB}.{index}.{node}" for index in range(2)),
    }
    assert (code, len(run.noted("down")), run.noted("killed")) == (0, 7, []), run.output
    assert run.left == [], "nodes keep nothing"


def test_only_main_processes_are_asked(tmp_path: Path):
    """A warm end reaches no task: those go on until they are done, and then the workers end."""
    run = flux(tmp_path, Start("a", (1, 1, 0), COMMAND))
    assert_ends_warmly(run)


def test_signals_of_flux(tmp_path: Path):
    """What Flux sends to the whole process group of a script doesn't end what starts workers."""
    run = flux(tmp_path, Start("a", (1, 1, 1), COMMAND))
    run.until("up", 3)
    for number in (signal.SIGALRM, signal.SIGUSR1, signal.SIGHUP):
        os.killpg(run.process.pid, number)
    run.finish_tasks()
    assert run.end() == 0, run.output
    assert (len(run.noted("down")), run.noted("killed")) == (3, [])


def test_a_worker_that_fails(tmp_path: Path):
    """It is told at once, by name; the others go on, and the script ends with its status."""
    fails = "case $WORKER_NAME in *.1.*) exit 3;; esac; exec bash worker.sh"
    run = flux(tmp_path, Start("a", (2, 1, 0), fails))
    run.until("up", 2)
    run.stop(JOB)
    run.finish_tasks()
    assert run.end() == 3
    assert f"a.j{JOB}.1 ended with status 3" in run.output
    assert len(run.noted("down")) == 2


def test_workers_that_know_no_term(tmp_path: Path):
    """A worker that dies of the TERM by which it is asked to end is no failure."""
    run = flux(tmp_path, Start("a", (1, 0, 1), 'echo "up $WORKER_NAME" >>"$LOG"; exec sleep 60'))
    run.until("up", 2)
    run.stop(JOB)
    assert run.end() == 0, run.output


def test_holders(tmp_path: Path):
    """Workers that hold have GPUs that nobody else on their node has, and end warmly too."""
    run = flux(
        tmp_path,
        Start("a", (2, 1, 0), COMMAND, holds=True, cores=3, gpus=1),
        Start("b", (1, 1, 1), COMMAND, holds=True, cores=2, gpus=2),
        Start("c", (0, 1, 0), COMMAND, holds=True),
    )
    up = [fields(note) for note in run.until("up", 7)]
    run.stop(JOB)
    run.finish_tasks()
    assert run.end() == 0, run.output
    visible = Counter((note["name"][0], note["rank"], note["cuda"].count(",") + 1) for note in up)
    assert visible[("a", "0", 1)] == 2
    assert visible[("b", "2", 2)] == 1
    for rank in "012":
        gpus = [g for x in up if x["rank"] == rank for g in x["cuda"].split(",") if g != "-1"]
        assert len(gpus) == len(set(gpus)) == {"0": 4, "1": 3, "2": 2}[rank]
    assert [note["cuda"] for note in up if note["name"].startswith("c")] == ["-1"]
    assert sorted(index_of(x["name"]) for x in up if x["name"].startswith("a")) == [0, 1, 2]
    assert (run.noted("killed"), run.left) == ([], [])


def test_holders_that_do_not_fit(tmp_path: Path):
    """Flux says no to them, and the script ends with a failure."""
    run = flux(tmp_path, Start("a", (1,), COMMAND, holds=True, gpus=5), shape="1 8 4")
    assert run.end() == 1
    assert "unsatisfiable" in run.output


def test_other_nodes_than_planned(tmp_path: Path):
    """Where the job has other nodes, all workers are dealt over them, and it says so."""
    run = flux(
        tmp_path, Start("a", (2, 2, 1), COMMAND), Start("b", (1, 0, 0), COMMAND), shape="2 8 4"
    )
    up = [fields(note) for note in run.until("up", 6)]
    run.stop(JOB)
    run.finish_tasks()
    assert run.end() == 0, run.output
    assert Counter(note["rank"] for note in up) == {"0": 3, "1": 3}
    assert "planned for 3 nodes, here are 2: 5 workers are dealt over them" in run.output


def test_brokers_that_are_alone(tmp_path: Path):
    """Where Slurm's brokers did not meet, each runs the script: none of them starts workers."""
    alone = {"SLURM_NTASKS": "2", "FLUX_STAND_IN_LEVEL": "0"}
    run = flux(tmp_path, Start("a", (1, 1), COMMAND), shape="1 8 4", **alone)
    code = run.end()
    assert (code, run.noted("up")) == (69, []), run.output
    assert "did not find one another" in run.output
