"""What Merlin's own schema refuses is told, even where it does not matter to us."""

from __future__ import annotations

import pytest
from merlin_texts import HEAD, STUDY, notes, read, study


@pytest.mark.parametrize(
    "run",
    [
        *("shell: ''", "restart: ''", "pre: ", "qos: 5", "reservation: [a]", "flux: 5", "slurm: "),
        *("max_retries: 0", "max_retries: x", "exclusive: maybe", "nested: 1", "priority: soon"),
        *("priority: 2", "priority: hIGH", "exit_on_error: 2", "exit_on_error: true", "bind: ''"),
        *(
            "num resource set: 0",
            "rs per node: two",
            "depends: ",
            "nodes: ",
            "gpus: ",
            "walltime: ",
        ),
    ],
)
def test_values_of_a_run(run: str):
    """Merlin refuses each of these, and so runs nothing."""
    found = notes(study(f"cmd: a\n{run}"))
    key = run.partition(":")[0]
    assert [note for note in found if note.startswith(f"9: study.0.run.{key}: Merlin refuses ")]


@pytest.mark.parametrize(
    "run",
    [
        *("shell: ", "max_retries: ", "max_retries: 1", "exclusive: true", "exclusive: $(X)"),
        *("nested: false", "priority: HIGH", "priority: 0.5", "exit_on_error: 0", "pre: x"),
        *("rs per node: 2", "rs per node: $(X)", "task_queue: ", "cores: ", "retry_delay: 0"),
    ],
)
def test_values_that_merlin_takes(run: str):
    """Of these nothing is told."""
    assert [note for note in notes(study(f"cmd: a\n{run}")) if "Merlin refuses" in note] == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("batch: {nodes: }\n", "2: batch.nodes: Merlin refuses empty here: it has to be a value"),
        ("batch: {walltime: }\n", "2: batch.walltime: Merlin refuses empty here"),
        ("env: {sources: x}\n", "2: env.sources: Merlin refuses the string 'x' here"),
        ("env: {variables: {A: true}}\n", "2: env.variables.A: Merlin refuses true here"),
        ("env: {variables: {A: 2026-01-01}}\n", "2: env.variables.A: Merlin refuses a date here"),
        ("merlin: {resources: {workers: {w: {args: }}}}\n", "2: merlin.resources.workers.w.args"),
        ("merlin: {resources: {workers: {w: {args: ''}}}}\n", "2: merlin.resources.workers.w.args"),
    ],
)
def test_values_of_other_blocks(text: str, told: str):
    """The same for batch blocks, variables and workers."""
    assert notes(read(f"{HEAD}{text}{STUDY}"))[0].startswith(told)
