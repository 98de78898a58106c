"""Real workers of a real Merlin, on a real Slurm, from the script as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from merlin_services import MerlinServices
from real_launch import Site, on_nodes, per_node, until
from slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.service, pytest.mark.slow]


@pytest.fixture
def site(slurm: SlurmCluster, merlin: MerlinServices, tmp_path: Path) -> Site:
    """Return a user's folder, with Merlin on PATH."""
    return Site(slurm, tmp_path, merlin.env)


def test_tasks_run_at_the_same_time_on_the_packed_nodes(site: Site, merlin: MerlinServices):
    """On five nodes of 8 cores the four tasks of one step meet, without a GPU, and so do the two
    of the other step, each with the four GPUs of a node.
    """
    meet = site.folder / "meet"
    meet.mkdir()
    site.copy("meet.sh").rename(meet / "meet.sh")
    site.copy("pair.yaml", MEET=meet)
    script = site.launch("pair.yaml").stdout
    assert "#SBATCH --nodes=5\n" in script
    merlin.merlin("run", "pair.yaml", cwd=site.folder)
    job = site.submit(script)
    until(lambda: len(finished(site)) == 6, lambda: site.slurm.output(job))
    ranks = {file.stem: file.read_text().split("\n")[:-1] for file in meet.glob("*.ranks")}
    assert sorted(ranks) == sorted([*(f"simulate-{n}" for n in "1234"), "train-1", "train-2"])
    for task, lines in ranks.items():
        nodes = {line.partition(" ")[0] for line in lines}
        assert (len(nodes), len(lines)) == ((2, 8) if "simulate" in task else (1, 1)), task
        gpus = {line.partition("gpus=")[2] for line in lines}
        assert gpus == ({""} if "simulate" in task else {"0,1,2,3"}), task
    assert ranks["train-1"] != ranks["train-2"]


def finished(site: Site) -> list[Path]:
    """The tasks that Merlin counts as done."""
    return list(site.folder.glob("studies/**/MERLIN_FINISHED"))


class Held:
    """The tasks of ``many.yaml``, which the test lets go."""

    def __init__(self, site: Site, merlin: MerlinServices) -> None:
        self.site, self.merlin = site, merlin
        self.folder = site.folder / "held"
        self.folder.mkdir()
        site.copy("held.sh").rename(self.folder / "held.sh")
        site.copy("many.yaml", HELD=self.folder)
        (self.folder / "log").touch()

    def log(self, what: str) -> list[str]:
        """The tasks that did this, each as often as it did."""
        return re.findall(rf"^(\S+) {what}$", (self.folder / "log").read_text(), re.MULTILINE)

    def running(self) -> set[str]:
        return set(self.log("begins")) - set(self.log("ends"))

    def let_go(self) -> None:
        """Let those go that run now."""
        for task in self.running():
            (self.folder / f"{task}.go").touch()

    def warm_end(self, job: str) -> None:
        """Wait until all workers of a job have heard that they are to end; then let tasks go.

        They end with what they do, and leave nothing in hand: Redis would give what a dead worker
        had taken to another one a day later.
        """
        output = self.site.slurm.output
        until(lambda: output(job).count("Warm shutdown") == 7, lambda: output(job))
        assert self.running()
        self.let_go()
        assert self.site.slurm.wait_for(job) == "COMPLETED", output(job)
        assert self.running() == set()
        assert self.merlin.redis("hlen", "unacked") == "0"


def test_numbers_are_workers_and_nothing_is_lost(site: Site, merlin: MerlinServices):
    """``number: 5`` and ``number: 2`` give workers with names of their own, on the nodes of the
    layout. When their job is stopped, or comes near its limit, they end with their tasks, and
    what else they had taken is in the queue again; the third job does the rest, nothing twice,
    and ends by itself.
    """
    held = Held(site, merlin)
    merlin.merlin("run", "many.yaml", cwd=site.folder)

    # More nodes than it takes, so that there is a layout to see.
    script = site.launch("many.yaml", "--nodes", "3").stdout
    first = site.launch("many.yaml", "--nodes", "3", "--submit").stdout.strip()
    until(lambda: len(held.running()) == 5, lambda: site.slurm.output(first))
    names = merlin.workers(site.folder)
    assert len(set(names)) == len(names) == 7
    numbers = {group: sum(nodes) for group, nodes in per_node(script).items()}
    assert numbers == {"quick_workers": 5, "slow_workers": 2}
    assert on_nodes(site, first, names) == per_node(script)
    with site.starting("stop", first):
        held.warm_end(first)
    assert merlin.workers(site.folder) == []
    assert merlin.waiting("quick") > 0

    words = ("many.yaml", "--walltime", "1m", "--margin", "35s")
    second = site.launch(*words, "--submit").stdout.strip()
    until(held.running, lambda: site.slurm.output(second))
    held.warm_end(second)
    assert "the time limit is 35 s ahead" in site.slurm.output(second)
    assert merlin.waiting("quick") > 0

    (held.folder / "all.go").touch()
    # As printed, but that Merlin is asked sooner than after a minute whether the work is done.
    script = site.launch("many.yaml").stdout
    assert " --sleep 60" in script
    third = site.submit(script.replace(" --sleep 60", " --sleep 5"))
    assert site.slurm.wait_for(third, timeout_s=180) == "COMPLETED", site.slurm.output(third)
    assert sorted(held.log("begins")) == sorted(held.log("ends"))
    assert len(set(held.log("ends"))) == len(held.log("ends")) == 24
