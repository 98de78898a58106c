"""How a plan reads: for people, and for programs."""

from __future__ import annotations

import pytest

from taskgraph_workers.cli import planned
from taskgraph_workers.cli.output import Output
from taskgraph_workers.detect import Detect
from taskgraph_workers.graph.compare import Comparison, Move, Where
from taskgraph_workers.graph.plan_json import as_json

SPOT = Where("proj-1/gpu-4", "docker-worker")
RUN_TIME = ("task", "payload", "maxRunTime")


def move(label: str, **more: object) -> Move:
    fields = {"before": SPOT, "after": Where("proj-onprem/snakepit", "docker-worker"), **more}
    return Move(label, label.rpartition("-")[0], **fields)  # type: ignore[arg-type]


FOUND = Comparison(
    moves=(
        move(
            "score-a",
            after=Where("proj-onprem/desktop", "generic-worker"),
            env={"GPUS": ("0 1 2 3", None), "WORKSPACE": (None, {"task-reference": "<a>"})},
            other={
                ("dependencies", "docker-image"): ("docker-image-train", None),
                ("task", "payload", "image"): ({"path": "x"}, None),
                RUN_TIME: (3600, 5400),
            },
        ),
        *(move(f"train-{n}", env={"WORKSPACE": ("12000", "8000")}) for n in range(1, 5)),
        move("train-5", env={"WORKSPACE": ("12000", Detect("gpu-memory", share=0.75))}),
        move("train-6", after=SPOT, env={"TOKEN": ("x", Detect("inherited"))}),
    ),
    added=("train-7",),
    unchanged=1,
    new_pools=("proj-onprem/desktop", "proj-onprem/snakepit"),
    scopes=("queue:create-task:low:proj-onprem/desktop", "queue:scheduler-id:proj-level-1"),
    new_scopes=("queue:create-task:low:proj-onprem/desktop",),
)
PROFILES = ({"score": "spot", "train": "spot"}, {"score": "onprem", "train": "onprem"})

TEXT = """\
spot → onprem: 6 tasks move, 1 changes in place, 1 stays as it is, 1 only after

proj-1/gpu-4, the same pool
  train, 1 task   TOKEN: x → inherited from the worker
    train-6

proj-1/gpu-4 → proj-onprem/desktop
  score, 1 task   GPUS: 0 1 2 3 → not set
    score-a       WORKSPACE: not set → <a>
                  docker-worker → generic-worker
                  maxRunTime: 1 h → 90 min
                  also dependencies.docker-image, image

proj-1/gpu-4 → proj-onprem/snakepit
  train, 4 tasks  WORKSPACE: 12000 → 8000
    train-1
    train-2
    and 2 more
  train, 1 task   WORKSPACE: 12000 → detected on the machine
    train-5

Only in the graph after: 1 task
  train-7

New pools
  proj-onprem/desktop
  proj-onprem/snakepit

New scopes that the decision task needs
  queue:create-task:low:proj-onprem/desktop
"""


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_the_text(capsys: pytest.CaptureFixture[str]):
    """Tasks that share kind, pools and changes are one row; each difference is told once."""
    planned.show(FOUND, *PROFILES, Output("never"))
    assert capsys.readouterr().out == TEXT


@pytest.mark.parametrize("columns", ["40", "80", "120"])
def test_no_line_is_too_wide(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The text fits the terminal, also with all details."""
    monkeypatch.setenv("COLUMNS", columns)
    planned.show(FOUND, *PROFILES, Output("never", verbose=True))
    assert max(map(len, capsys.readouterr().out.splitlines())) <= int(columns)


def test_verbose_names_every_task(capsys: pytest.CaptureFixture[str]):
    """With `-v` each label is there, whole key paths, and the scopes that were needed anyway."""
    planned.show(FOUND, *PROFILES, Output("never", verbose=True))
    shown = capsys.readouterr().out
    assert all(each.label in shown for each in FOUND.moves)
    assert "payload.image" in shown
    assert "queue:scheduler-id:proj-level-1" in shown


def test_tasks_of_one_graph_alone_are_counted(capsys: pytest.CaptureFixture[str]):
    """The first line has all numbers; of many labels some are shown, and with `-v` all."""
    labels = tuple(f"train-{n}" for n in range(10, 40))
    found = Comparison(added=labels[:11], removed=labels)
    planned.show(found, *PROFILES, Output("never"))
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].endswith("0 stay as they are, 11 only after, 30 only before")
    assert shown.count("  train-20") == 1
    assert shown[-1] == "  and 20 more"
    planned.show(found, *PROFILES, Output("never", verbose=True))
    assert capsys.readouterr().out.splitlines()[-1] == "  train-39"


def test_nothing_to_tell(capsys: pytest.CaptureFixture[str]):
    """Two graphs that are equal: one line."""
    planned.show(Comparison(unchanged=63), *PROFILES, Output("never"))
    assert capsys.readouterr().out == "spot → onprem: nothing changes, 63 tasks stay as they are\n"


@pytest.mark.parametrize(
    ("profiles", "name", "json"),
    [
        ({"a": "spot", "b": "spot"}, "spot", "spot"),
        ({"a": None, "b": None}, "no profile", None),
        ({}, "no profile", None),
        (
            {"a": "spot", "b": "spot", "c": "onprem", "d": None},
            "spot (c: onprem, d: no profile)",
            {"a": "spot", "b": "spot", "c": "onprem", "d": None},
        ),
    ],
)
def test_how_a_choice_is_named(
    profiles: planned.Profiles,
    name: str,
    json: object,
    capsys: pytest.CaptureFixture[str],
):
    """The profile of most kinds, then those that differ; in JSON, by kind where they differ."""
    planned.show(Comparison(), profiles, {"a": "x"}, Output("never"))
    assert capsys.readouterr().out.startswith(f"{name} → x: ")
    assert as_json(Comparison(), profiles, {})["from"] == json


def test_the_json_of_a_move():
    """Before and after of each env name, null for unset, `detect` as in the configuration."""
    moves = {each["label"]: each for each in as_json(FOUND, *PROFILES)["moves"]}
    assert moves["train-5"] == {
        "label": "train-5",
        "kind": "train",
        "from": {"pool": "proj-1/gpu-4", "implementation": "docker-worker"},
        "to": {"pool": "proj-onprem/snakepit", "implementation": "docker-worker"},
        "env": {"WORKSPACE": ["12000", {"detect": "gpu-memory", "share": 0.75}]},
        "other": {},
    }
    assert moves["score-a"]["env"]["GPUS"] == ["0 1 2 3", None]
    assert moves["score-a"]["other"]["payload.maxRunTime"] == [3600, 5400]
    assert moves["score-a"]["other"]["dependencies.docker-image"] == ["docker-image-train", None]
