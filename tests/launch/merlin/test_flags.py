"""Options of launchers: which say a size, and where the program begins."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers.launch.merlin.flags import TOOLS, options


def sizes(command: str) -> dict[str, int]:
    """What the options of a command say; all of them are read."""
    tool, *words = shlex.split(command)
    found = options(TOOLS[tool], words)
    assert found.unread == []
    assert found.program == ("./a", "-n", "99")
    return found.sizes


SRUN = {
    "-N 2 -n 8 -c 4": {"nodes": 2, "tasks": 8, "cores_per_task": 4},
    "-N2 -n8 -c4": {"nodes": 2, "tasks": 8, "cores_per_task": 4},
    "--nodes=2 --ntasks=8 --cpus-per-task=4": {"nodes": 2, "tasks": 8, "cores_per_task": 4},
    "--nodes 2 --ntasks 8 --cpus-per-task 4": {"nodes": 2, "tasks": 8, "cores_per_task": 4},
    "-n 1 -n 2": {"tasks": 2},
    "-G 4": {"gpus": 4},
    "--gpus=a100:4": {"gpus": 4},
    "--gpus=a100:2,v100:1": {"gpus": 3},
    "--gpus-per-task=1 --gpus-per-node 4": {"gpus_per_task": 1, "gpus_per_node": 4},
    "--gres=gpu:4": {"gpus_per_node": 4},
    "--gres gpu:a100:2": {"gpus_per_node": 2},
    "--gres=gpu": {"gpus_per_node": 1},
    "--gres=gpu:a100": {"gpus_per_node": 1},
    "--gres=craynetwork:1,gpu:tesla:2(S:0-1)": {"gpus_per_node": 2},
    "--gres=none": {"gpus_per_node": 0},
    "--ntasks-per-node=4": {"tasks_per_node": 4},
    "--mem=16G": {"memory_per_node": 16384},
    "--mem=16GB": {"memory_per_node": 16384},
    "--mem 2000 --mem-per-cpu=1G": {"memory_per_node": 2000, "memory_per_core": 1024},
    "--mem-per-gpu=1024K --cpus-per-gpu=8": {"memory_per_gpu": 1, "cores_per_gpu": 8},
    "--exact --overlap --exclusive -l -u --mpi=pmix -t 10 -p pbatch": {},
    "--mpi pmix --time 10 --label --job-name n --cpu-bind cores": {},
    "-luN2": {"nodes": 2},
    "-O -n4 --": {"tasks": 4},
}
FLUX = {
    "-N 2 -n 8 -c 4 -g 1": {"nodes": 2, "tasks": 8, "cores_per_task": 4, "gpus_per_task": 1},
    "-N=2 --ntasks=8": {"nodes": 2, "tasks": 8},
    "--cores=8 --gpus-per-node=2": {"cores": 8, "gpus_per_node": 2},
    "--tasks-per-node 4 -N2": {"tasks_per_node": 4, "nodes": 2},
    "-o cpu-affinity=per-task -q debug -t 10m --unbuffered -l --env X=y": {},
    "-o mpi=spectrum -n4": {"tasks": 4},
}
JSRUN = {
    "-n 4 -a 2 -c 10 -g 1 -r 2": {
        **{"sets": 4, "tasks_per_set": 2, "cores_per_set": 10, "gpus_per_set": 1},
        "sets_per_node": 2,
    },
    "--nrs=4 --np 8 --cpu_per_rs 5 --memory_per_rs 100": {
        **{"sets": 4, "tasks": 8, "cores_per_set": 5, "memory_per_set": 100}
    },
    "-p 4 -b rs -d plane:2 -X 1 -E A=b": {"tasks": 4},
}
MPIRUN = {
    "-n 8": {"tasks": 8},
    "-np 8 -ppn 4": {"tasks": 8, "tasks_per_node": 4},
    "--np 8 -N 4 --oversubscribe --mca btl self": {"tasks": 8, "tasks_per_node": 4},
    "-np 4 --map-by ppr:2:node:PE=3": {"tasks": 4, "tasks_per_node": 2, "cores_per_task": 3},
    "-np 4 --map-by slot:PE=3 --bind-to core": {"tasks": 4, "cores_per_task": 3},
    "-np 4 --map-by node -x PATH -H a,b": {"tasks": 4},
    "-genv A 1 -n 2 -host h --allow-run-as-root": {"tasks": 2},
    "-np=4": {"tasks": 4},
}
APRUN = {"-n 32 -N 16 -d 2 -cc depth -b": {"tasks": 32, "tasks_per_node": 16, "cores_per_task": 2}}
IBRUN = {"-n 8 -o 4": {"tasks": 8}}

CASES = [
    (f"{tool} {given}", said)
    for tool, cases in {
        **{"srun": SRUN, "flux": FLUX, "jsrun": JSRUN, "mpirun": MPIRUN, "mpiexec": MPIRUN},
        **{"aprun": APRUN, "ibrun": IBRUN},
    }.items()
    for given, said in cases.items()
]


@pytest.mark.parametrize(("command", "said"), CASES)
def test_options_that_say_a_size(command: str, said: dict[str, int]):
    """They are read in every spelling; others pass, with their values; the program ends them."""
    assert sizes(f"{command} ./a -n 99") == said


@pytest.mark.parametrize(
    ("command", "unread"),
    [
        ("srun -N 2-4 a", ["-N 2-4"]),
        ("srun -n $N a", ["-n $N"]),
        ("srun -c= a", ["-c="]),
        ("srun -n 0 a", ["-n 0"]),
        ("srun --gpus-per-socket=2 --nodes=x a", ["--gpus-per-socket=2", "--nodes=x"]),
        ("srun --mem=lots a", ["--mem=lots"]),
        ("srun --gres=gpu:$G a", ["--gres=gpu:$G"]),
        ("srun -n", ["-n"]),
        ("flux -n four a", ["-n four"]),
        ("flux --tasks-per-core=2 a", ["--tasks-per-core=2"]),
        ("jsrun -c ALL_CPUS -g ALL_GPUS a", ["-c ALL_CPUS", "-g ALL_GPUS"]),
        ("mpirun --map-by ppr:1:socket a", ["--map-by ppr:1:socket"]),
        ("mpirun -np 9999999999 a", ["-np 9999999999"]),
        ("mpirun --app file a", ["--app file"]),
    ],
)
def test_options_that_cannot_be_read(command: str, unread: list[str]):
    """Whatever concerns size and is no number is named as it is written."""
    tool, *words = command.split()
    found = options(TOOLS[tool], words)
    assert found.unread == unread


def test_two_dashes_end_the_options():
    """What comes behind them is the program, whatever it looks like."""
    found = options(TOOLS["srun"], ["-n2", "--", "-n", "3"])
    assert (found.sizes, found.program) == ({"tasks": 2}, ("-n", "3"))


def test_flux_and_whole_nodes():
    """An option that takes whole nodes is told, not counted."""
    found = options(TOOLS["flux"], ["-N2", "-x", "a"])
    assert (found.whole, found.sizes, found.program) == (True, {"nodes": 2}, ("a",))


SPELLINGS = {
    "srun": {
        "nodes": ["-N {}", "-N{}", "--nodes={}", "--nodes {}"],
        "tasks": ["-n {}", "-n{}", "--ntasks={}", "--ntasks {}"],
        "cores_per_task": ["-c {}", "-c{}", "--cpus-per-task={}", "--cpus-per-task {}"],
        "gpus": ["-G {}", "-G{}", "--gpus={}", "--gpus a100:{}"],
        "gpus_per_node": ["--gres=gpu:{}", "--gres gpu:v100:{}", "--gpus-per-node={}"],
        "memory_per_node": ["--mem={}", "--mem {}M"],
    },
    "flux": {
        "nodes": ["-N {}", "-N{}", "-N={}", "--nodes={}", "--nodes {}"],
        "tasks": ["-n {}", "-n{}", "--ntasks={}"],
        "cores_per_task": ["-c {}", "-c{}", "--cores-per-task={}"],
        "gpus_per_task": ["-g {}", "-g{}", "--gpus-per-task {}"],
    },
    "jsrun": {
        "sets": ["-n {}", "-n{}", "--nrs={}", "--nrs {}"],
        "cores_per_set": ["-c {}", "-c{}", "--cpu_per_rs {}"],
        "gpus_per_set": ["-g {}", "-g{}", "--gpu_per_rs={}"],
    },
    "mpirun": {
        "tasks": ["-n {}", "-np {}", "--np {}", "-np={}", "--np={}"],
        "tasks_per_node": ["-ppn {}", "-N {}", "--map-by ppr:{}:node", "--npernode {}"],
    },
}
OTHERS = {
    "srun": ["--exact", "--mpi=pmix", "--mpi pmix", "-l", "-t 10", "-p batch", "--label"],
    "flux": ["-o x=1", "--setattr=y", "-q debug", "--unbuffered", "-t 10m", "-l"],
    "jsrun": ["-b rs", "-d packed", "-X 1", "--bind=none", "--immediate"],
    "mpirun": ["--oversubscribe", "-x A", "--mca a b", "-H h1,h2", "--bind-to none"],
}


@st.composite
def command_lines(draw: st.DrawFn) -> tuple[str, dict[str, int], str]:
    tool = draw(st.sampled_from(sorted(SPELLINGS)))
    said = draw(st.dictionaries(st.sampled_from(sorted(SPELLINGS[tool])), st.integers(1, 10**6)))
    written = [draw(st.sampled_from(SPELLINGS[tool][key])).format(n) for key, n in said.items()]
    written += draw(st.lists(st.sampled_from(OTHERS[tool])))
    return tool, said, " ".join(draw(st.permutations(written)))


@given(command_lines())
def test_what_is_written_is_read(line: tuple[str, dict[str, int], str]):
    """However options are spelt, mixed with others and ordered, their numbers come back."""
    tool, said, written = line
    assert sizes(f"{tool} {written} ./a -n 99") == said


@given(st.sampled_from(sorted(TOOLS)), st.lists(st.text(alphabet="-=:nNcgG4, $x.", max_size=9)))
def test_whatever_stands_there(tool: str, words: list[str]):
    """No words make it fail, and sizes are never less than nothing."""
    assert all(number >= 0 for number in options(TOOLS[tool], words).sizes.values())
