"""Scripts as the command prints them, on a real Slurm, with shell stand-ins for the workers."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from real_launch import HOSTILE, Site, on_nodes, per_node, until
from slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.service, pytest.mark.slow]

# A worker that takes one task of its queue, as Merlin writes it with $(LAUNCHER), and ends. With
# GPUS_FIRST, tasks of the other queue wait until those with GPUs run.
ONE_TASK = """\
echo "$WORKER_NAME $SLURMD_NODENAME" >>"$MEET/workers"
case $* in
    *wide*)
        while [ "${GPUS_FIRST-}" ] && [ "$(ls "$MEET" | grep -c 'all-trainers.*here')" -lt 2 ]; do
            sleep 0.1
        done
        exec srun -n 8 -N 2 "$MEET/meet.sh" "$MEET" "$WORKER_NAME" all 6 ;;
    *gpu*) exec srun -n 1 -N 1 "$MEET/meet.sh" "$MEET" "$WORKER_NAME" all 6 ;;
esac
"""

# One that never listens.
DEAF = "trap '' TERM INT HUP USR1\nwhile :; do sleep 600; done"


@pytest.fixture
def site(slurm: SlurmCluster, tmp_path: Path) -> Site:
    """Return a user's folder, with a Merlin that is of bash and never says that work is done."""
    site = Site(slurm, tmp_path)
    meet = tmp_path / "meet"
    meet.mkdir()
    (meet / "workers").touch()
    site.copy("meet.sh").rename(meet / "meet.sh")
    site.env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "MEET": str(meet)}
    site.stand_in("merlin", "exec sleep 600")
    site.copy("pair.yaml", MEET=meet)
    return site


def workers(site: Site, what: str = "") -> list[str]:
    """The workers that said this, in their order."""
    text = (site.folder / "meet" / "workers").read_text()
    return re.findall(rf"^(\S+) {what}", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("queue", "mode", "nodes", "first"),
    [
        ("pbig", "packed", 2, ""),
        ("pdebug", "certain", 6, ""),
        # Four wide tasks may fill four of five nodes. Then there is no core beside all GPUs.
        ("pdebug", "packed", 5, "yes"),
    ],
)
def test_all_tasks_run_at_once(site: Site, queue: str, mode: str, nodes: int, first: str):
    """Four tasks of two nodes and two of four GPUs meet, each with the right GPUs, their workers
    where the layout has them: on the nodes that are certain in any order of arrival, and on those
    that are packed in an order that leaves a placement.
    """
    site.stand_in("celery", ONE_TASK)
    script = site.launch("pair.yaml", "--queue", queue, "--mode", mode).stdout
    assert f"#SBATCH --nodes={nodes}\n" in script
    job = site.submit(script, GPUS_FIRST=first)
    assert site.slurm.wait_for(job) == "COMPLETED", site.slurm.output(job)
    names = workers(site)
    assert len(set(names)) == 6
    assert on_nodes(site, job, names) == per_node(script)
    for file in site.folder.glob("meet/*.ranks"):
        lines = file.read_text().split("\n")[:-1]
        ranks = Counter(line.partition(" ")[0] for line in lines)
        gpus = {line.partition("gpus=")[2] for line in lines}
        simulates = file.name.startswith("simulators.")
        # Where four cores are not free on each node, srun takes three and five.
        assert (len(ranks), sum(ranks.values())) == ((2, 8) if simulates else (1, 1))
        assert gpus == ({""} if simulates else {"0,1,2,3"})


def test_nothing_outlives_the_limit(site: Site):
    """Workers that don't listen when they are asked to end are gone once Slurm ends their job."""
    site.stand_in("celery", f'echo "$WORKER_NAME begins" >>"$MEET/workers"\n{DEAF}')
    job = site.submit(site.launch("pair.yaml", "--walltime", "1m", "--margin", "50s").stdout)
    until(lambda: len(workers(site, "begins")) == 6, lambda: site.slurm.output(job))
    assert running(site)
    # Slurm looks at limits twice a minute, and may take its time with the rest.
    until(lambda: not running(site), lambda: site.slurm.output(job), 180)
    assert "the time limit is 50 s ahead" in site.slurm.output(job)
    assert "DUE TO TIME LIMIT" in site.slurm.output(job)
    assert site.slurm.job(job)["JobState"] in ("COMPLETING", "TIMEOUT")


SPEC = """\
description: {{name: {text}, description: d}}
batch: {{type: slurm, queue: pdebug, walltime: 10m, name: {text}, bank: {text}}}
study:
- {{name: step, description: d, run: {{cmd: run, task_queue: {text}}}}}
merlin:
  resources:
    workers:
      them: {{args: {args}, steps: [step], number: 2}}
"""


def test_a_hostile_spec_runs_nothing_of_its_own(site: Site):
    """Names of a study, a queue, a bank, a job and a folder, and a worker's arguments, reach Slurm,
    Celery and Merlin as they are; a shell runs none of them.
    """
    folder = site.folder / HOSTILE
    folder.mkdir()
    args = f"-l INFO --include {shlex.quote(HOSTILE)}"
    text = SPEC.format(text=json.dumps(HOSTILE), args=json.dumps(args))
    (folder / "spec.yaml").write_text(text)
    site.stand_in("celery", 'printf "%s\\0" "$@" >"$MEET/$WORKER_NAME.celery"; exec sleep 600')
    site.stand_in("merlin", 'sleep 2; printf "%s\\0" "$@" >"$MEET/merlin"')
    here = replace(site, folder=folder)
    job = here.submit(here.launch("spec.yaml").stdout)
    assert site.slurm.wait_for(job) == "COMPLETED", site.slurm.output(job)
    said = site.slurm.ask("squeue", "-h", "-t", "all", "-j", job, "-o", "%j|%a|%D")
    assert said == f"{HOSTILE}|{HOSTILE.lower()}|1"
    asked = (site.folder / "meet" / "merlin").read_text().split("\0")
    assert asked[:2] == ["monitor", str(folder / "spec.yaml")]
    called = [file.read_text().split("\0") for file in site.folder.glob("meet/them.*.celery")]
    assert len(called) == 2
    for words in called:
        assert words[words.index("-Q") + 1] == f"[merlin]_{HOSTILE}"
        assert words[words.index("--include") + 1] == HOSTILE
    assert not list(site.folder.rglob("owned*"))


def running(site: Site) -> list[str]:
    """The processes that run something out of the user's folder."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                words = (each / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(site.folder / "bin") in words:
                found.append(words.replace("\0", " "))
    return found
