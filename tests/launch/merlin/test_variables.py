"""Variables: what is replaced, where, and by what."""

from __future__ import annotations

from pathlib import Path

import pytest
from merlin_texts import HEAD, STUDY, faults, hints, notes, read

from taskgraph_workers.launch.merlin.model import Spec


def queue(variables: str, text: str, /, **given: str) -> str:
    spec = read(
        f"{HEAD}env: {variables}\nstudy:\n"
        f"- {{name: s, description: d, run: {{cmd: x, task_queue: {text}}}}}\n",
        **given,
    )
    return spec.steps[0].queue


@pytest.mark.parametrize(
    ("variables", "text", "value"),
    [
        ("{variables: {A: 1, B: b$(A)}}", "q$(B)", "qb1"),
        ("{variables: {B: b$(A), A: 1}}", "q$(B)", "qb1"),
        ("{variables: {A: 1}, labels: {L: l$(A)}}", "q$(L)", "ql1"),
        ("{variables: {a: 1}}", "q$(A)", "q1"),
        ("{variables: {a: 1}}", "q$(a)", "q1"),
        ("{variables: {A: 0.5}}", "q$(A)", "q0.5"),
        ("{variables: {A: $SOMEWHERE/x, B: '${SOMEWHERE}'}}", "$(A)$(B)", "here/xhere"),
    ],
)
def test_replaced(variables: str, text: str, value: str, monkeypatch: pytest.MonkeyPatch):
    """Variables use those above and below them, the environment, and count in upper case."""
    monkeypatch.setenv("SOMEWHERE", "here")
    assert queue(variables, text) == value


@pytest.mark.parametrize("other", [-1, 1])
def test_a_few_variables_that_stand_for_more_than_memory_holds(other: int):
    """Where each holds the one above it twice, or the one below, that is told, and at once."""
    names = ", ".join(f"A{n}: $(A{n + other})$(A{n + other})" for n in range(1, 60))
    env = f"{{variables: {{A0: xx, {names}, A60: xx}}}}"
    told = faults(f"{HEAD}env: {env}\n" + STUDY.replace("echo", f'"$(A{30 - 29 * other})"'))
    assert any("makes a text longer by more than 1048576 characters" in each for each in told)


def test_home(monkeypatch: pytest.MonkeyPatch):
    """``~`` is replaced in the value of a variable."""
    monkeypatch.setenv("HOME", "/home/ada")
    spec = read(
        f"{HEAD}env: {{variables: {{A: ~/x}}}}\n{STUDY}"
        "merlin: {resources: {workers: {w: {args: --pidfile $(A)}}}}\n"
    )
    assert [worker.args for worker in spec.workers or ()] == ["--pidfile /home/ada/x"]


def test_from_the_command_line():
    """A value from the command line counts for all that use it."""
    assert queue("{variables: {A: 1, B: b$(A)}}", "q$(B)", A="7") == "qb7"


def test_no_such_variable_on_the_command_line():
    """It is refused, with the nearest; what stands in the spec but is no variable, only told of."""
    text = f"{HEAD}env: {{variables: {{NNODES: 1}}}}\n{STUDY}"
    assert faults(text, QQQ="2") == ["0: : --vars QQQ=...: the spec has no such variable"]
    assert notes(read(text, NODES="2")) == [
        "2: env: --vars NODES=... changes nothing: it is no variable"
    ]


def test_names_that_merlin_keeps():
    """Merlin refuses a spec that gives one of its own words a value."""
    text = f"{HEAD}env: {{variables: {{SPECROOT: x, MERLIN_INFO: y}}}}\n{STUDY}"
    assert faults(text) == [
        "2: env.variables.SPECROOT: SPECROOT is a word that Merlin keeps for itself",
        "2: env.variables.MERLIN_INFO: MERLIN_INFO is a word that Merlin keeps for itself",
    ]


def test_a_variable_without_a_value():
    """Merlin refuses it, too."""
    assert faults(f"{HEAD}env: {{variables: {{A: , B: ''}}}}\n{STUDY}") == [
        "2: env.variables.A: a variable needs a value, a text or a number, not empty",
        "2: env.variables.B: a variable needs a value, a text or a number, not the string ''",
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("QUEUES", "$(QUEUES) is no variable of this spec"),
        ("P", "$(P) is a global parameter: workers know nothing of it"),
        ("X", "$(X) is a column of the samples: workers know nothing of it"),
        ("MERLIN_TIMESTAMP", "$(MERLIN_TIMESTAMP) is known only once the study runs"),
        ("s.workspace", "$(s.workspace) is known only once the study runs"),
    ],
)
def test_what_is_left_in_a_queue(name: str, told: str):
    """A worker would listen to a queue of that very name, into which nobody puts a task."""
    text = (
        f"{HEAD}env: {{variables: {{QUEUE: q}}}}\n"
        "global.parameters: {P: {values: [1], label: P.%%}}\n"
        "merlin: {samples: {column_labels: [X], file: f.npy}}\n"
        f"study:\n- {{name: s, description: d, run: {{cmd: x, task_queue: q_$({name})}}}}\n"
    )
    (fault,) = faults(text)
    assert fault.startswith(f"6: study.0.run.task_queue: {told}")


def test_the_nearest_variable():
    """A slip of the pen gets the variable that is meant."""
    from taskgraph_workers.launch.model import LaunchError

    with pytest.raises(LaunchError) as caught:
        queue("{variables: {QUEUE: q}}", "$(QEUE)")
    assert hints(caught.value.problems) == ["did you mean 'QUEUE'?"]


def test_the_folder_of_the_spec(tmp_path: Path):
    """``$(SPECROOT)`` is the folder that the spec is in."""
    from taskgraph_workers.launch.merlin.read import read_spec

    (tmp_path / "samples.csv").write_text("1,2\n3,4\n5,6\n")
    file = tmp_path / "spec.yaml"
    samples = "merlin: {samples: {column_labels: [A, B], file: $(SPECROOT)/samples.csv}}\n"
    file.write_text(HEAD + STUDY + samples)
    spec: Spec = read_spec(str(file), {})
    assert spec.samples == 3


def test_lower_case_outside_of_steps():
    """Merlin would start workers for a queue, or nodes, of that very text."""
    spec = read(
        f"{HEAD}env: {{variables: {{n: 2}}}}\n{STUDY}"
        "merlin: {resources: {workers: {w: {nodes: $(n)}}}}\n"
    )
    assert (spec.workers or ())[0].nodes == 2
    assert notes(spec) == [
        "5: merlin.resources.workers.w.nodes: Merlin replaces no $(n) outside of steps, since it"
        " is in lower case"
    ]
    assert hints(spec.notes) == ["write $(N)"]
