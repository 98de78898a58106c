"""Starting jobs, where an executor takes some and others not."""

from __future__ import annotations

import signal
from pathlib import Path

from dispatching import World
from trainings import Site

from taskgraph_workers.dispatch.executors.base import NotNow, Unreachable


def test_one_that_can_not_be_started_now_holds_up_no_other(tmp_path: Path):
    """Others start in the same turn; where nobody answers at all, they wait."""
    for error, started in ((NotNow("no engine"), 1), (Unreachable("no answer"), 0)):
        world = World(tmp_path / type(error).__name__)
        world.service.before["submit"] = [error]
        world.send("r1", "r2")
        world.turns()
        assert len(world.service.starts) == started
        world.turns(10)
        assert world.states() == {"r1": "running", "r2": "running"}
        world.check_promises()


def test_a_dispatcher_that_knows_no_command_of_an_image(tmp_path: Path):
    """It starts what another one accepted all the same: the job says how, as it was accepted."""
    site = Site(tmp_path)
    site.send("r1")
    accepts = site.dispatcher(failpoint="before-submit")
    accepts.communicate(timeout=60)
    assert accepts.returncode == -signal.SIGKILL
    text = site.config.read_text()
    site.config.write_text(text[: text.index(", commands:")] + "}\n")
    site.finish()
    assert site.requests()["r1"]["state"] == "succeeded"
    assert site.trained() == {"r1": 1}
