from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from taskgraph_workers import schedulers
from taskgraph_workers.schedulers import find, native
from taskgraph_workers.schedulers.base import Answer, Command, Scheduler, SchedulerError


@pytest.mark.parametrize("name", schedulers.NAMES)
def test_ours_are_found_by_name(name: str):
    """Each name leads to a scheduler that has that name, without asking what is installed."""
    assert find(name).name == name
    assert find(name).extension
    assert find(name).tool


@pytest.mark.parametrize("name", schedulers.NAMES)
def test_ours_have_all_that_is_asked_for(name: str):
    """Each has every part of the protocol, and takes what it says."""
    for part, said in vars(Scheduler).items():
        if not part.startswith("_"):
            own = getattr(find(name), part)
            if callable(said):
                asked = list(inspect.signature(said).parameters)[1:]
                assert list(inspect.signature(own).parameters) == asked, part


@pytest.mark.usefixtures("site_scheduler")
def test_others_are_found_by_entry_point():
    """A name that is none of ours is looked up among entry points; ours can't be replaced."""
    assert find("condor").name == "condor"
    assert find("slurm").tool == "sbatch"


@pytest.mark.usefixtures("site_scheduler")
def test_a_foreign_one_that_fails():
    """One that can't be loaded is an error that says whose it is."""
    with pytest.raises(SchedulerError, match=r"site_scheduler:NOTHING.* can't be loaded"):
        find("broken")


@pytest.mark.usefixtures("site_scheduler")
@pytest.mark.parametrize(("name", "hint"), [("slrum", "'slurm'"), ("condro", "'condor'")])
def test_unknown_names(name: str, hint: str):
    """An unknown name is an error with the nearest one, of ours or of others."""
    with pytest.raises(SchedulerError, match=f"did you mean {hint}"):
        find(name)


def machine(folder: Path, **programs: str) -> dict[str, str]:
    """The environment of a machine that has just these programs; each is a line of shell."""
    for name, line in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


SBATCH = "echo slurm-wlm 22.05.8"
SLURM_QSUB = "echo Unknown option: version; exit 2"
PBS_QSUB = "echo pbs_version = 23.06.06"
BSUB = "echo IBM Spectrum LSF Standard 10.1.0.13 >&2"
FLUX = "echo 4"


@pytest.mark.parametrize(
    ("programs", "expected"),
    [
        ({}, None),
        ({"sbatch": SBATCH}, "slurm"),
        ({"sbatch": SBATCH, "qsub": PBS_QSUB, "bsub": BSUB, "flux": FLUX}, "slurm"),
        ({"sbatch": SBATCH, "qsub": SLURM_QSUB}, "slurm"),
        ({"qsub": SLURM_QSUB}, None),
        ({"qsub": "echo GE 8.1.9"}, None),
        ({"qsub": PBS_QSUB}, "pbs"),
        ({"bsub": BSUB, "qsub": PBS_QSUB}, "lsf"),
        ({"bsub": "echo a wrapper around flux"}, None),
        ({"sbatch": "echo no configuration >&2; exit 1"}, None),
        ({"sbatch": "echo flux wrapper, not slurm 1", "flux": FLUX}, "flux"),
        ({"flux": "echo no broker >&2; exit 1"}, None),
    ],
)
def test_what_a_machine_has(programs: dict[str, str], expected: str | None, tmp_path: Path):
    """A machine has the scheduler whose command is there and gives the right answer."""
    assert native(machine(tmp_path, **programs)) == expected


def test_inside_flux(tmp_path: Path):
    """Inside a Flux instance it is Flux, also where Slurm started that; not without a flux."""
    environ = {**machine(tmp_path, sbatch=SBATCH), "FLUX_URI": "local:///x"}
    assert native(environ) == "slurm"
    machine(tmp_path, flux="exit 1")
    assert native(environ) == "flux"


def test_nobody_is_asked_twice(tmp_path: Path):
    """Only commands that are there are asked, each once, by their whole path."""
    asked: list[Command] = []

    def ask(command: Command) -> Answer:
        asked.append(command)
        return Answer(None, stderr="no answer")

    assert native(machine(tmp_path, sbatch="", qsub=""), ask) is None
    assert [command.argv for command in asked] == [
        (f"{tmp_path}/sbatch", "--version"),
        (f"{tmp_path}/qsub", "--version"),
    ]
