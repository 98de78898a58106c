"""What differs between two graphs."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taskgraph_workers.detect import Detect, prelude
from taskgraph_workers.graph.compare import Comparison, Move, Where, compare, env_of, scopes_for
from taskgraph_workers.implementations import put_before

WORDS = st.sampled_from(["a", "b", "c"])
VALUES = st.none() | WORDS | st.lists(WORDS, max_size=2) | st.dictionaries(WORDS, WORDS, max_size=2)
DEFINITIONS = st.fixed_dictionaries(
    {},
    optional={
        "provisionerId": WORDS,
        "workerType": WORDS,
        "taskQueueId": WORDS,
        "priority": WORDS,
        "scopes": st.lists(WORDS | st.just({"task-reference": "<a>"}), max_size=2),
        "routes": st.lists(WORDS, max_size=2),
        "tags": st.none() | st.fixed_dictionaries({}, optional={"worker-implementation": WORDS}),
        "payload": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "env": st.none() | st.lists(WORDS) | st.dictionaries(WORDS, WORDS, max_size=2),
                "maxRunTime": st.integers(1, 3),
                "command": VALUES,
            },
        ),
    },
)
TASKS = st.fixed_dictionaries(
    {"kind": WORDS, "task": DEFINITIONS, "dependencies": st.dictionaries(WORDS, WORDS, max_size=1)}
)
GRAPHS = st.dictionaries(st.sampled_from("vwxyz"), TASKS)


def task(**definition: Any) -> dict[str, Any]:
    """Return a task of kind `train`, with what is said over a definition like Taskgraph's."""
    return {
        "kind": "train",
        "label": "train-a",
        "dependencies": {},
        "task": {
            "provisionerId": "proj-1",
            "workerType": "gpu",
            "priority": "low",
            "tags": {"worker-implementation": "docker-worker", "os": "linux"},
            "payload": {"env": {"GPUS": "0"}, "command": ["train"], "maxRunTime": 3600},
            **definition,
        },
    }


def move(before: dict[str, Any], after: dict[str, Any]) -> Move:
    """Return the one move between two states of a task."""
    (found,) = compare({"train-a": before}, {"train-a": after}).moves
    return found


@settings(deadline=None)
@given(GRAPHS)
def test_equal_graphs_differ_in_nothing(graph: dict[str, Any]):
    """A graph against a copy of itself: nothing moves, everything is unchanged, no new scope."""
    found = compare(graph, copy.deepcopy(graph))
    assert found == Comparison(unchanged=len(graph))
    assert not found.differs


@settings(deadline=None)
@given(GRAPHS, GRAPHS)
def test_the_moves_are_just_the_tasks_that_differ(before: dict[str, Any], after: dict[str, Any]):
    """Each task that both have and whose definition differs is in `moves`, and no other."""
    found = compare(before, after)
    both = before.keys() & after.keys()
    assert [each.label for each in found.moves] == sorted(
        label for label in both if before[label] != after[label]
    )
    assert found.unchanged == len(both) - len(found.moves)
    assert set(found.added) == after.keys() - before.keys()
    assert set(found.removed) == before.keys() - after.keys()
    assert found.differs == (before != after)


@settings(deadline=None)
@given(GRAPHS, GRAPHS)
def test_the_way_back_is_the_mirror_image(before: dict[str, Any], after: dict[str, Any]):
    """From B to A, each move says the same as from A to B, the other way round."""
    there, back = compare(before, after), compare(after, before)
    assert (there.added, there.removed) == (back.removed, back.added)
    for one, other in zip(there.moves, back.moves):
        assert (one.label, one.before, one.after) == (other.label, other.after, other.before)
        for mine, theirs in ((one.env, other.env), (one.other, other.other)):
            assert mine == {key: (old, new) for key, (new, old) in theirs.items()}


@settings(deadline=None)
@given(TASKS, TASKS)
@example(
    {"kind": "a", "task": {"taskQueueId": "a/b"}},
    {"kind": "a", "task": {"provisionerId": "a", "workerType": "b"}},
)
@example(
    {"kind": "a", "task": {"payload": {"env": None}}},
    {"kind": "a", "task": {"payload": {"env": ["a"]}}},
)
def test_no_change_goes_untold(before: dict[str, Any], after: dict[str, Any]):
    """What is given a value, loses it or changes it shows up: as a place, as env or as a key."""
    found = compare({"x": before}, {"x": after})
    for each in found.moves:
        told = each.elsewhere or each.env or each.other
        assert told or without_nothing(before) == without_nothing(after)


def without_nothing(value: Any) -> Any:
    """Leave out, at every depth, keys whose value is None or empty."""
    if not isinstance(value, dict):
        return value
    kept = {key: without_nothing(each) for key, each in value.items()}
    return {key: each for key, each in kept.items() if each not in (None, {}, [])}


def test_a_move_says_where_and_what():
    """Pool, implementation, env before and after, and other values by their path."""
    after = task(
        workerType="a100",
        tags={"worker-implementation": "generic-worker", "os": "linux"},
        payload={"env": {"WORKSPACE": "9000"}, "command": ["train"], "maxRunTime": 7200},
    )
    assert move(task(), after) == Move(
        "train-a",
        "train",
        Where("proj-1/gpu", "docker-worker"),
        Where("proj-1/a100", "generic-worker"),
        env={"GPUS": ("0", None), "WORKSPACE": (None, "9000")},
        other={("task", "payload", "maxRunTime"): (3600, 7200)},
    )


