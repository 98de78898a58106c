"""Whole specs: what is in them, every fault at once, and the public ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from merlin_texts import HEAD, STUDY, faults, notes, read

from taskgraph_workers.launch.merlin.read import read_spec
from taskgraph_workers.launch.model import LaunchError

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "merlin"

WHOLE = """
description: {name: $(NAME), description: all of it}
batch: {type: slurm, nodes: 2, queue: pdebug, bank: b, walltime: "01:00:00", reservation: r}
env:
  variables: {NAME: study_$(N), N: 3, Q: q_$(N)}
global.parameters:
  P: {values: [1, 2], label: P.%%}
study:
- name: one
  description: first
  run: {cmd: $(LAUNCHER) a $(P) $(X), nodes: 2, procs: $(N), task_queue: $(Q)}
- name: two
  description: second
  run: {cmd: b, depends: [one]}
merlin:
  resources:
    overlap: true
    workers:
      $(Q)_workers: {args: -l INFO --concurrency $(N), steps: [one], number: 5, nodes: $(N)}
  samples: {column_labels: [X], file: nowhere.npy, generate: {cmd: make}}
"""


def test_a_whole_spec():
    """Everything that a launch needs is read, with variables replaced and lines noted."""
    spec = read(WHOLE.replace("NAME: study_$(N), N: 3", "N: 3, NAME: study_$(N)"))
    assert (spec.name, spec.rows, spec.values) == ("study_3", 2, {"P": ("1", "2")})
    assert (spec.samples, spec.overlap, spec.workers_line) == (None, True, 18)
    batch, header = spec.batch, spec.batch.header
    assert (batch.type, header.nodes, header.queue, header.bank) == ("slurm", 2, "pdebug", "b")
    assert (header.walltime_s, header.reservation, batch.line) == (3600, "r", 3)
    one, two = spec.steps
    assert (one.queue, one.queue_line, one.line, one.samples) == ("q_3", 11, 9, True)
    assert (two.queue, two.queue_line, two.depends, two.samples) == ("merlin", 0, ("one",), False)
    assert one.parameters == two.parameters == {"P"}
    (worker,) = spec.workers or ()
    assert (worker.name, worker.args) == ("q_3_workers", "-l INFO --concurrency 3")
    assert (worker.number, worker.nodes, worker.line, worker.lines["number"]) == (5, 3, 19, 19)


def test_a_variable_may_stand_before_those_that_it_uses():
    """As Merlin replaces them: one after another, in the order of the file."""
    assert read(WHOLE).name == "study_3"


def test_a_spec_says_little():
    """A name, a description and one step are enough."""
    spec = read(HEAD + STUDY)
    assert (spec.batch.type, spec.batch.line, spec.workers, spec.workers_line) == (
        "local",
        0,
        None,
        0,
    )
    assert (spec.rows, spec.samples, spec.notes) == (1, 0, ())


def test_every_fault_at_once():
    """No run of the command is needed for each fault, and warnings come along."""
    text = """
        description: {name: n}
        batch: {nodes: 0, wall_time: 10, walltime: soon}
        study:
        - {name: a, description: d, run: {cmd: x, nodes: none, depends: [b]}}
        - {name: a, run: {}}
        merlin:
          resources: {overlap: maybe, workers: {w: {steps: [c], number: two}}}
          samples: {file: x, columns: [A]}
        """
    assert faults(text) == [
        "2: description: needs a description",
        "3: batch.nodes: must be a whole number from 1, not the number 0",
        "3: batch.walltime: 'soon' is no duration: write 90m, 2h, 1-00:00:00, H:M:S or a number of"
        " seconds",
        "5: study.0.run.nodes: must be a whole number from 1, not none",
        "5: study.0.run.depends: 'a' depends on 'b', and there is no such step",
        "6: study.1: needs a description",
        "6: study.1.name: there is a step 'a' on line 5 already",
        "6: study.1.run: needs a cmd",
        "8: merlin.resources.overlap: must be true or false, not the string 'maybe'",
        "8: merlin.resources.workers.w.steps.0: there is no step 'c'",
        "8: merlin.resources.workers.w.number: must be a whole number from 1, not two",
        "9: merlin.samples: samples need column_labels: Merlin fails without them",
        "9: merlin.samples.columns: 'columns' is no key of merlin.samples: Merlin drops it without"
        " a word",
    ]


def test_warnings_come_with_the_faults():
    """Who mends the faults sees at once what else is odd."""
    with pytest.raises(LaunchError) as caught:
        read(HEAD + "batch: {wall_time: 10}\nstudy: []\n")
    assert {each.severity for each in caught.value.problems} == {"error", "warning"}
    assert "did you mean 'walltime'?" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "needs a name"),
        ("study: {}\n", "must be a list of steps, not a mapping"),
        ("[1, 2]\n", "must hold a mapping, not a list"),
        ("a: [\n", "not readable as YAML"),
        ("a: \x07\n", "not readable as YAML"),
        ("a: &a [*a]\n", "goes deeper than any configuration does, or contains itself"),
        ("a: !!python/name:os.system\n", "not readable as YAML"),
        ("a: 1\n---\nb: 1\n", "only one document"),
        (HEAD + "study: [1]\n", "a step must be a mapping, not the number 1"),
        (HEAD + "study:\n- {name: s, description: d}\n", "a step needs a run, with a cmd in it"),
        (HEAD + STUDY + "merlin: {resources: {task_server: x}}", "only celery is a task_server"),
    ],
)
def test_what_is_no_spec(text: str, told: str):
    """Whatever the file holds, there is a sentence about it."""
    with pytest.raises(LaunchError, match="(?s)" + told.replace("(", r"\(")):
        read(text)


def test_a_spec_that_stands_for_more_than_memory_holds():
    """A few anchors can stand for billions of values: they are counted before they are made."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 12):
        inside = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} [{inside}]")
    with pytest.raises(LaunchError, match="stands for more than 250000 values"):
        read(HEAD + STUDY + "\n".join(lines) + "\n")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_marks_of_an_encoding(encoding: str, tmp_path: Path):
    """That of UTF-8 is passed over, as Merlin does; UTF-16 is refused, as Merlin does."""
    file = tmp_path / "spec.yaml"
    file.write_text(HEAD + STUDY, encoding)
    if encoding == "utf-8-sig":
        assert read_spec(str(file), {}).steps
        return
    with pytest.raises(LaunchError, match="is UTF-16, and Merlin reads UTF-8 alone"):
        read_spec(str(file), {})


