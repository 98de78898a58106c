"""Where Merlin would do otherwise: each told once, with its line and a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from merlin_values import a_spec, a_step, a_worker, told

from taskgraph_workers.errors import Problem
from taskgraph_workers.launch.merlin.ask import ask
from taskgraph_workers.launch.merlin.model import Batch
from taskgraph_workers.launch.merlin.options import Options
from taskgraph_workers.machines import Header

QUIET = {"args": "-c 1 --prefetch-multiplier 1", "lines": {"args": 21, "steps": 22, "nodes": 23}}


def notes(*parts: Any, options: Options | None = None, **fields: Any) -> tuple[Problem, ...]:
    return ask(a_spec(*parts, **fields), options or Options(folder="/opt/merlin/bin")).notes


def only(*parts: Any, **fields: Any) -> Problem:
    """The one thing that is said."""
    found = notes(*parts, **fields)
    assert len(found) == 1, told(found)
    assert found[0].severity == "warning"
    assert found[0].hint
    return found[0]


def test_a_plain_spec_is_met_with_silence():
    """A spec that Merlin runs as it says has no warning at all."""
    steps = [a_step("a", "q", nodes=2, walltime_s=60), a_step("b", "p", depends=("a",))]
    workers = [a_worker("w", "a", **QUIET), a_worker("v", "b", **QUIET)]
    assert notes(*steps, *workers, batch=Batch("slurm", Header(walltime_s=60))) == ()


def test_a_group_that_never_starts():
    """Of two groups for one queue, the one that Merlin leaves out is named, and the other."""
    found = notes(
        a_step("a", line=3),
        a_step("b", line=5),
        a_worker("w", "a", line=7, **QUIET),
        a_worker("v", "b", line=9, **QUIET),
    )
    said = next(note for note in found if "never starts" in note.message)
    assert said.message == "v never starts in Merlin: w serves queue merlin already"
    assert said.line == 9
    assert "steps without one share the queue merlin" in said.hint


def test_a_default_worker_that_nobody_misses_is_no_matter():
    """Where others serve the queues of Merlin's default worker, nothing is said of it."""
    said = only(a_step("a", "q"), a_step("b", "q"), a_worker("w", "a", **QUIET))
    assert said.message == "w also runs b, since it serves queue q"


def test_steps_that_a_group_does_not_name():
    """What a group runs beyond the steps it names is told, with their lines."""
    said = only(
        a_step("a", "q"),
        a_step("b", "q", line=5),
        a_step("c", "q", line=8),
        a_worker("w", "a", **QUIET),
    )
    assert said.message == "w also runs b (line 5), c (line 8), since it serves queue q"
    assert said.line == 22


def test_a_queue_without_workers():
    """A queue that nobody serves is named: there the whole study can stall."""
    found = notes(
        a_step("a", "q"),
        a_step("b", "p", line=5, queue_line=6),
        a_worker("w", "a", **QUIET),
        a_worker("default_worker", "b", line=8, **QUIET),
        a_worker("v", "a", line=9, **QUIET),
        a_step("c", "q"),
    )
    said = next(note for note in found if "no worker serves" in note.message)
    assert (said.line, "stall" in said.hint) == (6, True)
    assert said.message == "no worker serves queue p, that of b (line 5)"


def test_groups_left_out_by_choice_serve_their_queues():
    """Who launches one of two groups is not told that the other's queue has no workers."""
    parts = [
        a_step("a", "q"),
        a_step("b", "p"),
        a_worker("w", "a", **QUIET),
        a_worker("v", "b", **QUIET),
    ]
    assert notes(*parts, options=Options(groups=("w",), folder="/x")) == ()


def test_one_name_for_all_nodes():
    """Merlin's workers on several nodes have one name: told once, not for every group."""
    parts = [a_step("a", "q"), a_step("b", "p")]
    groups = [a_worker("w", "a", nodes=3, **QUIET), a_worker("v", "b", nodes=2, **QUIET)]
    said = only(*parts, *groups, batch=Batch("slurm"))
    assert said.message == "w: merlin run-workers gives the workers on 3 nodes one name"
    assert said.line == 23


def test_nodes_that_look_like_those_of_a_task():
    """A worker's nodes are where workers are; told where they are as many as its task takes."""
    found = notes(a_step("a", nodes=2), a_worker("w", nodes=2, **QUIET), batch=Batch("slurm"))
    said = next(note for note in found if "makes" in note.message)
    assert said.message == "nodes: 2 makes 2 workers of w on 2 nodes"
    assert "number: 1" in said.hint


@pytest.mark.parametrize("type", ["local", "lsf"])
def test_types_that_start_on_one_node(type: str):
    """With these types Merlin starts a plain celery, where it is: told, since we do otherwise."""
    said = only(a_step("a"), a_worker("w", nodes=3, **QUIET), batch=Batch(type))
    assert f"on one node only with batch type {type}" in said.message


def test_names_and_queues_in_args():
    """What the script says itself, and so leaves out of args, is named."""
    args = "-c 1 --prefetch-multiplier 1 -n mine -Q other"
    found = notes(a_step("a"), a_worker("w", args=args, lines={"args": 4}))
    assert [(note.line, note.message) for note in found] == [
        (4, "w: -n mine in args is left out"),
        (4, "w: -Q other in args has no effect"),
    ]


