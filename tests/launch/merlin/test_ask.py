"""From a spec to what is asked for."""

from __future__ import annotations

import re
import subprocess

import pytest
from merlin_values import a_spec, a_step, a_worker, told

from taskgraph_workers.launch.merlin.ask import ask
from taskgraph_workers.launch.merlin.model import Batch
from taskgraph_workers.launch.merlin.options import Options
from taskgraph_workers.launch.model import Demand, LaunchError
from taskgraph_workers.machines import Header, Node


def example(**fields):
    """The originating example, with a queue for each group."""
    return a_spec(
        a_step("step_1", "q1", nodes=2, cores=4, written_nodes=2),
        a_step("step_2", "q2", nodes=1, gpus=4, written_nodes=1),
        a_worker("step_1_workers", "step_1", args="-l INFO --concurrency 4 -Ofair", nodes=1),
        a_worker("step_2_workers", "step_2", args="-l INFO --concurrency 1 -Ofair", nodes=2),
        batch=Batch("flux"),
        **fields,
    )


def test_the_originating_example():
    """Its three unrelated numbers become four workers of step_1 and two of step_2."""
    asked = ask(example())
    assert [(group.name, group.number, group.why) for group in asked.groups] == [
        ("step_1_workers", 4, "nodes: 1 x --concurrency 4"),
        ("step_2_workers", 2, "nodes: 2 x --concurrency 1"),
    ]
    assert [group.queues for group in asked.groups] == [("[merlin]_q1",), ("[merlin]_q2",)]
    assert asked.scheduler == "flux"


def test_the_command_is_one_worker_of_its_own_name():
    """Concurrency and names of the spec go: each worker is one process, named by the script."""
    assert ask(example()).groups[0].command == (
        "exec celery -A merlin worker -l INFO -Ofair --prefetch-multiplier 1 --concurrency 1"
        ' -n "$WORKER_NAME" -Q "[merlin]_q1"'
    )


def test_a_level_is_written_where_none_is():
    """Merlin writes -l itself where args have none, and so do we: celery's own is WARNING."""
    asked = ask(a_spec(a_step("a"), a_worker("w", args="-c 1")))
    assert "worker -l INFO --prefetch-multiplier 1 --concurrency 1" in asked.groups[0].command


def test_workers_that_hold_gpus_try_to_tell_them():
    """GPUS and WORKSPACE, for tasks that run inside of them; nobody else's."""
    made = a_spec(
        a_step("inside", "q1", gpus=2, launcher=False),
        a_step("outside", "q2", gpus=2),
        a_step("plain", "q3", launcher=False),
        *(a_worker(f"w{step}", step, number=1) for step in ("inside", "outside", "plain")),
    )
    tried = [sorted(group.tried) for group in ask(made).groups]
    assert tried == [["GPUS", "WORKSPACE"], [], []]


def test_the_header_is_that_of_the_issue():
    """Job name and output are those of the originating issue unless the spec says others."""
    batch = Batch("slurm", Header(nodes=3, queue="pdebug", bank="b", walltime_s=60, qos="high"))
    asked = ask(a_spec(a_step("a"), a_worker("w", number=1), batch=batch))
    assert asked.header == Header(
        "Merlin", 3, "merlin_workers_{id}.out", "pdebug", "b", 60, qos="high"
    )
    named = Batch("slurm", Header(name="mine", output="out/%j.txt"))
    header = ask(a_spec(a_step("a"), a_worker("w", number=1), batch=named)).header
    assert (header.name, header.output) == ("mine", "out/{id}.txt")


def test_merlins_folder_is_on_path():
    """The script finds merlin and celery, in a folder with any name."""
    asked = ask(example(), Options(folder="/opt/my merlin/bin"))
    assert asked.setup == ("export PATH='/opt/my merlin/bin':\"$PATH\"",)


def test_the_work_is_done_when_merlin_monitor_says_so():
    """The monitor is asked of the spec's absolute path, with the variables of the command line."""
    asked = ask(example(), Options(variables={"N": "4 x"}, monitor_s=5))
    assert re.fullmatch(
        r"merlin monitor /\S*/spec.yaml --sleep 5 --vars 'N=4 x'", asked.until or ""
    )