def test_a_file_without_an_end():
    """Nothing is read that no memory holds."""
    with pytest.raises(LaunchError, match="/dev/zero:1:1: is larger than any configuration"):
        read_spec("/dev/zero", {})


def test_a_file_that_is_not_there():
    """The file is named."""
    with pytest.raises(LaunchError, match=r"nowhere\.yaml: there is no such file"):
        read_spec("nowhere.yaml", {})


def test_a_key_that_stands_twice_is_told():
    """Merlin takes the last of them, as YAML does."""
    spec = read(HEAD + "batch: {queue: a, queue: b}\n" + STUDY)
    assert spec.batch.header.queue == "b"
    assert notes(spec) == [
        "2: batch.queue: this key stands on line 2 already; YAML takes the last only"
    ]


def test_what_anchors_bring_counts():
    """A merged key counts as if it stood there, and is found where it is written."""
    spec = read(
        HEAD + "user:\n  run: &run {cmd: x, nodes: 2, proc: 3}\n"
        "study:\n- {name: s, description: d, run: {<<: *run, cmd: $(LAUNCHER) y}}\n"
    )
    assert spec.steps[0].demand is not None
    assert spec.steps[0].demand.nodes == 2
    assert any(note.startswith("3: study.0.run.proc: 'proc' is no key") for note in notes(spec))


def corpus() -> list[Path]:
    return sorted(CORPUS.glob("*.yaml"))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus of public specs is not here")
def test_the_public_specs():
    """Those that are invalid are refused, at the line of the fault; every other one is read."""
    refused = {}
    for file in corpus():
        try:
            spec = read_spec(str(file), {})
        except LaunchError as error:
            refused[file.stem] = [problem.line for problem in error.problems]
        else:
            assert spec.steps
            assert all(step.demand for step in spec.steps)
    assert refused == {
        "merlin-bad_format4": [16],
        "merlin-bad_format5": [17],
        "merlin-bad_format6": [18],
        "merlin-bad_format7": [23],
    }


SIZES = {
    "issue-example": {"step_1": (2, 4, 0), "step_2": (1, 1, 4)},
    "issue-example-runnable": {"step_1": (2, 4, 0), "step_2": (1, 1, 4)},
    "merlin-slurm_par": {"build": (1, 1, 0), "runs": (2, 2, 0), "data": (1, 1, 0)},
    "merlin-lsf_par": {"runs": (2, 2, 0)},
    "merlin-flux_par": {"runs": (1, 4, 0)},
    "merlin-slurm_par_restart": {"runs": (1, 4, 0)},
    "merlin-hpc_demo": {"sample_names": (1, 1, 0), "collect": (1, 1, 0)},
}


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus of public specs is not here")
@pytest.mark.parametrize("name", SIZES)
def test_the_sizes_of_public_specs(name: str):
    """What a task of each step takes: nodes, cores and GPUs a node, worked out by hand."""
    spec = read_spec(str(CORPUS / f"{name}.yaml"), {})
    found = {step.name: step.demand for step in spec.steps}
    for step, size in SIZES[name].items():
        demand = found[step]
        assert demand is not None
        assert (demand.nodes, demand.cores, demand.gpus) == size
