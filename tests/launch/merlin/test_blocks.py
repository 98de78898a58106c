"""Batch blocks and workers."""

from __future__ import annotations

import pytest
from merlin_texts import HEAD, STUDY, faults, hints, notes, read

from taskgraph_workers.launch.merlin.model import Batch, Worker
from taskgraph_workers.machines import Header


def batch(text: str) -> Batch:
    return read(f"{HEAD}batch: {text}\n{STUDY}").batch


def workers(text: str) -> tuple[Worker, ...]:
    return read(f"{HEAD}{STUDY}merlin: {{resources: {{workers: {text}}}}}\n").workers or ()


def test_a_batch_block():
    """All that Merlin reads, and what we read besides for the header of the script."""
    found = batch(
        "{type: flux, nodes: 4, queue: q, bank: b, shell: /bin/tcsh, flux_path: /f, name: n,"
        " flux_start_opts: -o, launch_pre: x, launch_args: y, worker_launch: z, output: o.%j}"
    )
    assert found == Batch(
        "flux",
        Header(nodes=4, queue="q", bank="b", name="n", output="o.%j"),
        **{"shell": "/bin/tcsh", "flux_path": "/f", "flux_start_opts": "-o", "launch_pre": "x"},
        **{"launch_args": "y", "worker_launch": "z", "line": 2},
    )


def test_an_empty_value_is_none():
    """As Merlin has it."""
    assert batch("{type: , queue: '', bank: }") == Batch(line=2)


@pytest.mark.parametrize("key", ["reservation", "qos", "constraint"])
def test_header_keys_that_merlin_drops(key: str):
    """They reach the header of the script, and it is told that Merlin has no use for them."""
    spec = read(f"{HEAD}batch: {{{key}: x}}\n{STUDY}")
    assert getattr(spec.batch.header, key) == "x"
    assert notes(spec) == [
        f"2: batch.{key}: Merlin drops {key!r}; launch puts it into the header of the script"
    ]


def test_keys_that_nobody_knows():
    """They are kept, told of, and the nearest that there is comes along."""
    spec = read(f"{HEAD}batch: {{reservatoin: x, host: y, walltime:1}}\n{STUDY}")
    assert spec.batch.other == {"reservatoin": "x", "host": "y", "walltime:1": None}
    assert notes(spec)[0] == (
        "2: batch.reservatoin: 'reservatoin' is no key of a batch block:"
        " Merlin drops it without a word"
    )
    first, second, third = hints(spec.notes)
    assert first == "did you mean 'reservation'?"
    assert second.startswith("there is: bank, constraint, ")
    assert third == "put a space after the colon: walltime: 1"


def test_values_that_are_no_texts():
    """Merlin refuses them; what is meant is plain."""
    spec = read(f"{HEAD}batch: {{bank: 0123, queue: on}}\n{STUDY}")
    assert (spec.batch.header.bank, spec.batch.header.queue) == ("0123", "on")
    assert [hint for hint in hints(spec.notes) if "in quotes: " in hint]
    assert faults(f"{HEAD}batch: {{queue: [a]}}\n{STUDY}") == [
        "2: batch.queue: must be a text, not a list"
    ]


@pytest.mark.parametrize(
    ("type", "hint"), [("slrum", "did you mean 'slurm'?"), ("sge", "there is: flux, local, lsf")]
)
def test_a_type_that_merlin_does_not_know(type: str, hint: str):
    """Merlin takes it, and fails with the first task."""
    (note,) = read(f"{HEAD}batch: {{type: {type}}}\n{STUDY}").notes
    assert (note.line, note.path) == (2, ("batch", "type"))
    assert note.hint.startswith(hint)


@pytest.mark.parametrize("nodes", ["all", "$(N)"])
def test_all_nodes(nodes: str):
    """Merlin's documentation has it and Merlin refuses it: it is as if nothing were written."""
    text = f"{HEAD}env: {{variables: {{N: all}}}}\nbatch: {{nodes: {nodes}}}\n{STUDY}"
    spec = read(text)
    assert spec.batch.header.nodes is None
    assert "Merlin refuses nodes: all" in notes(spec)[0]


