"""What goes on while an executor does not answer."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from trainings import Site

from taskgraph_workers.dispatch.meanwhile import Meanwhile

#: An executor of a site's own commands, one of which hangs until there is a file.
COMMANDS = """\
        executor: slow
        executors:
            slow:
                timeout: 5m
                submit: [sh, -c, {submit}, x, "{{key}}"]
                find: [sh, -c, {find}, x, "{{key}}"]
                poll: [sh, -c, {poll}, x, "{{key}}"]
                cancel: [sh, -c, "exit 1", x, "{{key}}"]
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return a site whose executor has a cloud of its own: a folder, and calls that may hang."""
    made = Site(tmp_path)
    hang = f'echo "$0" >> {tmp_path}/called; until [ -e {tmp_path}/go ]; do sleep 0.05; done; '
    texts = {
        "submit": hang + f'touch "{tmp_path}/job-$1"',
        "find": f'if [ -e "{tmp_path}/job-$1" ]; then echo job; fi',
        "poll": "echo succeeded",
    }
    text = made.config.read_text("utf-8")
    commands = COMMANDS.format(**{name: json.dumps(each) for name, each in texts.items()})
    made.config.write_text(text + commands, "utf-8")
    return made


def test_messages_are_recorded_while_an_executor_hangs(site: Site):
    """They are in the ledger, and so can't be lost, long before its call comes to an end."""
    site.send("r1")
    run = site.dispatcher()
    until((site.folder / "called").exists)
    site.send("r2", "r3")
    (site.folder / "bad.json").write_text("{")
    site.call("send", "bad.json")
    until(lambda: len(site.requests()) == 3)
    until(lambda: json.loads(site.call("dead", "--json"))["dead"])
    assert {each["state"] for each in site.requests().values()} == {"accepted"}
    assert (site.folder / "called").read_text().count("x") == 1
    (site.folder / "go").touch()
    _, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    assert {each["state"] for each in site.requests().values()} == {"succeeded"}
    assert len(list(site.folder.glob("job-*"))) == 3


def until(fact: object) -> None:
    limit = time.monotonic() + 60
    while not fact():  # type: ignore[operator]
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_nobody_stands_in_for_one_who_is_there():
    """A step is done only while somebody is away for longer, and is over when they are back."""
    steps: list[str] = []
    there = threading.Event()

    def step() -> int:
        steps.append("begin")
        there.wait(0.05)
        steps.append("end")
        return 1

    with Meanwhile(step, 0.01, after_s=0.1) as meanwhile:
        time.sleep(0.2)
        for _ in range(3):
            with meanwhile.away():
                pass
        assert steps == []
        with meanwhile.away():
            until(lambda: len(steps) >= 4)
        done = len(steps)
        assert steps[-1] == "end"
        time.sleep(0.2)
        assert len(steps) == done


def test_it_ends_with_whoever_has_it():
    """Also where that ends by an exception: no thread is left behind."""
    before = threading.active_count()

    def failed() -> None:
        with Meanwhile(lambda: 0, 0.01, after_s=0.0) as meanwhile, meanwhile.away():
            time.sleep(0.05)
            raise ValueError("theirs")

    with pytest.raises(ValueError, match="theirs"):
        failed()
    assert threading.active_count() == before
