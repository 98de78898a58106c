"""Flux inside of a real Slurm job: the script begins once more in a stand-in for Flux."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from share_scripts import COMMAND, WORKER, commands, fields, notes

from slurm_cluster import SlurmCluster
from taskgraph_workers.launch.script import Script, render
from taskgraph_workers.schedulers.base import Job, Start
from taskgraph_workers.schedulers.flux import SCHEDULER as FLUX
from taskgraph_workers.schedulers.slurm import SCHEDULER as SLURM

pytestmark = [pytest.mark.service, pytest.mark.slow, pytest.mark.once]


def submit(slurm: SlurmCluster, folder: Path, *groups: Start) -> str:
    """Submit the script for these groups on three nodes, from that folder; the job's id."""
    (folder / "worker.sh").write_text(WORKER)
    (folder / "state").mkdir()
    (folder / "state" / "shape").write_text("3 8 4")
    setup = [
        f"export {name}='{folder / file}'" for name, file in (("LOG", "log"), ("DONE", "done"))
    ]
    setup += [f"export PATH='{commands(folder, {'flux': 'flux.py'})}'"]
    setup += [f"export FLUX_STAND_IN='{folder / 'state'}'"]
    job = Job(nodes=3, walltime_s=600, gpus=4)
    script = render(Script(job, groups, setup=tuple(setup), every_s=0.2), SLURM, FLUX)
    # As somebody does it who lets nothing into jobs.
    return slurm.submit(script, "--export=NONE", cwd=folder)


def wait_for(folder: Path, word: str, count: int) -> list[str]:
    """Wait until as many workers noted it."""
    limit = time.monotonic() + 30
    while len(found := notes(folder / "log", word)) < count:
        said = "".join(path.read_text() for path in folder.glob("slurm-*.out"))
        assert time.monotonic() < limit, f"{found} of {count}\n{said}"
        time.sleep(0.1)
    return found


def test_flux_in_slurm(slurm: SlurmCluster, tmp_path: Path):
    """Workers are on Flux's nodes, named by Slurm's job, and Slurm's signal ends them warmly."""
    job = submit(
        slurm,
        tmp_path,
        Start("a", (2, 1, 1), COMMAND),
        Start("b", (0, 1, 1), COMMAND, holds=True, cores=2, gpus=2),
    )
    up = [fields(note) for note in wait_for(tmp_path, "up", 6)]
    command = SLURM.end(job)
    assert command is not None
    slurm.ask(*command.argv)
    time.sleep(1)
    assert notes(tmp_path / "log", "killed") == []
    (tmp_path / "done").touch()
    state = slurm.wait_for(job)
    assert state == "COMPLETED", slurm.output(job)
    assert Counter((note["name"].split(".")[0], note["rank"]) for note in up) == {
        **{("a", "0"): 2, ("a", "1"): 1, ("a", "2"): 1},
        **{("b", "1"): 1, ("b", "2"): 1},
    }
    assert {note["name"].split(".")[1] for note in up} == {f"j{job}"}
    assert len(notes(tmp_path / "log", "down")) == 6
    assert notes(tmp_path / "log", "killed") == []


def test_status(slurm: SlurmCluster, tmp_path: Path):
    """The job ends as its workers did."""
    job = submit(slurm, tmp_path, Start("a", (1, 1, 0), "exit 7"))
    assert slurm.wait_for(job) == "FAILED"
    assert slurm.job(job)["ExitCode"] == "7:0"
