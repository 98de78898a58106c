"""SIGKILL of real dispatchers, at every step; each training counts itself (T1)."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from trainings import Site

#: Every step of a request's way at which a dispatcher can die.
STEPS = [
    *("after-receive", "before-commit", "after-commit"),
    *("before-submit", "local-prepared", "local-made", "local-started", "after-submit"),
    *("after-record", "after-state-change", "before-settled", "after-settled"),
    *("after-outbox-write", "during-relay", "after-release"),
]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_each_request_is_trained_once(site: Site, step: str):
    """P1, P2, P7: the next dispatcher goes on at once, and nothing is lost or doubled."""
    site.send("r1", "r2")
    site.killed_at(step)
    site.finish()
    site.assert_each_once("r1", "r2")


def test_killed_at_one_step_after_the_other(site: Site):
    """A dispatcher that comes again and again, and never gets further than one step."""
    site.send("r1")
    for step in STEPS:
        killed = site.dispatcher(step)
        killed.communicate(timeout=60)
    site.finish()
    assert site.trained() == {"r1": 1}
    assert len(site.ends()) == 1


def test_the_same_id_with_other_content_is_a_conflict(site: Site):
    """P3, T3: a dead letter with its reason; what runs under the id is not touched."""
    site.send("r1")
    site.send("r1", trainingBaseModelBlobId="models/2")
    site.send("r1")
    site.finish()
    (letter,) = json.loads(site.call("dead", "--json"))["dead"]
    assert (letter["code"], letter["requestId"], letter["times"]) == ("conflict", "r1", 1)
    assert site.trained() == {"r1": 1}
    assert [end["outcome"] for end in site.ends()] == ["succeeded"]


def test_a_dispatcher_that_is_asked_to_end_leaves_trainings_alone(tmp_path: Path):
    """SIGTERM ends it with 0; the training goes on, and the next dispatcher tells its end."""
    site = Site(tmp_path, seconds=1.0)
    site.send("r1")
    run = site.dispatcher()
    while not site.trace.exists():
        time.sleep(0.02)
    run.terminate()
    _, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    assert "stopped; what is under way goes on" in err
    assert site.ends() == []
    site.finish()
    assert site.trained() == {"r1": 1}
    assert site.requests()["r1"]["state"] == "succeeded"
    names = [each["name"] for each in site.requests()["r1"]["progress"]]
    assert names == [
        "trainingVmCreated",
        "imagesDownloaded",
        "trainingSuceededWithImages",
        "trainingVmDestroyed",
    ]
