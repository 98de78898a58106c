"""`launch`, where there is no scheduler: the script and the sizing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from launch_inputs import LAB_OPTIONS, NODE, SPEC, Done
from taskgraph_workers.cli import widths
from taskgraph_workers.cli.launch_sources import find_site, present
from taskgraph_workers.cli.output import Output
from taskgraph_workers.machines import Node
from tests.cli.commands import answer, command
from tests.graph.project import Project

ROOT = Path(__file__).resolve().parent.parent.parent


def header(done: Done) -> list[str]:
    assert done.code == 0, done.err
    return [line for line in done.out.splitlines() if line.startswith("#SBATCH")]


# --- the script -----------------------------------------------------------------------------


def test_a_spec_gives_a_script(launch: Any):
    """On standard output; on standard error what was asked, the allocation and why."""
    done = launch("demo.yaml", *NODE)
    assert header(done) == [
        "#SBATCH --job-name=Merlin",
        "#SBATCH --nodes=2",
        "#SBATCH --exclusive",
        "#SBATCH --mincpus=36",
        "#SBATCH --gres=gpu:4",
        "#SBATCH --time=0-00:20:00",
        "#SBATCH --partition=pdebug",
        "#SBATCH --output=merlin_workers_%j.out",
    ]
    first = done.err.splitlines()[:4]
    assert first == [
        "demo: 4 simulators, 2 trainers",
        "2 nodes (packed: every mixture of tasks fits)",
        "  all at once: 34 cores of 72 and 8 GPUs of 8 on 2 nodes; fewer won't do",
        "for slurm; nodes with 36 cores, 4 GPUs; walltime 0:20:00; queue pdebug",
    ]
    assert "demo.yaml:13:" in done.err
    assert done.out.startswith("#!/bin/bash\n#SBATCH")
    assert "tw_start_group simulators on=2x2 gres=none" in done.out
    assert "tw_start_group trainers on=1x2 gres=gpu:4" in done.out
    assert (
        "exec celery -A merlin worker -l INFO --prefetch-multiplier 1 --concurrency 1 -n"
        in done.out
    )


def test_tasks_without_nodes_stay_on_one(launch: Any, tmp_path: Path):
    """What runs is what is sized, also beside steps that say their nodes; where nobody knows what
    a node has, a task may need several.
    """
    assert "task_nodes=" not in group_lines(launch("demo.yaml", *NODE))
    text = SPEC.replace("nodes: 1, procs: 1", "procs: 8").replace("steps: [train]", "steps: [all]")
    (tmp_path / "demo.yaml").write_text(text, "utf-8")
    assert " task_nodes=1 " in group_lines(launch("demo.yaml", *NODE))
    assert " task_nodes=" not in group_lines(launch("demo.yaml"))


def group_lines(done: Done) -> str:
    """The lines that start groups."""
    assert done.code == 0, done.err
    return "\n".join(line for line in done.out.splitlines() if line.startswith("tw_start_group "))


def test_a_cluster_gives_a_script(launch: Any):
    """With workers that hold what they need, and have GPUS and WORKSPACE in their environment."""
    done = launch(*LAB_OPTIONS)
    assert header(done) == [
        '#SBATCH --job-name="lab workers"',
        "#SBATCH --nodes=3",
        "#SBATCH --exclusive",
        "#SBATCH --mincpus=36",
        "#SBATCH --gres=gpu:4",
        "#SBATCH --time=0-00:20:00",
        "#SBATCH --partition=pdebug",
        "#SBATCH --account=wbronze",
        "#SBATCH --output=workers-%j.out",
    ]
    assert "\nmodule load cuda\n" in done.out
    assert "\ntw_margin=180\n" in done.out
    start = next(line for line in done.out.splitlines() if line.startswith("tw_start_group train"))
    assert "cores=8 gpus=2" in start
    assert 'export GPUS="0 1" WORKSPACE=8000; exec start-worker x' in start


def test_a_spec_on_a_cluster(launch: Any):
    """The spec's groups and header, with what the cluster says where the spec says nothing."""
    done = launch("demo.yaml", *LAB_OPTIONS)
    lines = header(done)
    assert '#SBATCH --job-name="lab workers"' in lines
    assert "#SBATCH --account=wbronze" in lines
    assert "#SBATCH --output=merlin_workers_%j.out" in lines
    assert "\nmodule load cuda\n" in done.out
    assert "tw_start_group simulators" in done.out
    assert "tw_start_group helpers" not in done.out


