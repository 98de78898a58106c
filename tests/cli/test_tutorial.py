"""The tutorials, done from their first line to their last.

They are docs/tutorials/first-profile.md, first-launch.md and first-training.md.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from merlin_services import MerlinServices
from slurm_cluster import SlurmCluster
from tests.graph.support import ROOT
from tests.pages import LAUNCH, TRAINING, TUTORIAL, File, Reader, steps, trainer

#: From here on the tutorial on launching wants a cluster.
CLUSTER = "## 6."


def test_the_tutorial(tmp_path: Path):
    """Each file is written, each command typed, and prints what the page shows."""
    folder = tmp_path / "desk"
    folder.mkdir()
    reader = Reader(folder)
    assert reader.follow(TUTORIAL)
    assert (reader.here / "plan.html").read_text("utf-8").startswith("<!doctype html>")


def test_training(tmp_path: Path, pytestconfig: pytest.Config):
    """The six lines, the trainer and the messages do what the page shows, wrong ones too."""
    reader = trainer(tmp_path / "desk", pytestconfig.getoption("--update-golden"))
    assert reader.follow(TRAINING)


@pytest.fixture
def desk(tmp_path: Path, pytestconfig: pytest.Config) -> Reader:
    """Someone at a machine with Merlin, and without a scheduler; what Merlin does is nothing."""
    folder = tmp_path / "desk"
    folder.mkdir()
    reader = Reader(folder, terminal=True, update=pytestconfig.getoption("--update-golden"))
    reader.path = f"{ROOT / 'tests' / 'stand_ins' / 'desk'}{os.pathsep}{reader.path}"
    return reader


def test_launching(desk: Reader):
    """Each command prints what the page shows, warnings included."""
    assert desk.follow(LAUNCH, before=CLUSTER)


@pytest.mark.service
@pytest.mark.slow
@pytest.mark.once
def test_launching_on_a_cluster(desk: Reader, slurm: SlurmCluster, merlin: MerlinServices):
    """The rest of it, on a real Slurm with a real Merlin; other ids of jobs are no difference."""
    desk.update = False  # A page that is updated by a run of this would show what came by chance.
    assert desk.follow(LAUNCH, before=CLUSTER)
    desk.env = {**merlin.env, "SLURM_CONF": slurm.env["SLURM_CONF"]}
    desk.path = f"{merlin.bin}{os.pathsep}{os.environ['PATH']}"
    desk.masks = (
        (r"\d{4}-\d\d-\d\dT[\d:]+", "THEN"),
        (r"(?<!\d)[1-9]\d{3,7}(?!\d)", "N"),
        (r"  +", "  "),
    )
    for step in steps(LAUNCH, after=CLUSTER):
        if isinstance(step, File):
            desk.write(step)
            continue
        while slurm.ask("squeue", "-h", "--states=pending,configuring"):
            time.sleep(0.1)
        desk.type(step)
