"""The action "run on other workers", on a training that this project's decision task started."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.graph.decision import REDIRECTS, Clone, Worker, queue, training
from tests.graph.project import Run
from tests.queue.server import taskcluster

ROLE = "assume:repo:github.com/example/taskgraph-workers:action:generic"
NAME = "run-on-other-workers"


class Training:
    """A training in the cloud, at level 1, and what actions create besides."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        task = training(worker.clone, level="1")
        self.decision: str = task["taskId"]
        run = worker.run(task)
        assert run.code == 0, run.stderr
        self.created = worker.taskcluster.created
        self.ids = {task["metadata"]["name"]: task_id for task_id, task, _ in self.created}

    def act(self, said: dict[str, Any], label: str | None = None) -> dict[str, dict[str, Any]]:
        """The tasks that an action created, by name."""
        before = len(self.created)
        run = self.try_to_act(said, label)
        assert run.code == 0, run.stderr
        return {task["metadata"]["name"]: task for _, task, code in self.created[before:]}

    def try_to_act(self, said: dict[str, Any], label: str | None = None) -> Run:
        return self.worker.act(self.decision, NAME, said, label and self.ids[label])

    def artifact(self, name: str) -> Any:
        return yaml.safe_load((self.worker.artifacts / name).read_text())


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with taskcluster(queue=queue(), redirects=REDIRECTS, scopes=("*", ROLE)) as served:
        yield Training(Worker(Clone.make(tmp_path_factory.mktemp("action") / "src"), served))


def pool(task: dict[str, Any]) -> str:
    return f"{task['provisionerId']}/{task['workerType']}"


def test_one_task(started: Training):
    """One new task, in the same group, made for the other machines; the one that ran stays."""
    label = "train-teacher-1"
    held = started.worker.taskcluster.queue.task(started.ids[label])
    (task,) = started.act({"profile": "onprem"}, label).values()
    assert (task["metadata"]["name"], pool(task)) == (label, "training-onprem/snakepit-xlarge")
    assert task["taskGroupId"] == started.decision
    assert task["payload"]["maxRunTime"] == 1728000
    assert any("nvidia-smi" in part for part in task["payload"]["command"])
    # It takes what the tasks before it made, and waits for its own action.
    assert started.ids["align-parallel"] in task["dependencies"]
    assert task["extra"]["parent"] in task["dependencies"]
    assert started.worker.taskcluster.queue.task(started.ids[label]) == held


def test_what_an_action_writes_down(started: Training):
    """The choice, as parameters.yml; what became of the tasks; what Taskgraph itself looks for."""
    made = started.act({"profile": "gcp-standard"}, "train-teacher-2")
    assert started.artifact("parameters.yml")["workers"] == "gcp-standard"
    plan = started.artifact("workers-plan.json")
    assert [move["label"] for move in plan["moves"]] == list(made) == ["train-teacher-2"]
    assert (plan["from"], plan["to"], plan["unchanged"]) == ("gcp-spot", "gcp-standard", 0)
    assert plan["new_pools"] == [pool(made["train-teacher-2"])]
    assert (
        pool(made["train-teacher-2"])
        in (started.worker.artifacts / "workers-plan.html").read_text()
    )
    assert started.artifact("to-run.json") == ["train-teacher-2"]
    assert (
        started.artifact("label-to-taskid.json")["train-teacher-2"]
        != started.ids["train-teacher-2"]
    )


def test_a_group(started: Training):
    """Of a group, the tasks that are then others, and those between them; none after them."""
    made = started.act({"profile": "gcp-standard"})
    moves = started.artifact("workers-plan.json")["moves"]
    assert {move["kind"] for move in moves} == {"merge", "align", "train-teacher", "train-student"}
    assert {pool(made[move["label"]]).rpartition("-")[2] for move in moves} == {"standard"}
    between = made.keys() - {move["label"] for move in moves}
    assert {"train-backward-fr-en", "back-translate-1", "score-1"} < between
    assert started.artifact("workers-plan.json")["unchanged"] == len(between)
    assert not [label for label in made if label.startswith(("evaluate", "export", "dataset"))]
    ids = started.artifact("label-to-taskid.json")
    assert ids["align-parallel"] in made["train-teacher-1"]["dependencies"]
    assert ids["align-parallel"] != started.ids["align-parallel"]