def test_options_beat_everything(launch: Any):
    """Every value of the header can be given."""
    done = launch(
        "demo.yaml",
        *(*LAB_OPTIONS, "--name", "x y", "--queue", "pbatch", "--bank", "b", "--walltime", "2h"),
        *("--output", "logs/{id}.txt", "--reservation", "r", "--qos", "q", "--constraint", "v100"),
        *("--directive", "#SBATCH --mail-type=END", "--nodes", "7", "--requeue", "3"),
        *("--margin", "10m", "--node", "cores=48,gpus=8"),
    )
    assert header(done) == [
        '#SBATCH --job-name="x y"',
        "#SBATCH --nodes=7",
        "#SBATCH --exclusive",
        "#SBATCH --mincpus=48",
        "#SBATCH --gres=gpu:8",
        "#SBATCH --time=0-02:00:00",
        "#SBATCH --partition=pbatch",
        "#SBATCH --account=b",
        "#SBATCH --qos=q",
        "#SBATCH --constraint=v100",
        "#SBATCH --reservation=r",
        "#SBATCH --output=logs/%j.txt",
        "#SBATCH --requeue --open-mode=append",
        "#SBATCH --mail-type=END",
    ]
    assert "\ntw_margin=600\n" in done.out
    assert "\ntw_requeues=3 " in done.out
    assert "the allocation is written as 7 nodes" in done.err


@pytest.mark.parametrize(
    ("scheduler", "first", "extension"),
    [
        ("slurm", "#SBATCH --job-name=Merlin", "sbatch"),
        ("flux", "#flux: --job-name=Merlin", "flux"),
        ("lsf", "#BSUB -J Merlin", "lsf"),
        ("pbs", "#PBS -N Merlin", "pbs"),
    ],
)
def test_every_scheduler(launch: Any, tmp_path: Path, scheduler: str, first: str, extension: str):
    """Named by option; into a folder the script goes under the name that the issue gives it."""
    done = launch("demo.yaml", *NODE, "--scheduler", scheduler, "-o", ".", "-q")
    assert (done.code, done.out) == (0, ""), done.err
    file = tmp_path / f"workers.{extension}"
    assert file.read_text("utf-8").splitlines()[1] == first
    assert os.access(file, os.X_OK)


def test_flux_inside_of_slurm(launch: Any, tmp_path: Path):
    """A spec whose tasks start with Flux, on a Slurm machine: Slurm's header, Flux in it."""
    spec = tmp_path / "flux.yaml"
    spec.write_text(SPEC.replace("type: slurm", "type: flux"), "utf-8")
    done = launch("flux.yaml", *NODE, "--scheduler", "slurm")
    assert header(done)[0] == "#SBATCH --job-name=Merlin"
    assert "    srun " in done.out
    assert "flux start bash" in done.out
    assert "slurm, with flux inside" in done.err
    # By itself it is a job of Flux's.
    assert "#flux: --nodes=2" in launch("flux.yaml", *NODE).out


def test_some_groups(launch: Any):
    """Those that are named, of a spec and of a cluster; the others are told."""
    assert "tw_start_group simulators" not in launch("demo.yaml", *NODE, "--group", "trainers").out
    done = launch(*LAB_OPTIONS, "--group", "helpers")
    assert "tw_start_group trainers" not in done.out
    assert "trainers" in done.err