@pytest.mark.parametrize(
    ("fields", "number", "why"),
    [
        ({"number": 50}, 50, "number: 50"),
        ({"number": 50, "args": "--concurrency 1"}, 50, "number: 50"),
        ({"number": 50, "nodes": 2}, 50, "number: 50"),
        ({"number": 8, "nodes": 2, "args": "-c 4"}, 8, "number: 8"),
        ({"number": 4, "args": "-c 4"}, 4, "number: 4"),
        ({"nodes": 2, "args": "-c 4"}, 8, "nodes: 2 x -c 4"),
        ({"args": "-c 4"}, 12, "batch.nodes: 3 x -c 4"),
        ({}, 108, "batch.nodes: 3 x 36 cores of a node, since there is no --concurrency"),
        ({"args": "--autoscale=10,3", "nodes": 1}, 10, "nodes: 1 x --autoscale=10,3"),
    ],
)
def test_numbers(fields, number, why):
    """`number` counts, else nodes times concurrency, each from where Merlin takes it."""
    spec = a_spec(a_step("a"), a_worker("w", **fields), batch=Batch(header=Header(nodes=3)))
    group = ask(spec, Options(nodes=7, node=Node(36))).groups[0]
    assert (group.number, group.why) == (number, why)


def test_a_task_that_takes_whole_nodes_takes_their_cores():
    """However large they are; where that is unknown it takes what it says."""
    spec = a_spec(a_step("a")._replace(demand=Demand("a", cores=2, whole=True)), a_worker("w"))
    cores = [
        ask(spec, Options(node=node)).groups[0].demands[0].cores
        for node in (Node(36), Node(gpus=4), None)
    ]
    assert cores == [36, 2, 2]


def test_steps_that_can_not_be_read_stay_known():
    """By their names, beside the demands of the others."""
    spec = a_spec(a_step("a")._replace(demand=None), a_step("b"), a_worker("w"))
    (group,) = ask(spec).groups
    assert (group.unread, [each.step for each in group.demands]) == (("a",), ["b"])


def test_nodes_of_the_command_line_stand_in_for_the_specs():
    """A worker without nodes is on every node of the allocation, as in Merlin."""
    spec = a_spec(a_step("a"), a_worker("w", args="-c 4"))
    assert ask(spec, Options(nodes=7)).groups[0].number == 28
    assert ask(spec).groups[0].number == 4


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"number": 50, "nodes": 2, "args": "--concurrency 4"},
            "number: 50, nodes: 2 and --concurrency 4 say different things",
        ),
        (
            {"number": 50, "args": "-c 4"},
            "number: 50, nodes (not written) and -c 4 say different things",
        ),
    ],
)
def test_numbers_that_contradict_each_other(fields, said):
    """A number that nodes and concurrency contradict is refused, and all three are named."""
    with pytest.raises(LaunchError, match=re.escape(said)) as caught:
        ask(a_spec(a_step("a"), a_worker("w", line=9, lines={"number": 11}, **fields)))
    assert caught.value.problems[0].line == 11


def test_without_concurrency_and_machine_one_is_taken():
    """Where nobody knows how many cores a node has, one worker is counted, and that is said."""
    asked = ask(a_spec(a_step("a"), a_worker("w", lines={"args": 7})))
    assert asked.groups[0].number == 1
    assert "w has no --concurrency" in told(asked)
    assert "number: N" in told(asked)


def test_all_faults_come_at_once():
    """Every fault of every group is told in one go, with the warnings."""
    spec = a_spec(
        a_step("a", "q,r"),
        a_worker("w w", args="-c x"),
        a_worker("v", number=2, nodes=3, args="-c 4"),
        overlap=True,
    )
    with pytest.raises(LaunchError) as caught:
        ask(spec)
    text = told(caught.value.problems)
    for part in ("its name has ' ' in it", "'x' is no number", "comma", "number: 2"):
        assert part in text


@pytest.mark.parametrize("bad", ["a\nb", "x;touch y", "$(id)", "a@b", "50%", "a/b", "é\x7f", "a'b"])
def test_hostile_worker_names_are_refused(bad):
    """A worker's name that a shell, a path, Celery or Merlin reads otherwise can't be launched."""
    with pytest.raises(LaunchError, match="worker"):
        ask(a_spec(a_step("a"), a_worker(bad, number=1)))


@pytest.mark.parametrize("queue", ["$(touch x)", 'a"b', "a b", "`id`", "a'b", "a;b", "*"])
def test_hostile_queues_stay_one_word(queue, tmp_path):
    """A queue's name reaches celery as it is, whatever it holds, and runs nothing."""
    command = ask(a_spec(a_step("a", queue), a_worker("w", number=1))).groups[0].command
    (tmp_path / "celery").write_text('#!/bin/sh\nfor last; do :; done; printf %s "$last"\n')
    (tmp_path / "celery").chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "WORKER_NAME": "w.j1.0.n"}
    done = subprocess.run(
        ["bash", "-c", command], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"[merlin]_{queue}"
    assert [path.name for path in tmp_path.iterdir()] == ["celery"]


def test_control_characters_in_a_queue_are_refused():
    """A line break in a queue's name is an error that says so."""
    with pytest.raises(LaunchError, match="line break"):
        ask(a_spec(a_step("a", "q\nr"), a_worker("w", number=1)))