def test_some_kinds_of_a_group_with_what_depends_on_them(started: Training):
    """The kinds that are named go; with `downstream`, what depends on them is run again."""
    said = {"profile": "onprem", "kinds": ["train-student"]}
    assert list(started.act(said)) == ["train-student-en-fr"]
    assert started.artifact("parameters.yml")["workers"] == {"train-student": "onprem"}
    made = started.act({**said, "downstream": True})
    assert {label for label in made if "onprem" in pool(made[label])} == {"train-student-en-fr"}
    assert {"export-en-fr", "publish-en-fr", "evaluate-train-student-en-fr"} < made.keys()
    assert not made.keys() & {"train-teacher-1", "align-parallel"}


def test_overrides(started: Training):
    """A worker may be said by itself: the same machines, other GPUs."""
    said = {"b-largegpu-xlargedisk": {"to": "b-linux-v100-gpu-4-1tb", "env": {"GPUS": "2 3"}}}
    (task,) = started.act({"profile": "gcp-spot", "workers": said}, "train-teacher-1").values()
    assert task["payload"]["env"]["GPUS"] == "2 3"
    assert pool(task) == "training-1/b-linux-v100-gpu-4-1tb"


@pytest.mark.parametrize(
    ("said", "label", "why"),
    [
        (
            {"profile": "gcp-spot"},
            "train-teacher-1",
            "task 'train-teacher-1' is the same with this choice",
        ),
        ({"profile": "gcp-spot"}, None, "no task of this group would run elsewhere"),
        ({"profile": "onprem", "kinds": ["docker-image"]}, None, "no task of this group"),
        (
            {"profile": "onprem", "workers": {"b-gpu": {"env": {"GPUS": 0}}}},
            None,
            'put it in quotes: GPUS: "0"',
        ),
    ],
)
def test_what_creates_nothing(started: Training, said: Any, label: str | None, why: str):
    """Where nothing would be others, and where the choice is wrong, nothing is created."""
    before = len(started.created)
    run = started.try_to_act(said, label)
    assert run.code == 1
    assert why in run.stderr
    assert "Traceback" not in run.stderr
    assert len(started.created) == before


def test_a_pool_takes_a_scope(started: Training):
    """What the action's role may not do is not done."""
    queue_of = started.worker.taskcluster
    queue_of.scopes = (ROLE, "queue:scheduler-id:*", "queue:route:*", "docker-worker:*")
    queue_of.scopes += ("queue:create-task:project:none", "queue:create-task:low:training-1/*")
    try:
        run = started.try_to_act({"profile": "onprem"}, "train-teacher-1")
    finally:
        queue_of.scopes = ("*", ROLE)
    assert run.code == 1
    assert "queue:create-task:low:training-onprem/snakepit-xlarge" in run.stderr


def test_what_is_offered(started: Training):
    """In actions.json: one action for tasks of the graph, one for the group, for whoever may."""
    content = started.worker.taskcluster.artifacts[started.decision, "public/actions.json"]
    task, group = (each for each in json.loads(content)["actions"] if each["name"] == NAME)
    assert {"worker-implementation": "docker-worker"} in task["context"]
    assert group["context"] == []
    assert task["schema"] == group["schema"]
    profile = task["schema"]["properties"]["profile"]
    assert profile["enum"] == ["gcp-spot", "gcp-standard", "onprem", "lab"]
    assert "onprem (otherwise as gcp-spot, only at level 1)" in profile["description"]
    assert "train-teacher" in task["schema"]["properties"]["kinds"]["items"]["enum"]
    assert task["extra"] == {"actionPerm": "generic"}
    assert task["hookId"].startswith("in-tree-action-1-generic/")
