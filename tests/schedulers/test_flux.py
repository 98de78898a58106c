"""Flux: directives by its own parser, and answers of a real one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from flux_parser import options
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers.launch.script import Script, render
from taskgraph_workers.schedulers.base import Answer, Job, Kind, SchedulerError, Start, State
from taskgraph_workers.schedulers.flux import SCHEDULER as FLUX

SAID: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "flux" / "said.json").read_text(encoding="utf-8")
)
FULL = Job(
    name="sim workers",
    nodes=5,
    output="logs/workers-{id}.out",
    queue="pdebug",
    bank="wbronze",
    walltime_s=1200,
    cores=8,
    gpus=4,
    constraint="gpu&big",
    directives=("#flux: --urgency=20", "# a comment"),
)


def read(job: Job) -> list[str]:
    """What Flux's parser takes from a job's header."""
    return options("\n".join(["#!/bin/bash", *FLUX.header(job), "echo hi"]))


# --- directives -----------------------------------------------------------------------------


def test_whole_nodes():
    """Whole nodes are asked for by their number alone: -n would take one core of each."""
    assert read(FULL) == [
        "--job-name=sim workers",
        "--nodes=5",
        "--time-limit=1200s",
        "--queue=pdebug",
        "--bank=wbronze",
        "--output=logs/workers-{{id}}.out",
        "--requires=gpu&big",
        "--urgency=20",
    ]


def test_shared_nodes():
    """A job that shares its nodes asks for one slot on each, of its cores and GPUs."""
    asked = read(FULL._replace(exclusive=False))
    assert asked[1:5] == ["--nodes=5", "--nslots=5", "--cores-per-slot=8", "--gpus-per-slot=4"]


def test_nothing_said():
    """What nobody says is left to Flux."""
    assert read(Job()) == ["--job-name=workers", "--nodes=1"]


texts = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"]), min_size=1)


@given(texts, texts, texts, texts)
def test_values_come_back(name: str, queue: str, bank: str, constraint: str):
    """Flux's parser reads every value as it was said, and not one option more."""
    # Of a line, Python's shlex knows only what Python's own splitlines leaves together.
    job = Job(name=name, queue=queue, bank=bank, constraint=constraint)
    assert read(job) == [
        f"--job-name={name}",
        "--nodes=1",
        f"--queue={queue}",
        f"--bank={bank}",
        f"--requires={constraint}",
    ]


@pytest.mark.parametrize("value", ["a\n#flux: -N 4", "a\rb", "a\0b", "a\tb"])
@pytest.mark.parametrize("field", ["name", "queue", "bank", "output", "constraint"])
def test_line_breaks(field: str, value: str):
    """A value that would end its line is refused."""
    with pytest.raises(SchedulerError, match=r"line break|NUL|tab"):
        FLUX.header(FULL._replace(**{field: value}))


def test_what_flux_has_not():
    """All that can't be said to Flux is told at once, each with what to do instead."""
    job = Job(reservation="r", qos="high", requeue=True, exclusive=False, memory_mib=1)
    with pytest.raises(SchedulerError) as caught:
        FLUX.header(job)
    told = [str(problem).split(":")[0] for problem in caught.value.problems]
    assert told == ["memory", "reservation", "quality of service", "requeue"]
    assert all(problem.hint for problem in caught.value.problems)


def test_another_sentinel():
    """A directive of the user's own with another sentinel is refused, as Flux would do it."""
    with pytest.raises(SchedulerError, match="write #flux: at its start"):
        FLUX.header(FULL._replace(directives=("# flux: -t 5m",)))
    with pytest.raises(ValueError, match="sentinel changed"):
        options("#!/bin/bash\n#flux: -N 2\n# flux: -t 5m\n")


def test_the_rest_of_the_script():
    """Flux finds its directives in the header alone, with none behind the first command."""
    job = FULL._replace(directives=())
    script = render(Script(job, (Start("w", (1,), "work"),), about=("flux: x",)), FLUX)
    assert options(script) == read(job)


@pytest.mark.parametrize("record", SAID["directives"], ids=lambda record: record["note"])
def test_the_parser_is_flux(record: dict[str, Any]):
    """The parser says of a script what a real flux batch said: so it may judge ours."""
    by_parser = "orphan" in record["stderr"] or "sentinel" in record["stderr"]
    if by_parser or "No closing quotation" in record["stderr"]:
        with pytest.raises(ValueError, match=r"orphan|sentinel|No closing"):
            options(record["script"])
        return
    names = [word[11:] for word in options(record["script"]) if word.startswith("--job-name=")]
    if record["exit_code"] == 0 and names:
        assert record["name"] == names[-1]


# --- workers --------------------------------------------------------------------------------


def test_start():
    """What holds nothing says no resources; a command is one word, whatever is in it."""
    assert FLUX.start(Start("w", (2, 2, 1), "work")) == "tw_start_group w on=2x2,1x1 work"
    held = FLUX.start(Start("w", (1,), "a 'b' $c", holds=True, cores=2, gpus=1))
    assert held == """tw_start_group w on=1x1 cores=2 gpus=1 'a '"'"'b'"'"' $c'"""


