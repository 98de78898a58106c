"""What tasks can be at the same time."""

from __future__ import annotations

from typing import Any

from merlin_values import a_spec, a_step, a_worker

from taskgraph_workers.launch.merlin.ask import ask

VALUES = {"P": ("1", "2", "3", "4"), "R": ("1", "1", "2", "2")}


def stages_of(*parts: Any, **fields: Any) -> list[dict[str, int]]:
    return [dict(stage.tasks) for stage in ask(a_spec(*parts, **fields)).stages]


def test_tasks_of_independent_steps_are_together():
    """The runnable example: four tasks of step_1 and two of step_2 can be at once."""
    found = stages_of(
        a_step("step_1", "q1", parameters="P"),
        a_step("step_2", "q2", parameters="R"),
        a_worker("one", "step_1", number=40),
        a_worker("two", "step_2", number=20),
        values=VALUES,
    )
    assert found == [{"step_1": 4, "step_2": 2}]


def test_a_barrier_parts_stages():
    """What waits for all samples is never there together with them (hpc_demo)."""
    found = stages_of(
        a_step("names", "n", samples=True),
        a_step("collect", "p", depends=("names_*",)),
        a_step("post", "p", depends=("collect",)),
        a_worker("nameworkers", "names", number=36),
        a_worker("postworkers", "post", number=1),
        samples=200,
    )
    assert found == [{"names": 36}, {"collect": 1, "post": 0}]


def test_unknown_samples_count_as_workers():
    """Where nobody knows how many samples there are, every worker may have one."""
    found = stages_of(a_step("a", samples=True), a_worker("w", number=36), samples=None)
    assert found == [{"a": 36}]


def test_a_chain_has_one_step_at_a_time():
    """Three groups of workers for three steps of one chain never all have a task."""
    found = stages_of(
        a_step("a", "a"),
        a_step("b", "b", depends=("a",)),
        a_step("c", "c", depends=("b",)),
        *(a_worker(name, name, number=1) for name in "abc"),
    )
    assert found == [{"a": 1, "b": 0, "c": 0}, {"a": 0, "b": 1, "c": 0}, {"a": 0, "b": 0, "c": 1}]


def test_a_chain_spreads_over_the_workers_it_meets():
    """Of ten samples four are with the first workers and six with the next, or eight and two."""
    found = stages_of(
        a_step("a", "a", samples=True),
        a_step("b", "b", samples=True, depends=("a",)),
        a_worker("first", "a", number=4),
        a_worker("next", "b", number=8),
        samples=10,
    )
    assert found == [{"a": 4, "b": 6}, {"a": 2, "b": 8}]


def test_steps_of_which_neither_exceeds_the_other_have_a_stage_each():
    """In a chain on the same workers both the step with more cores and that with a GPU count."""
    found = stages_of(
        a_step("a", cores=8, samples=True),
        a_step("b", cores=1, gpus=1, samples=True, depends=("a",)),
        a_step("c", cores=1, samples=True, depends=("b",)),
        a_worker("w", number=3),
        samples=10,
    )
    assert found == [{"a": 3, "b": 0, "c": 0}, {"a": 0, "b": 3, "c": 0}]


def test_too_many_ways_become_one_that_exceeds_them():
    """With more ways than are looked at, every step may have all of its tasks at once."""
    steps = []
    for index in range(7):
        steps.append(a_step(f"a{index}", "a"))
        steps.append(a_step(f"b{index}", "b", depends=(f"a{index}",)))
    found = stages_of(*steps, a_worker("a", "a0", number=9), a_worker("b", "b0", number=9))
    assert found == [{step.name: 1 for step in steps}]


def test_steps_without_workers_are_in_no_stage():
    """A step that none of these groups runs takes nothing of their allocation."""
    found = stages_of(
        a_step("a", "a"),
        a_step("b", "b"),
        a_worker("w", "a", number=1),
        a_worker("v", "b", machines=("x",), number=1),
    )
    assert found == [{"a": 1}]
