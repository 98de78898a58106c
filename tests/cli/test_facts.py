"""What a node has, and what a queue allows."""

from __future__ import annotations

import pytest

from scheduler_stand_in import StandIn
from taskgraph_workers.cli import facts
from taskgraph_workers.cli.facts import Found, choose, limits, look, parse_node
from taskgraph_workers.launch.model import Demand, WorkerGroup
from taskgraph_workers.machines import Node
from taskgraph_workers.schedulers.base import Answer, Command, Kind

SMALL = Kind("pdebug", 6, 8, 0, 4000, 3600, default=True)
GPU = Kind("pdebug", 2, 36, 4, 16000, 7200, default=True)
OTHER = Kind("pbatch", 9, 64, 8, None, None)


def group(cores: int = 1, gpus: int = 0) -> WorkerGroup:
    return WorkerGroup("g", 1, (Demand("s", cores=cores, gpus=gpus),), "start")


class Asked(StandIn):
    """A scheduler that says these kinds."""

    said: tuple[Kind, ...] = (SMALL, GPU, OTHER)

    def look(self) -> Command | None:
        return Command(("true",))

    def kinds(self, answer: Answer) -> tuple[Kind, ...]:
        return self.said


@pytest.mark.parametrize(
    ("queue", "kinds", "name"),
    [
        (None, (SMALL, GPU), "pdebug"),
        ("pbatch", (OTHER,), "pbatch"),
        ("pdebug,pbatch", (SMALL, GPU, OTHER), ""),
    ],
)
def test_the_nodes_of_a_queue(queue: str | None, kinds: tuple[Kind, ...], name: str):
    """Those of the queue that is named, else of the default."""
    assert look(Asked(), queue) == Found(kinds, name)  # type: ignore[arg-type]


def test_a_queue_that_is_not_there():
    """Is a problem, with the nearest name; where the scheduler says nothing, nobody knows."""
    (problem,) = look(Asked(), "pbatsch").unknown  # type: ignore[arg-type]
    assert (problem.message, problem.hint) == (
        "here has no queue 'pbatsch'",
        "did you mean 'pbatch'?",
    )
    silent = Asked()
    silent.said = ()
    assert look(silent, "pbatsch") == Found()  # type: ignore[arg-type]


def test_a_scheduler_that_is_elsewhere():
    """Is not asked."""
    assert look(Asked(tool="no-such-command"), None) == Found()  # type: ignore[arg-type]


def test_a_scheduler_that_hangs(monkeypatch: pytest.MonkeyPatch):
    """Is gone without: nothing waits for it."""
    monkeypatch.setattr(facts, "LOOK_S", 0.05)
    hung = Asked()
    hung.look = lambda: Command(("sleep", "60"))  # type: ignore[method-assign]
    hung.kinds = lambda answer: () if answer.exit_code is None else (SMALL,)  # type: ignore[method-assign]
    assert look(hung, None) == Found()  # type: ignore[arg-type]


def test_the_smallest_kind_that_will_do():
    """Of several; which one is told, with all there are."""
    found = Found((GPU, SMALL), "pdebug")
    chosen = choose(found, [group()])
    assert (chosen.node, chosen.source) == (Node(8, 0, 4000), "queue pdebug")
    (note,) = chosen.notes
    assert "nodes of queue pdebug differ (8 cores, 0 GPUs" in note.message
    assert "sized for those with 8 cores" in note.message
    assert choose(found, [group(gpus=1)]).node == Node(36, 4, 16000)
    assert choose(found, [group(cores=99)]).node == Node(8, 0, 4000)
    assert choose(Found((GPU,), "pdebug"), [group()]).notes == ()


def test_where_nobody_says_anything():
    """Nothing is known."""
    assert choose(Found(), []).node is None


@pytest.mark.parametrize(
    ("walltime_s", "nodes", "told"),
    [
        (7200, 8, []),
        (7201, 8, ["a walltime of 2:00:01 is over the limit of queue pdebug, 2:00:00"]),
        (None, 9, ["9 nodes are more than queue pdebug has, 8"]),
        (9000, 9, ["a walltime", "9 nodes"]),
    ],
)
def test_the_limits(walltime_s: int | None, nodes: int, told: list[str]):
    """What its queue would let wait for ever."""
    problems = limits(Found((SMALL, GPU), "pdebug"), walltime_s, nodes)
    assert len(problems) == len(told)
    assert all(p.message.startswith(t) for p, t in zip(problems, told))


def test_no_limit():
    """Where one kind has none, or nothing is known."""
    assert limits(Found((SMALL, OTHER)), 10**6, 1) == ()
    assert limits(Found(), 10**6, 10**6) == ()


@pytest.mark.parametrize("text", ["", "cores", "cores=", "cores=-1", "cores=1.5", "gpu=4", "a=b=c"])
def test_no_node(text: str):
    """Is said in one sentence."""
    with pytest.raises(ValueError, match=r"\w"):
        parse_node(text)
