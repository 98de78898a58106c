"""Workers serve queues: what they run, which start, and which belong to another allocation."""

from __future__ import annotations

from typing import Any

import pytest
from merlin_values import a_spec, a_step, a_worker, told

from taskgraph_workers.launch.merlin.ask import ask
from taskgraph_workers.launch.merlin.model import Batch
from taskgraph_workers.launch.merlin.options import Options
from taskgraph_workers.launch.model import Ask, LaunchError
from taskgraph_workers.machines import Header


def asked(*parts: Any, options: Options | None = None, **fields: Any) -> Ask:
    return ask(a_spec(*parts, **fields), options)


def names(found: Ask) -> list[str]:
    return [group.name for group in found.groups]


def runs(found: Ask) -> list[list[str]]:
    return [[demand.step for demand in group.demands] for group in found.groups]


def test_a_group_runs_every_step_of_its_queues():
    """What a worker takes is decided by queues: it runs steps that it does not name, too."""
    found = asked(
        a_step("build", "q"),
        a_step("run", "q"),
        a_step("post", "p"),
        a_worker("w", "run", number=2),
        a_worker("v", "post", number=1),
    )
    assert runs(found) == [["build", "run"], ["post"]]
    assert found.groups[0].named == ("run",)


def test_all_is_every_step():
    """`steps: [all]`, which is what a worker without steps has, serves every queue."""
    found = asked(a_step("a", "q"), a_step("b", "p"), a_worker("w", number=1))
    assert found.groups[0].queues == ("[merlin]_q", "[merlin]_p")


def test_without_workers_there_is_the_default_worker():
    """A spec without workers has Merlin's default worker, for everything."""
    found = asked(a_step("a", "q"), a_step("b", "p"))
    assert (names(found), runs(found)) == (["default_worker"], [["a", "b"]])


def test_what_nobody_names_goes_to_the_default_worker():
    """Steps that no worker names get the default worker, if nobody serves their queue yet."""
    found = asked(a_step("a", "q"), a_step("b", "p"), a_worker("w", "a", number=1))
    assert (names(found), runs(found)) == (["w", "default_worker"], [["a"], ["b"]])
    served = asked(a_step("a", "q"), a_step("b", "q"), a_worker("w", "a", number=1))
    assert (names(served), runs(served)) == (["w"], [["a", "b"]])


def test_the_default_worker_takes_the_place_of_one_of_that_name():
    """Merlin replaces a default_worker that somebody wrote, and the steps it named are lost."""
    found = asked(
        a_step("a", "q"), a_step("b", "p"), a_worker("default_worker", "a", number=5, line=4)
    )
    assert runs(found) == [["b"]]
    assert "Merlin replaces 'default_worker'" in told(found)


def test_of_groups_that_share_a_queue_only_the_first_starts():
    """The literal example: both steps are in Merlin's own queue, so one group is left out."""
    parts = [a_step("a"), a_step("b"), a_worker("w", "a", number=4), a_worker("v", "b", number=2)]
    assert names(asked(*parts)) == ["w"]
    assert names(asked(*parts, overlap=True)) == ["w", "v"]
    assert runs(asked(*parts, overlap=True)) == [["a", "b"], ["a", "b"]]


def test_a_group_with_a_queue_of_its_own_starts():
    """A group that shares only a part of its queues starts: nobody else would run the rest."""
    parts = [a_step("a", "q"), a_step("b", "p"), a_step("c", "q")]
    found = asked(*parts, a_worker("w", "a", number=1), a_worker("v", number=1, line=9))
    assert runs(found) == [["a", "c"], ["a", "b", "c"]]
    assert "v takes from queue q, as w does, and overlap is off" in told(found)
    implied = asked(*parts, a_worker("w", "a", number=1))
    assert runs(implied) == [["a", "c"], ["a", "b", "c"]]
    assert "overlap" not in told(implied)