def test_a_worker():
    """All of its keys, each with its line, and a batch block that replaces the spec's whole."""
    (found,) = workers(
        "{w: {args: -l INFO, steps: [s], nodes: 2, number: 3, machines: [a, b],"
        " batch: {type: slurm, queue: q}}}"
    )
    assert (found.name, found.args, found.steps) == ("w", "-l INFO", ("s",))
    assert (found.nodes, found.number, found.machines) == (2, 3, ("a", "b"))
    assert found.batch == Batch("slurm", Header(queue="q"), line=4)
    assert (found.line, set(found.lines.values())) == (4, {4})


def test_a_worker_says_little():
    """Without steps it serves all of them."""
    assert workers("{w: {}}") == (Worker("w", line=4),)
    assert workers("{w: {args: , batch: , nodes: }}")[0].batch is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{}", "workers: names no worker: Merlin refuses that"),
        ("[w]", "workers: must be a mapping with at least one worker, not a list"),
        ("{w: }", "workers.w: says nothing: Merlin fails on that"),
        ("{w: [s]}", "workers.w: must be a mapping, not a list"),
        ("{w: {steps: s}}", "workers.w.steps: must be a list, not the string 's'"),
        ("{w: {steps: []}}", "workers.w.steps: names no step: Merlin fails on that"),
        ("{w: {steps: [t]}}", "workers.w.steps.0: there is no step 't'"),
        ("{w: {steps: [s, s]}}", "workers.w.steps.1: 's' stands here twice"),
        ("{w: {nodes: 0}}", "workers.w.nodes: must be a whole number from 1, not the number 0"),
        ("{w: {number: -1}}", "workers.w.number: must be a whole number from 1, not the number -1"),
        ("{w: {number: true}}", "workers.w.number: must be a whole number from 1, not true"),
        ("{$(W): {}}", "workers.$(W): $(W) is no variable of this spec"),
        ("{w: {batch: 1}}", "workers.w.batch: must be a mapping, not the number 1"),
    ],
)
def test_faults_of_workers(text: str, told: str):
    """Each is refused at its line."""
    spec = f"{HEAD}{STUDY}merlin: {{resources: {{workers: {text}}}}}\n"
    assert faults(spec) == [f"4: merlin.resources.{told}"]


def test_all_behind_other_steps():
    """Merlin takes it for the name of a step then, and fails."""
    spec = read(f"{HEAD}{STUDY}merlin: {{resources: {{workers: {{w: {{steps: [s, all]}}}}}}}}\n")
    assert (spec.workers or ())[0].steps == ("s", "all")
    assert "Merlin fails where all is not the first" in notes(spec)[0]


def test_two_workers_of_one_name():
    """Variables may make two names one."""
    text = (
        f"{HEAD}env: {{variables: {{A: w, B: w}}}}\n{STUDY}"
        "merlin: {resources: {workers: {$(A): {}, $(B): {}}}}\n"
    )
    assert faults(text) == [
        "5: merlin.resources.workers.$(B): there is a worker 'w' on line 5 already"
    ]


def test_a_number_is_ours():
    """Merlin's run-workers would start other workers; that is said once, of however many."""
    spec = read(f"{HEAD}{STUDY}merlin: {{resources: {{workers: {{w: {{number: 50}}}}}}}}\n")
    assert "Merlin itself ignores number" in notes(spec)[0]
    two = "{w: {number: 50}, v: {number: 10}}"
    assert len(read(f"{HEAD}{STUDY}merlin: {{resources: {{workers: {two}}}}}\n").notes) == 1


def test_unknown_keys_of_a_worker():
    """They are told of, with the nearest."""
    spec = read(f"{HEAD}{STUDY}merlin: {{resources: {{workers: {{w: {{numbr: 50}}}}}}}}\n")
    assert hints(spec.notes) == ["did you mean 'number'?"]