def test_groups_of_another_allocation_are_named_with_their_option(launch: Any, tmp_path: Path):
    """What launches them can be copied out of what is told."""
    text = SPEC.replace("steps: [train], ", "steps: [train], batch: {type: slurm, nodes: 2}, ")
    (tmp_path / "demo.yaml").write_text(text, "utf-8")
    assert "have an allocation of their own: --group trainers\n" in launch("demo.yaml", *NODE).err
    done = launch("demo.yaml", *NODE, "--group", "trainers")
    assert ("tw_start_group trainers" in done.out, "#SBATCH --nodes=2" in done.out) == (True, True)


def test_vars(launch: Any, tmp_path: Path):
    """As for merlin run; the spec may stand behind them."""
    text = SPEC.replace("study:", "env: {variables: {N: 2}}\nstudy:")
    (tmp_path / "demo.yaml").write_text(text.replace("nodes: 2", "nodes: $(N)"), "utf-8")
    for words in (("--vars", "N=3", "demo.yaml"), ("demo.yaml", "--vars", "N=3")):
        assert "#SBATCH --nodes=14" in header(launch(*words, "--mode", "exclusive"))


# --- into a file ----------------------------------------------------------------------------


def test_a_script_of_ours_is_replaced(launch: Any, tmp_path: Path):
    """And nothing else: what somebody wrote stays."""
    assert launch("demo.yaml", *NODE, "-o", "workers.sbatch").code == 0
    assert launch("demo.yaml", "--mode", "exclusive", "-o", "workers.sbatch").code == 0
    assert "--nodes=10" in (tmp_path / "workers.sbatch").read_text("utf-8")
    (tmp_path / "mine").write_text("#!/bin/bash\n", "utf-8")
    done = launch("demo.yaml", *NODE, "-o", "mine")
    assert (done.code, (tmp_path / "mine").read_text("utf-8")) == (2, "#!/bin/bash\n")
    assert "mine: is there already, and no script of launch" in done.err
    assert "can't be written" in launch("demo.yaml", "-o", "nowhere/x").err
    os.mkfifo(tmp_path / "pipe")
    assert "pipe: is there already" in launch("demo.yaml", *NODE, "-o", "pipe").err