def test_a_group_whose_queues_others_serve_is_left_out():
    """A group that has no queue to itself is left out, though several others serve its queues."""
    parts = [a_step("a", "q"), a_step("b", "p")]
    groups = [a_worker(name, *steps, number=1) for name, steps in (("w", "a"), ("v", "b"))]
    found = asked(*parts, *groups, a_worker("u", "a", "b", number=1))
    assert names(found) == ["w", "v"]
    assert "u is left out: w serves queue q already" in told(found)


def test_groups_of_different_machines_may_share_a_queue():
    """The same steps on two machines are no clash; a group for any machine is one with both."""
    parts = [
        a_step("a"),
        a_worker("w", "a", number=1, machines=("quartz",)),
        a_worker("v", "a", number=1, machines=("ruby",)),
        a_worker("u", "a", number=1),
    ]
    found = asked(*parts, options=Options(host="ruby3"))
    assert (names(found), found.others) == (["v"], ("w",))


def test_the_prefix_can_be_another():
    """Who has set Merlin's queue_tag gives it."""
    found = asked(a_step("a", "q"), a_worker("w", number=1), options=Options(queue_tag="x_"))
    assert found.groups[0].queues == ("x_q",)


OWN = Batch("slurm", Header(nodes=2, queue="gpu"), line=7)


def test_a_group_with_its_own_batch_is_another_allocation():
    """Groups with a batch block of their own are parted from those without."""
    found = asked(
        a_step("a", "q"),
        a_step("b", "p"),
        a_worker("w", "a", number=1, batch=OWN),
        a_worker("v", "b", number=1),
    )
    assert (names(found), found.others) == (["v"], ("w",))


def test_equal_batches_are_one_allocation():
    """Batch blocks that say the same belong together, wherever they stand; theirs is the header."""
    same = Batch("slurm", Header(nodes=2, queue="gpu"), line=17)
    found = asked(
        a_step("a", "q"),
        a_step("b", "p"),
        a_worker("w", "a", number=1, batch=OWN),
        a_worker("v", "b", number=1, batch=same),
    )
    assert (names(found), found.others) == (["w", "v"], ())
    assert (found.scheduler, found.header.queue, found.header.nodes) == ("slurm", "gpu", 2)


def test_groups_of_this_machine_come_first():
    """Of groups for different machines, those for this one are launched, and the others named."""
    parts = [
        a_step("a", "q"),
        a_step("b", "p"),
        a_step("c", "r"),
        a_worker("w", "a", number=1),
        a_worker("v", "b", number=1, machines=("quartz", "ruby")),
        a_worker("u", "c", number=1, machines=("lassen",)),
    ]
    on_ruby = asked(*parts, options=Options(host="ruby12"))
    assert (names(on_ruby), on_ruby.others) == (["v"], ("w", "u"))
    elsewhere = asked(*parts, options=Options(host="mine"))
    assert (names(elsewhere), elsewhere.others) == (["w"], ("v", "u"))


def test_groups_for_other_machines_are_a_warning():
    """Where all groups are for other machines, the script is made, and that is said."""
    found = asked(
        a_step("a"), a_worker("w", number=1, machines=("quartz",)), options=Options(host="mine")
    )
    assert names(found) == ["w"]
    assert "w would start on quartz alone, not on mine" in told(found)


def test_groups_can_be_chosen():
    """`--group` takes these groups, whatever allocation they belong to, and only these."""
    parts = [
        a_step("a", "q"),
        a_step("b", "p"),
        a_worker("w", "a", number=1, batch=OWN),
        a_worker("v", "b", number=1),
    ]
    found = asked(*parts, options=Options(groups=("w",)))
    assert (names(found), found.others, found.header.queue) == (["w"], (), "gpu")
    with pytest.raises(LaunchError, match="did you mean 'v'"):
        asked(*parts, options=Options(groups=("V",)))


def test_a_chosen_group_starts_even_where_another_has_its_queue():
    """A group that Merlin would leave out beside another one is launched if it is chosen alone."""
    parts = [a_step("a"), a_step("b"), a_worker("w", "a", number=4), a_worker("v", "b", number=2)]
    assert names(asked(*parts, options=Options(groups=("v",)))) == ["v"]