def test_a_raw_task_needs_no_tags_and_no_payload():
    """A task that no transform of Taskgraph's made: its taskQueueId is its pool."""
    raw = {"kind": "raw", "task": {"taskQueueId": "proj/raw", "payload": None}}
    found = compare({"raw-a": raw}, {"raw-a": {**raw, "task": {"taskQueueId": "proj/other"}}})
    assert found.moves[0].before == Where("proj/raw", None)
    assert found.moves[0].other == {}
    assert found.new_pools == ("proj/other",)


def test_env_of_another_shape_is_told_by_its_path():
    """Some worker's payload may call a list its `env`: that is no env, and no less a change."""
    found = move(task(payload={"env": ["A=1"]}), task(payload={"env": ["A=2"]}))
    assert (found.env, found.other) == ({}, {("task", "payload", "env"): (["A=1"], ["A=2"])})


@pytest.mark.parametrize(
    "detect",
    [
        Detect("gpu-indices"),
        Detect("gpu-indices", at_least=2),
        Detect("gpu-count"),
        Detect("gpu-memory", share=0.75),
        Detect("gpu-memory", share=0.123456, of="sum", at_least=9000),
        Detect("inherited"),
    ],
    ids=str,
)
@pytest.mark.parametrize("implementation", ["docker-worker", "generic-worker"])
def test_what_a_prelude_finds_is_read_back(detect: Detect, implementation: str):
    """A name that the machine finds out is env, as it was configured, and no change of command."""
    argv = ["run-task", "--x", "--", "bash", "-c", {"artifact-reference": "<image>"}]
    command: Any = (
        argv if implementation == "docker-worker" else [["chmod", "+x", "run-task"], argv]
    )
    tags = {"worker-implementation": implementation, "os": "linux"}
    before = task(tags=tags, payload={"env": {"N": "1"}, "command": command})
    text = prelude({"N": detect, "OTHER": Detect("gpu-count")})
    wrapped = put_before(implementation, "linux", command, text)
    after = task(tags=tags, payload={"env": {}, "command": wrapped})
    assert env_of(after) == {"N": detect, "OTHER": Detect("gpu-count")}
    found = move(before, after)
    assert found.env == {"N": ("1", detect), "OTHER": (None, Detect("gpu-count"))}
    assert found.other == {}


def test_another_command_is_told_beside_its_prelude():
    """A command that changes is a change, whether or not a prelude comes before it."""
    after = task(payload={"command": ["/bin/sh", "-c", "x", "taskgraph-workers", "evaluate"]})
    assert ("task", "payload", "command") in move(task(), after).other


def test_scopes_are_those_that_the_queue_asks_for():
    """The four of a real Queue's createTask, and each of the task's own."""
    definition = task(
        routes=["index.proj.v2"], scopes=["secrets:get:x", {"task-reference": "docker:cache:<a>"}]
    )
    assert list(scopes_for(definition, "proj-level-1")) == [
        "queue:create-task:low:proj-1/gpu",
        "queue:create-task:project:none",
        "queue:scheduler-id:proj-level-1",
        "queue:route:index.proj.v2",
        "secrets:get:x",
        "docker:cache:<a>",
    ]


def test_scopes_of_a_task_that_says_its_own():
    """A task's own projectId and schedulerId hold; the Queue's defaults fill in for the rest."""
    definition = task(projectId="ml", schedulerId="mine", priority=None)
    assert list(scopes_for(definition)) == [
        "queue:create-task:lowest:proj-1/gpu",
        "queue:create-task:project:ml",
        "queue:scheduler-id:mine",
    ]


def test_new_scopes_are_those_of_no_task_before():
    """`scopes` are all that the moved tasks take; `new_scopes` those not needed before."""
    stays = {**task(workerType="cpu"), "label": "train-b"}
    before = {"train-a": task(), "train-b": stays}
    after = {"train-a": task(workerType="a100"), "train-b": stays}
    found = compare(before, after, "proj-level-1")
    assert found.new_scopes == ("queue:create-task:low:proj-1/a100",)
    assert found.new_pools == ("proj-1/a100",)
    assert set(found.scopes) == {
        "queue:create-task:low:proj-1/a100",
        "queue:create-task:project:none",
        "queue:scheduler-id:proj-level-1",
    }


def test_an_added_task_takes_scopes_too():
    """Tasks that only the graph after has count for pools and scopes."""
    found = compare({}, {"train-a": task()})
    assert found.added == ("train-a",)
    assert "queue:create-task:low:proj-1/gpu" in found.new_scopes
    assert found.new_pools == ("proj-1/gpu",)


@pytest.mark.parametrize(
    "keys", [("soft_dependencies",), ("if_dependencies",), ("task", "scopes"), ("task", "routes")]
)
def test_the_order_of_a_set_is_no_difference(keys: tuple[str, ...]) -> None:
    """What Taskgraph and the Queue read as sets differs by what is in it, not by its order."""

    def graph(*values: str) -> dict[str, Any]:
        made = task()
        (made["task"] if len(keys) > 1 else made)[keys[-1]] = list(values)
        return {"train-a": made}

    assert compare(graph("a", "b"), graph("b", "a")) == Comparison(unchanged=1)
    (move,) = compare(graph("a", "b"), graph("b", "c")).moves
    assert move.other == {keys: (["a", "b"], ["b", "c"])}


def test_the_order_of_a_set_is_not_told_of_a_task_that_moves() -> None:
    """Where a task moves, lists that only come in another order are not among what differs."""
    before = {**task(), "soft_dependencies": ["a", "b"]}
    after = {**task(workerType="big"), "soft_dependencies": ["b", "a"]}
    (move,) = compare({"train-a": before}, {"train-a": after}).moves
    assert move.elsewhere
    assert not move.other
