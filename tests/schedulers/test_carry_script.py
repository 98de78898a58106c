"""What bash makes of scripts for LSF and PBS, with stand-ins that start workers on this machine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from share_scripts import COMMAND, Run, assert_ends_warmly, commands, fields, index_of, start

from taskgraph_workers.schedulers.base import Start
from taskgraph_workers.schedulers.lsf import Lsf
from taskgraph_workers.schedulers.pbs import SCHEDULER as PBS

Begin = Callable[..., Run]


def lsf(folder: Path, *groups: Start, nodes: int = 3, **env: str) -> Run:
    """Start a script for ordinary LSF, on nodes 0, 1, ..., of 8 slots each."""
    path = commands(folder, {"blaunch": "blaunch"})
    hosts = " ".join(f"{node} 8" for node in range(nodes))
    said = {"LSB_JOBID": "123", "LSB_MCPU_HOSTS": hosts, "PATH": path, **env}
    return start(folder, Lsf(csm=False), groups, said)


def csm(folder: Path, *groups: Start, **env: str) -> Run:
    """Start a script for LSF with jsrun, on its launch node."""
    path = commands(folder, {"jsrun": "jsrun"})
    said = {"LSB_JOBID": "123", "LSB_MCPU_HOSTS": "launch 1 a 8 b 8", "PATH": path, **env}
    return start(folder, Lsf(csm=True), groups, said)


def pbs(folder: Path, *groups: Start, nodes: int = 3, **env: str) -> Run:
    """Start a script for PBS in the home folder, as PBS does it, on nodes 0, 1, ..."""
    path = commands(folder, {"pbsdsh": "pbsdsh"})
    (folder / "nodes").write_text("".join(f"node{node}\n" for node in range(nodes)))
    said = {
        "PBS_JOBID": "123",
        "PBS_NODEFILE": str(folder / "nodes"),
        "PBS_O_WORKDIR": str(folder),
        "PATH": path,
        **env,
    }
    return start(folder, PBS, groups, said, cwd="/")


@pytest.fixture(params=[lsf, pbs], ids=["lsf", "pbs"])
def begin(request: pytest.FixtureRequest) -> Begin:
    began: Begin = request.param
    return began


def end(run: Run) -> int:
    """The exit code of a script whose workers are asked to end, and whose tasks get done."""
    run.stop("123")
    run.finish_tasks()
    return run.end()


def test_shares(tmp_path: Path, begin: Begin):
    """Each node starts as many as it should, with names of their own; all end warmly."""
    folder = tmp_path / "a 'b' $c"
    folder.mkdir()
    run = begin(folder, Start("a", (2, 2, 1), COMMAND), Start("b", (0, 1, 1), COMMAND))
    up = [fields(note) for note in run.until("up", 7)]
    assert end(run) == 0, run.output
    groups = Counter((note["name"][0], note["rank"]) for note in up)
    assert groups == {("a", "0"): 2, ("a", "1"): 2, ("a", "2"): 1, ("b", "1"): 1, ("b", "2"): 1}
    assert sorted(index_of(note["name"]) for note in up) == [0, 0, 1, 1, 2, 3, 4]
    assert (len(run.noted("down")), run.noted("killed")) == (7, [])
    assert not list(folder.glob(".workers-*")), "the files with the environment are gone"
    assert run.left == [], "nodes keep nothing"


def test_only_main_processes_are_asked(tmp_path: Path, begin: Begin):
    """A warm end reaches no task: those go on until they are done, and then the workers end."""
    run = begin(tmp_path, Start("a", (1, 1, 0), COMMAND))
    assert_ends_warmly(run)


def test_the_environment_goes_along(tmp_path: Path, begin: Begin):
    """Variables reach other nodes as they are, whatever is in them."""
    text = "two\nlines 'and' \"quotes\" $HOME `id` \\ é"
    command = 'printf "%s" "$TEXT" >text; ' + COMMAND
    run = begin(tmp_path, Start("a", (1,), command), nodes=1, TEXT=text)
    run.until("up", 1)
    assert end(run) == 0, run.output
    assert (tmp_path / "text").read_text() == text


def test_a_worker_that_fails(tmp_path: Path, begin: Begin):
    """It is told by name; the others go on, and the script ends with its status."""
    fails = "case $WORKER_NAME in *.1.*) exit 3;; esac; " + COMMAND
    run = begin(tmp_path, Start("a", (2, 1, 0), fails))
    run.until("up", 2)
    assert end(run) == 3
    assert "a.j123.1 ended with status 3" in run.output
    assert len(run.noted("down")) == 2


def test_holders(tmp_path: Path, begin: Begin):
    """Workers that hold get GPUs and cores of their node that nobody else has there."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "cuda-1").write_text("4,GPU-x,6,7")
    run = begin(
        tmp_path,
        Start("a", (2, 1, 0), COMMAND, holds=True, gpus=1),
        Start("b", (1, 1, 0), COMMAND, holds=True, gpus=2),
        Start("c", (0, 0, 1), COMMAND, holds=True, cores=1),
    )
    up = [fields(note) for note in run.until("up", 6)]
    assert end(run) == 0, run.output
    assert sorted((note["name"][0], note["rank"], note["cuda"]) for note in up) == [
        ("a", "0", "0"),
        ("a", "0", "1"),
        ("a", "1", "4"),
        ("b", "0", "2,3"),
        ("b", "1", "GPU-x,6"),
        ("c", "2", "-1"),
    ]
    allowed = sorted(os.sched_getaffinity(0))
    first = [note["cores"] for note in up if note["name"].startswith("a.j123.0")]
    assert first == [str(allowed[0])]
    if len(allowed) > 1:
        second = [note["cores"] for note in up if note["name"].startswith("a.j123.1")]
        assert second == [str(allowed[1])]