@pytest.mark.parametrize("name", ["a b", "a/b", "a;b", "", "$(id)"])
def test_names(name: str):
    """A group's name is part of file names, so signs that mean something are refused."""
    with pytest.raises(ValueError, match="is no name"):
        FLUX.start(Start(name, (1,), "work"))


# --- answers --------------------------------------------------------------------------------


def test_output_files():
    """Flux may write its ids with a letter of its own."""
    assert FLUX.output_files(Job(output="w-{id}.out"), "fABC") == ("w-fABC.out", "w-ƒABC.out")
    assert FLUX.output_files(Job(), "fABC") == ()


@pytest.mark.parametrize("record", SAID["submitted"], ids=lambda record: record["command"])
def test_submitted(record: dict[str, Any]):
    """The id, in ASCII, of what flux batch took; of the rest, what it said."""
    answer = Answer(record["exit_code"], record["stdout"], record["stderr"])
    if record["exit_code"] == 0:
        assert FLUX.submitted(answer) == "f" + record["stdout"].strip()[1:]
        return
    with pytest.raises(SchedulerError) as caught:
        FLUX.submitted(answer)
    assert record["stderr"].split("ERROR: ")[-1].strip() in str(caught.value)


def test_submitted_says_nothing():
    """A flux batch that prints no id (--quiet) did not take the job, as far as we know."""
    with pytest.raises(SchedulerError, match="it said nothing"):
        FLUX.submitted(Answer(0))


def test_submit_asks_for_ascii():
    """Ids are asked for in ASCII, since they become names of files and workers."""
    argv = FLUX.submit("/x/workers.flux", "").argv
    assert argv == ("env", "FLUX_F58_FORCE_ASCII=1", "flux", "batch", "/x/workers.flux")


ENDED = {
    "good one": State("ended", "COMPLETED", "node[3-4]", True),
    "true": State("ended", 'FAILED: alloc denied due to type="unsatisfiable"', "", False),
    "false": State("ended", "FAILED", "node4", False),
    "sleep": State("ended", "TIMEOUT: resource allocation expired", "node4", False),
    "trap": State("ended", "CANCELED", "node2", False),
}


@pytest.mark.parametrize("record", SAID["ended"], ids=lambda record: record["name"])
def test_ended(record: dict[str, str]):
    """How a job ended; an impossible one was accepted, and failed at once."""
    state = FLUX.state("fX", Answer(0, record["answer"] + "\n"))
    assert (state.phase, state.succeeded) == ("ended", record["name"] == "good one")
    if record["name"] in ENDED:
        assert state == ENDED[record["name"]]


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("SCHED|||", State("pending", "SCHED")),
        ("RUN||node[1-2]|", State("running", "RUN", "node[1-2]")),
        ("CLEANUP|0|node1|", State("running", "CLEANUP", "node1")),
        ("FAILED|1|node1|a|b", State("ended", "FAILED: a|b", "node1", False)),
        ("WHAT|1|node1|", State("unknown", "WHAT", "node1")),
    ],
)
def test_states(answer: str, state: State):
    """Every state of a job; a note may hold the sign that parts fields."""
    assert FLUX.state("fX", Answer(0, answer)) == state


def test_unknown():
    """A job that nobody knows is unknown; where nobody can be asked, that is said instead."""
    unknown, unreachable = SAID["unknown"], SAID["unreachable"]
    assert FLUX.state("f1234", Answer(1, "", unknown["stderr"])) == State("unknown")
    answer = Answer(unreachable["exit_code"], "", unreachable["stderr"])
    with pytest.raises(SchedulerError, match="Unable to connect to Flux"):
        FLUX.state("f1234", answer)
    with pytest.raises(SchedulerError, match="Unable to connect to Flux"):
        FLUX.found("w", answer)


def test_found():
    """Jobs of a name are those that have all of it."""
    answer = Answer(0, "ƒAB|w\nfCD|w2\nfEF|a|w\nfGH|w\n")
    assert FLUX.found("w", answer) == ("fAB", "fGH")


def test_kinds():
    """Nodes as the resource set says, alike ones together; nothing where it says nothing."""
    said = SAID["resources"][0]["stdout"]
    assert FLUX.kinds(Answer(0, said)) == (Kind("", 4, 8, 4, default=True),)
    lite = [
        {"rank": "0-1,5", "children": {"core": "0-35"}},
        {"rank": "2-3", "children": {"core": "0-7", "gpu": "0-3"}},
        {"rank": "4", "children": {"core": "0-3,8-11", "gpu": "0,1,2,3"}},
    ]
    answer = Answer(0, json.dumps({"execution": {"R_lite": lite}}))
    kinds = FLUX.kinds(answer)
    assert kinds == (Kind("", 3, 36, 0, default=True), Kind("", 3, 8, 4, default=True))
    for nothing in ("", "{}", "[1]", '{"execution": {"R_lite": [{"rank": "x"}]}}'):
        assert FLUX.kinds(Answer(1, nothing)) == ()