def test_a_script_that_can_not_be_written_whole(
    launch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Leaves nothing behind, and what was there stays."""
    (tmp_path / "old.sbatch").write_text("# Made by taskgraph-workers\n", "utf-8")
    before = sorted(os.listdir(tmp_path))
    monkeypatch.setattr("os.chmod", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    assert (
        "old.sbatch: can't be written: full" in launch("demo.yaml", *NODE, "-o", "old.sbatch").err
    )
    assert sorted(os.listdir(tmp_path)) == before


# --- --size ---------------------------------------------------------------------------------


def test_the_sizing_alone(launch: Any):
    """Group by group, step by step, with the picture; no script."""
    done = launch("demo.yaml", *NODE, "--size")
    assert done.code == 0
    assert "#SBATCH" not in done.out
    for line in (
        "simulators: 4 workers (number: 4)",
        "  exclusive: 10 nodes: whole nodes for each task",
        "      8 + 2 = 10 nodes",
        "* packed: 2 nodes: every mixture of tasks fits",
    ):
        assert f"{line}\n" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_sizing_as_json(launch: Any):
    """One object, with the fields that other programs read."""
    said = json.loads(launch("demo.yaml", *NODE, "--size", "--json").out)
    assert said["version"] == 1
    assert said["scheduler"] == "slurm"
    assert said["allocation"] == {"nodes": 2, "mode": "packed", "walltime_s": 1200}
    assert {mode: said["sizes"][mode] for mode in ("exclusive", "packed")} == {
        "exclusive": 10,
        "packed": 2,
    }
    assert set(said["sizes"]) == {"exclusive", "packed", "certain", "useful"}
    assert said["groups"] == [
        {
            "name": "simulators",
            "number": 4,
            "per_node": [2, 2],
            "steps": ["simulate"],
            "queues": ["[merlin]_simulate"],
        },
        {
            "name": "trainers",
            "number": 2,
            "per_node": [1, 1],
            "steps": ["train"],
            "queues": ["[merlin]_train"],
        },
    ]
    assert {warning["line"] for warning in said["warnings"]} >= {9, 13}
    assert "--gres=gpu:4" in said["corrected"]
    assert "#SBATCH --nodes=2" in json.loads(launch("demo.yaml", *NODE, "--json").out)["script"]


def test_quiet_and_fit_for_a_pipe(launch: Any):
    """With -q nothing is said; the script is the same."""
    quiet, loud = launch("demo.yaml", *NODE, "-q"), launch("demo.yaml", *NODE)
    assert (quiet.err, quiet.out) == ("", loud.out)


# --- fast -----------------------------------------------------------------------------------


#: What takes long to load, and what a spec does without where no scheduler is asked.
HEAVY = ("dataclasses", "inspect", "subprocess")


@pytest.mark.parametrize("words", [("demo.yaml", "--scheduler", "slurm"), LAB_OPTIONS])
def test_it_loads_little(launch: Any, tmp_path: Path, words: tuple[str, ...]):
    """Neither Taskgraph nor another door; for a spec no dataclasses either, which load slowly."""
    program = (
        "import sys\n"
        "from taskgraph_workers.cli import main\n"
        f"code = main(['launch', '-q', *{words!r}])\n"
        "doors = ('taskgraph_workers.graph', 'taskgraph_workers.adopt')\n"
        f"heavy = {{'taskgraph', *{HEAVY if '.yaml' in words[0] else ()!r}}}\n"
        "print(code, sorted({m.split('.')[0] for m in sys.modules} & heavy),"
        " [m for m in sys.modules if m.startswith(doors)], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "0 [] []\n"


# --- number: auto ---------------------------------------------------------------------------


def test_a_number_out_of_a_graph(project: Project):
    """A group of a project's cluster gets as many workers as tasks of its pool can be at once."""
    pytest.importorskip("scipy")
    project.config(
        """
        workers-config:
            clusters:
                lab:
                    scheduler: slurm
                    node: {cores: 8, gpus: 1}
                    walltime: 1h
                    groups:
                        trainers: {number: auto, pool: shop-1/b-gpu, gpus: 1, command: start}
        """
    )
    project.kind("teacher", {"a": {}, "b": {}, "c": {}})
    project.commit()
    words = ("launch", "--cluster", "lab", "-p", "params.yml", "--size")
    said = answer(*words, cwd=project.folder)
    assert said["allocation"]["nodes"] == 3
    assert said["groups"][0]["number"] == 3
    alone = command(*words[:3], "--config", project.root / "config.yml", cwd=ROOT.parent)
    assert alone.returncode == 2
    assert "there is no project here" in alone.stderr
    assert "config.yml:" in alone.stderr


def test_a_graph_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Also where what groups take decides which of several kinds of node is meant."""
    file = tmp_path / "config.yml"
    group = "{number: auto, pool: shop-1/b-gpu, command: start}"
    file.write_text(
        f"workers-config: {{clusters: {{lab: {{scheduler: slurm, groups: {{w: {group}}}}}}}}}"
    )
    made: list[str] = []
    monkeypatch.setattr(widths, "numbers", lambda _, lab, __: made.append(lab.name) or {"w": 3})
    args = Namespace(cluster="lab", config=str(file), group=[], spec=None, vars=[], corrected=None)
    site = present(find_site(args, Output()))
    asked = [site.ask(node, "slurm") for node in (Node(8), Node(36))]
    assert [each.groups[0].number for each in asked] == [3, 3]
    assert made == ["lab"]
