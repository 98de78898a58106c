"""Steps: their queues, what they wait for, and how often each of them runs."""

from __future__ import annotations

import pytest
from merlin_texts import HEAD, faults, hints, notes, read

from taskgraph_workers.launch.merlin.model import Step
from taskgraph_workers.launch.model import LaunchError

PARAMETERS = (
    "global.parameters:\n  A: {values: [1, 2], label: A.%%}\n  B: {values: [1, 2], label: B}\n"
)
SAMPLES = "merlin: {samples: {column_labels: [X, Y], file: f.npy}}\n"


def steps(*runs: str, more: str = "") -> dict[str, Step]:
    """Steps s0, s1, ... with these runs."""
    return {step.name: step for step in read(text(*runs, more=more)).steps}


def text(*runs: str, more: str = "") -> str:
    lines = [f"- {{name: s{at}, description: d, run: {{{run}}}}}\n" for at, run in enumerate(runs)]
    return f"{HEAD}{more}study:\n{''.join(lines)}"


@pytest.mark.parametrize(
    ("run", "used"),
    [
        ("cmd: x", set()),
        ("cmd: x $(A)", {"A"}),
        ("cmd: x $(A.label) $(B)", {"A", "B"}),
        ("cmd: x, restart: y $(B)", {"B"}),
        ("cmd: x, slurm: -c $(A)", {"A"}),
        ("cmd: x $(V)", {"A"}),
        ("cmd: x $(AB)", set()),
    ],
)
def test_parameters_of_a_step(run: str, used: set[str]):
    """Those that stand anywhere in it, also by way of variables, as Maestro looks for them."""
    more = PARAMETERS + "env: {variables: {V: $(A)}}\n"
    assert steps(run, more=more)["s0"].parameters == used


@pytest.mark.parametrize(
    ("depends", "used"), [("[s0]", {"A"}), ("[s0_*]", set()), ("[s0*]", set()), ("[]", set())]
)
def test_parameters_of_parents(depends: str, used: set[str]):
    """A step runs once for each run of its parent, but for one that waits for all of them."""
    found = steps(
        "cmd: x $(A)", f"cmd: y, depends: {depends}", "cmd: z, depends: [s1]", more=PARAMETERS
    )
    assert found["s1"].parameters == found["s2"].parameters == used


@pytest.mark.parametrize(("depends", "used"), [("[s0]", {"A"}), ("[s0_*]", set())])
def test_parameters_by_way_of_a_workspace(depends: str, used: set[str]):
    """Whose workspace is used hands on its parameters, unless all of its runs are waited for."""
    run = f"cmd: y $(s0.workspace), depends: {depends}"
    assert steps("cmd: x $(A)", run, more=PARAMETERS)["s1"].parameters == used
    assert steps("cmd: x $(A)", "cmd: y $(s0.workspace)", more=PARAMETERS)["s1"].parameters == {"A"}


@pytest.mark.parametrize(
    ("run", "sampled"),
    [
        ("cmd: x $(X)", True),
        ("cmd: x, restart: y $(Y)", True),
        ("cmd: x $(MERLIN_SAMPLE_ID)", True),
        ("cmd: x $(MERLIN_SAMPLE_PATH)", True),
        ("cmd: x $(MERLIN_SAMPLE_VECTOR)", True),
        ("cmd: x $(MERLIN_GLOB_PATH)", False),
        ("cmd: x $(Z) $X", False),
        ("cmd: x, task_queue: q, slurm: $(X)", False),
    ],
)
def test_steps_that_run_for_each_sample(run: str, sampled: bool):
    """Those whose scripts have a column's name, or Merlin's own word for the sample."""
    assert steps(run, more=SAMPLES)["s0"].samples is sampled


def test_without_samples_no_step_runs_for_each():
    """There are none to run for."""
    assert not steps("cmd: x $(MERLIN_SAMPLE_ID)")["s0"].samples


def test_queues():
    """Merlin's own is ``merlin``; a variable may be in it."""
    found = steps(
        "cmd: x", "cmd: x, task_queue: q", "cmd: x, task_queue: q_$(V)", "cmd: x, task_queue: ",
        more="env: {variables: {V: 7}}\n",
    )  # fmt: skip
    assert [step.queue for step in found.values()] == ["merlin", "q", "q_7", "merlin"]
    assert [step.queue_line for step in found.values()] == [0, 5, 6, 7]


def test_a_queue_of_the_name_none():
    """Merlin puts its tasks elsewhere than its workers look."""
    assert "tasks and workers would not meet" in faults(text("cmd: x, task_queue: None"))[0]


def test_what_steps_wait_for():
    """It is kept as written; what is not there is refused, with the nearest."""
    assert steps("cmd: x", "cmd: y, depends: [s0_*]")["s1"].depends == ("s0_*",)
    with pytest.raises(LaunchError) as caught:
        steps("cmd: x", "cmd: y, depends: [s00]")
    assert hints(caught.value.problems) == ["did you mean 's0'?"]


@pytest.mark.parametrize("runs", [["cmd: x, depends: [s0]"], ["cmd: x, depends: [s1]"] * 2])
def test_steps_that_wait_for_one_another(runs: list[str]):
    """None of them could ever start."""
    runs = [run.replace("s1", f"s{1 - at}") for at, run in enumerate(runs)]
    assert "these steps wait for one another: s0" in faults(text(*runs))[0]


def test_more_faults_of_steps():
    """Each at its line."""
    found = faults(text("cmd: x, depends: [s1, s1]", "cmd: ''", "cmd: [x]", "cmd: x, batch: slurm"))
    assert found == [
        "3: study.0.run.depends.1: 's1' stands here twice",
        "4: study.1.run.cmd: needs a cmd",
        "5: study.2.run.cmd: must be a text, not a list",
        "6: study.3.run.batch: must be a mapping, not the string 'slurm'",
    ]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            "{A: {values: [1], label: A}, B: {values: [1, 2], label: B}}",
            "A: has 1 values, and another",
        ),
        ("{A: {values: [], label: A}}", "A.values: has no values: Merlin would run no task"),
        ("{A: {values: 1, label: A}}", "A.values: values must be a list, not the number 1"),
        ("{A: {values: [1]}}", "A.label: label must be a text such as A.%%, not empty"),
        ("{A: [1]}", "A: must be a mapping, not a list"),
        ("[A]", ": must be a mapping, not a list"),
    ],
)
def test_faults_of_parameters(values: str, told: str):
    """All parameters have equally many values, and a label."""
    found = faults(text("cmd: x", more=f"global.parameters: {values}\n"))
    assert told in found[0]


def test_unknown_keys_of_env_and_parameters():
    """They are told of."""
    more = "env: {variabels: {A: 1}}\nglobal.parameters: {A: {values: [1], label: A, lable: x}}\n"
    assert [note.split(":")[1] for note in notes(read(text("cmd: x", more=more)))] == [
        " env.variabels",
        " global.parameters.A.lable",
    ]