def test_too_few_gpus(tmp_path: Path, begin: Begin):
    """A worker that holds more GPUs than the job has on its node does not start."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "cuda-0").write_text("0")
    run = begin(tmp_path, Start("a", (1,), COMMAND, holds=True, gpus=2), nodes=1)
    assert (run.end(), run.noted("up")) == (69, [])
    assert "too few GPUs" in run.output


def test_other_nodes_than_planned(tmp_path: Path, begin: Begin):
    """Where the job has other nodes, all workers are dealt over them, and it says so."""
    run = begin(tmp_path, Start("a", (2, 2, 1), COMMAND), nodes=2)
    up = [fields(note) for note in run.until("up", 5)]
    assert end(run) == 0, run.output
    assert Counter(note["rank"] for note in up) == {"0": 3, "1": 2}
    assert "planned for 3 nodes, here are 2" in run.output


def test_no_nodes(tmp_path: Path):
    """A script outside of a job starts nothing, and says why."""
    run = lsf(tmp_path, Start("a", (1,), COMMAND), nodes=0)
    assert (run.end(), run.noted("up")) == (69, [])
    assert "the job's nodes can't be told" in run.output


# --- with jsrun -----------------------------------------------------------------------------


def test_jsrun(tmp_path: Path):
    """What holds nothing stays on the launch node; what holds becomes resource sets; all end."""
    run = csm(
        tmp_path,
        Start("a", (2, 1), COMMAND),
        Start("b", (2, 1), COMMAND, holds=True, cores=2, gpus=2),
    )
    up = [fields(note) for note in run.until("up", 6)]
    run.stop("123")
    with pytest.raises(Exception, match="timed out"):
        run.process.wait(timeout=3)
    assert run.noted("killed") == []
    run.finish_tasks()
    assert run.end() == 0, run.output
    assert sorted((note["name"][0], note["rank"], note["cuda"]) for note in up) == [
        *[("a", "", "unset")] * 3,
        ("b", "host0", "0,1"),
        ("b", "host0", "2,3"),
        ("b", "host1", "0,1"),
    ]
    assert sorted(index_of(note["name"]) for note in up) == [0, 0, 1, 1, 2, 2]
    assert (len(run.noted("down")), run.noted("killed"), run.left) == (6, [], [])
    assert not (tmp_path / ".workers-123.end").exists()