def test_workers_that_take_tasks_ahead():
    """Single workers hoard tasks unless told otherwise: told once for all groups."""
    lines = {"args": 4}
    parts = [a_step("a", "q"), a_step("b", "p")]
    said = only(
        *parts,
        a_worker("w", "a", args="-c 3 --prefetch-multiplier 3", lines=lines),
        a_worker("v", "b", args="-c 3 --prefetch-multiplier=4", lines=lines),
    )
    assert said.message.startswith("v, w: each worker takes more than one task")
    quiet = [f"-c 3{more}" for more in ("", " --disable-prefetch", " --prefetch-multiplier 1")]
    assert [notes(a_step("a"), a_worker("w", args=args, lines=lines)) for args in quiet] == [()] * 3


def test_several_needs_of_gpus_on_slurm():
    """On Slurm a group's workers hand every task the same GPUs: told where its steps differ."""
    parts = [a_step("a", gpus=4), a_step("b", gpus=0), a_worker("w", **QUIET)]
    said = only(*parts, batch=Batch("slurm"))
    assert said.message == "w runs steps that need different GPUs on a node (b 0, a 4)"
    assert notes(*parts, batch=Batch("flux")) == ()
    elsewhere = Options(scheduler="slurm", folder="/x", setup=("module load flux",))
    assert len(notes(*parts, batch=Batch("flux"), options=elsewhere)) == 1


@pytest.mark.parametrize(
    ("scheduler", "batch", "setup", "warned"),
    [
        ("slurm", Batch("flux", line=3), (), True),
        ("slurm", Batch("flux", line=3), ("umask 077",), True),
        ("slurm", Batch("flux", line=3), ("module load flux",), False),
        ("slurm", Batch("flux", line=3), (". /opt/env/bin/activate",), False),
        ("slurm", Batch("flux", line=3), ('export PATH=/opt/flux/bin:"$PATH"',), False),
        ("slurm", Batch("flux", flux_path="/opt/flux/bin", line=3), (), False),
        ("flux", Batch("flux", line=3), (), False),
        ("slurm", Batch("slurm", line=3), (), False),
    ],
)
def test_flux_that_nobody_knows(
    monkeypatch: pytest.MonkeyPatch,
    scheduler: str,
    batch: Batch,
    setup: tuple[str, ...],
    warned: bool,
):
    """Where Flux is started inside of a job: it is not here, and no line of set-up may bring it."""
    options = Options(folder="/opt/merlin/bin", scheduler=scheduler, setup=setup)
    parts = (a_step("a", nodes=2), a_worker("w", **QUIET))
    monkeypatch.setattr("shutil.which", lambda name: None)
    said = notes(*parts, batch=batch, options=options)
    assert [(note.line, "no command flux" in note.message) for note in said] == [(3, True)] * warned
    alone = notes(a_step("a", launcher=False), a_worker("w", **QUIET), batch=batch, options=options)
    assert not any("flux" in note.message for note in alone)
    monkeypatch.setattr("shutil.which", "/usr/bin/{}".format)
    assert notes(*parts, batch=batch, options=options) == ()


def test_steps_longer_than_the_job():
    """A step whose walltime is beyond that of the allocation is named, the longest of them."""
    steps = [a_step("a", walltime_s=7200, line=1), a_step("b", walltime_s=9000)]
    said = only(*steps, a_worker("w", **QUIET), batch=Batch(header=Header(walltime_s=3600)))
    assert said.message == "a task of b may take 2:30:00, but the job ends after 1:00:00"
    longer = Options(walltime_s=9000, folder="/x")
    short = Batch(header=Header(walltime_s=60))
    assert notes(*steps, a_worker("w", **QUIET), batch=short, options=longer) == ()


def test_tasks_of_more_than_a_day():
    """On Redis a task that takes longer than a day is handed out a second time."""
    said = only(a_step("a", walltime_s=86401), a_worker("w", **QUIET))
    assert "more than 24 h" in said.message


def test_merlins_own_start_is_not_used():
    """Keys for Merlin's way of starting workers are named: they do nothing here."""
    batch = Batch("slurm", launch_pre="module load x", worker_launch="srun", line=6)
    said = only(a_step("a"), a_worker("w", **QUIET), batch=batch)
    assert said.message.startswith("launch_pre, worker_launch in batch:")
    assert said.line == 6


@pytest.mark.parametrize(("version", "warned"), [("5.7.0", True), ("5.6.3", False), ("6.0", True)])
def test_celery_beside_merlin(version: str, warned: bool, tmp_path: Path):
    """With celery 5.7 chained steps never run: told where a spec has any."""
    (tmp_path / f"lib/python3.11/site-packages/celery-{version}.dist-info").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    options = Options(folder=str(tmp_path / "bin"))
    chained = [a_step("a"), a_step("b", depends=("a",), line=5), a_worker("w", **QUIET)]
    said = notes(*chained, options=options)
    assert [(note.line, note.hint) for note in said] == (
        [(5, "install celery<5.7 beside Merlin")] if warned else []
    )
    assert notes(a_step("a"), a_step("b"), a_worker("w", **QUIET), options=options) == ()


def test_merlin_that_is_nowhere(monkeypatch: pytest.MonkeyPatch):
    """Where the command merlin can't be found, the script has no PATH line, and that is said."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    found = ask(a_spec(a_step("a"), a_worker("w", **QUIET)))
    assert (found.setup, "no command merlin" in told(found)) == ((), True)


def test_merlin_beside_this_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Merlin is looked for beside this Python, and then on PATH."""
    for name in ("own", "path"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "merlin").touch(0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "own" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    spec = a_spec(a_step("a"), a_worker("w", **QUIET))
    assert ask(spec).setup == (f'export PATH={tmp_path}/own:"$PATH"',)
    (tmp_path / "own" / "merlin").unlink()
    assert ask(spec).setup == (f'export PATH={tmp_path}/path:"$PATH"',)
