"""``dispatch``, as a newcomer uses it: every command, on this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ledgers import body
from trainings import Site

from taskgraph_workers.cli import main
from tests.cli.commands import ROOT, command

EXAMPLE = ROOT / "examples" / "dispatch"
ID = "c3feb8b2-287e-11e8-b467-0ed5f89f718b"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def asked(site: Site, *words: str, code: int = 0) -> dict[str, Any]:
    """The JSON object that a command prints."""
    said: dict[str, Any] = json.loads(site.call(*words, "--json", code=code))
    assert said.pop("version") == 1
    return said


def test_the_smallest_configuration_has_six_lines(tmp_path: Path):
    """The example: a SKU, an image and its command; a whole training, with two commands."""
    lines = (EXAMPLE / "config.yml").read_text("utf-8").splitlines()
    assert len(lines) == 6
    state = ("--state", tmp_path / "state")
    sent = command("dispatch", "send", EXAMPLE / "start.json", *state)
    assert (sent.returncode, sent.stderr) == (0, "")
    words = ("--config", EXAMPLE / "config.yml", "--until-idle", *state)
    run = command("dispatch", "run", *words)
    assert run.returncode == 0, run.stderr
    shown = json.loads(command("dispatch", "status", ID, "--json", *state).stdout)["requests"][0]
    assert shown["state"] == "succeeded"
    assert [each["name"] for each in shown["progress"]] == [
        "trainingVmCreated",
        "imagesDownloaded",
        "modelIteration1Done",
        "modelIteration2Done",
        "modelIteration3Done",
        "trainingSuceededWithImages",
        "trainingVmDestroyed",
    ]
    ends = json.loads(command("dispatch", "ends", "--json", *state).stdout)["ends"]
    assert ends == [
        {
            "trainingVmId": shown["trainingVmId"],
            "requestId": ID,
            "outcome": "succeeded",
            "runId": 0,
        }
    ]


def test_status_has_the_fields_that_programs_read(site: Site):
    """Those of the design, in its order, for each request."""
    site.send("r1")
    site.finish()
    (request,) = asked(site, "status")["requests"]
    fields = ["requestId", "state", "sku", "image", "trainingVmId", "progress", "reason"]
    assert list(request)[:7] == fields
    assert set(request["progress"][0]) >= {"name", "at", "run"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", request["progress"][0]["at"])


def test_tables_fit_a_terminal(site: Site):
    """80 columns, whatever the id and the reason are like."""
    long = "x" * 190
    site.send("r1", "-".join("abcdefgh" for _ in range(20)))
    site.send(long, trainingVmSku="ND7")
    site.finish()
    for words in (["status"], ["status", long], ["ends"], ["dead"], ["dead", "show", "1"]):
        shown = site.call(*words, code=words == ["status", long])
        assert shown
        assert max(map(len, shown.splitlines())) <= 80


def test_status_of_one_that_did_not_end_well(site: Site):
    """Exit code 1 and the reason; 2 with a hint where there is no such request."""
    site.send("r1", trainingVmSku="ND7")
    site.finish()
    assert "this trainingVmSku is not known here" in site.call("status", "r1", code=1)
    run = site.start("status", "r9")
    _, err = run.communicate()
    assert (run.returncode, "no request 'r9'" in err) == (2, True)


def test_cancel_ends_a_training(tmp_path: Path):
    """What runs is ended; what has ended is said to have."""
    site = Site(tmp_path, seconds=300.0)
    site.send("r1")
    site.call("run", "--config", str(site.config), "--once")
    assert asked(site, "cancel", "r1") == {"requestId": "r1", "state": "submitted", "asked": True}
    site.finish()
    assert site.requests()["r1"]["state"] == "canceled"
    assert "had ended before: canceled" in site.call("cancel", "r1")
    site.call("cancel", "r9", code=2)


def test_dead_letters_are_listed_shown_and_put_back(site: Site):
    """Put back once the configuration knows the SKU, the same message runs."""
    site.send("r1", trainingVmSku="ND7")
    (site.folder / "bad.json").write_bytes(b"\xff not JSON")
    run = site.start("send", "bad.json")
    assert "will be refused: the message is not JSON" in run.communicate()[1]
    site.finish()
    found = asked(site, "dead")["dead"]
    assert [each["code"] for each in found] == ["not-json", "unknown-sku"]
    shown = asked(site, "dead", "show", str(found[1]["id"]))
    assert json.loads(shown["body"])["trainingVmSku"] == "ND7"
    assert "bodyBase64" in asked(site, "dead", "show", str(found[0]["id"]))
    assert "\\xff not JSON" in site.call("dead", "show", str(found[0]["id"]))
    site.config.write_text(site.config.read_text("utf-8").replace("ND6", "ND7"), "utf-8")
    site.call("dead", "put-back", str(found[1]["id"]))
    site.call("dead", "discard", str(found[0]["id"]))
    site.finish()
    assert site.requests()["r1"]["state"] == "succeeded"
    assert asked(site, "dead")["dead"] == []
    for words in (["dead", "show"], ["dead", "show", "99"], ["dead", "list", "1"]):
        site.call(*words, code=2)


def test_replay_tells_an_end_again_and_again_trains_once_more(site: Site):
    """P11: the old outcome, and with --again one more attempt, which has an end of its own."""
    site.send("r1")
    site.call("replay", "r1", code=2)
    site.finish()
    assert asked(site, "replay", "r1")["end"]["outcome"] == "succeeded"
    assert site.trained() == {"r1": 1}
    config = ("--config", str(site.config))
    assert asked(site, "replay", "r1", "--again", *config) == {"requestId": "r1", "attempt": 2}
    site.call("replay", "r1", "--again", *config, code=2)
    site.finish()
    assert site.trained() == {"r1": 2}
    assert len(site.ends()) == 2
    site.send("r1")
    site.finish()
    assert site.trained() == {"r1": 2}


def test_trainers_tell_progress_but_not_ends(site: Site):
    """Into the ledger by name; into their file where they are one; never an end or a machine."""
    site.send("r1")
    site.finish()
    site.call("progress", "r1", "modelIteration1Done", "--data", '{"loss": 0.5}')
    site.call("progress", "r1", "modelIteration1Done", "--seq", "1")
    told = site.requests()["r1"]["progress"]
    assert [each["data"] for each in told if each["name"] == "modelIteration1Done"] == [
        {"loss": 0.5},
        {},
    ]
    for words in (
        ["trainingSuceededWithImages"],
        ["trainingSucceededWithImages"],
        ["trainingVmDestroyed"],
        ["x", "--data", "[1]"],
        ["x", "--data", '{"a": NaN}'],
        ["x", "--data", '{"a": 1e999}'],
    ):
        site.call("progress", "r1", *words, code=2)
    site.call("progress", "r9", "x", code=2)
    file = site.folder / "told"
    env = {"TRAINING_PROGRESS_FILE": str(file), "TRAINING_REQUEST_ID": "r5"}
    site.call("progress", "r5", "imagesDownloaded", **env)
    assert json.loads(file.read_text("utf-8"))["name"] == "imagesDownloaded"
    site.call("progress", "r5", "trainingFailed", code=2, **env)


def test_no_more_is_told_of_one_that_has_told_too_much(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """That is an error, which says so."""
    site.send("r1")
    site.finish()
    monkeypatch.setattr("taskgraph_workers.dispatch.ledger.progress.MOST_FACTS", 3)
    words = ["dispatch", "progress", "r1", "step", "--state", str(site.state)]
    assert main(words) == 2
    assert "this can't be told: 100000 facts were told of it already" in capsys.readouterr().err


def test_orphans_are_none_where_the_machine_is_this_one(site: Site):
    """Nobody made it for a training, so nobody misses its end."""
    site.send("r1")
    site.finish()
    assert asked(site, "orphans", "--after", "1s") == {"orphans": []}
    site.call("orphans", "--after", "soon", code=2)


def test_logs_are_json_on_wish(site: Site):
    """One object a line, each with its requestId; nothing of the message but id, SKU and image."""
    site.send("r1", password="hunter2")
    words = ("run", "--config", str(site.config), "--until-idle", "--log-json")
    _, err = site.start(*words).communicate()
    lines = [json.loads(line) for line in err.splitlines()]
    assert {"at", "level", "event", "requestId"} <= set(lines[0])
    about = [line["event"] for line in lines if line["requestId"] == "r1"]
    assert about[0] == "accepted"
    assert about[-1] == "succeeded"
    assert "hunter2" not in err
    assert "images-3" not in err


def test_a_message_is_read_from_standard_input(tmp_path: Path):
    """``-``; what can't be read is said by name."""
    state = ["--state", str(tmp_path / "state")]
    run = subprocess.run(
        [sys.executable, "-m", "taskgraph_workers", "dispatch", "send", "-", *state, "--json"],
        input=body("r1"),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    )
    assert json.loads(run.stdout)["sent"] == [{"file": "-", "requestId": "r1", "reason": None}]
    done = command("dispatch", "send", tmp_path / "none.json", *state)
    assert (done.returncode, "none.json: can't be read" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("skus: {ND6: g}", "skus: {ND6: h}"), "config.yml"),
        (("        skus: {ND6: g}\n", ""), "no machine type is allowed"),
        (("dispatch:", "clusters:"), "config.yml"),
    ],
)
def test_a_wrong_configuration_turns_no_message_down(
    site: Site, change: tuple[str, str], told: str
):
    """It is refused before the first message is taken, with its place."""
    site.send("r1")
    site.config.write_text(site.config.read_text("utf-8").replace(*change), "utf-8")
    run = site.start("run", "--config", str(site.config), "--once")
    _, err = run.communicate()
    assert (run.returncode, told in err, "Traceback" in err) == (2, True, False)
    assert asked(site, "status") == {"requests": []}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["dispatch"], "dispatch takes a command"),
        (["dispatch", "stauts"], "did you mean 'status'?"),
        (["dispatch", "stauts", "first"], "no command 'stauts'\n    hint: did you mean 'status'?"),
        (["dispatch", "stauts", "first", "--json"], "no command 'stauts'\n"),
        (
            ["dispatch", "put-back", "1"],
            "no command 'put-back'\n    hint: dispatch dead put-back",
        ),
        (["dispatch", "logs", "f3"], "no command 'logs'\n    hint: there is: backup, "),
        (["dispatch", "-q", "status", "r1"], "options of dispatch stand behind its command"),
        (["dispatch", "run", "--broker", "amqp://a:b@c"], "TASKGRAPH_WORKERS_BROKER"),
        (["dispatch", "status", "--limit", "0"], "--limit: takes a number from 1 on"),
        (["dispatch", "ends", "--limit", "-1"], "--limit: takes a number from 1 on"),
        (["dispatch", "ends", "--after", "9" * 30], "--after: takes a number from 0 on"),
        (["dispatch", "dead", "show", "9" * 30], "ID: takes a number from 1 on"),
        (["dispatch", "dead", "shwo", "3"], "there is no 'shwo': did you mean 'show'?"),
        (["dispatch", "dead", "--limit", "x"], "--limit: invalid number value"),
        (["dispatch", "cancel", "--", "-x", "-y"], "unrecognized arguments: -y"),
    ],
)
def test_what_it_does_not_understand(
    words: list[str],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    """One error with a hint, and exit code 2."""
    monkeypatch.setenv("TASKGRAPH_WORKERS_STATE", str(tmp_path))
    if "run" in words:
        words = [*words, "--config", str(EXAMPLE / "config.yml")]
    if "status" in words:
        (tmp_path / "m.json").write_bytes(body())
        assert main(["dispatch", "send", str(tmp_path / "m.json")]) == 0
    assert main(words) == 2
    assert told in capsys.readouterr().err


def test_sending_says_where_to(tmp_path: Path):
    """A state or a queue that was meant to be another one can be seen."""
    (tmp_path / "m.json").write_bytes(body())
    for words, file in [
        (["--state", "typo"], "typo/ledger.sqlite"),
        (["--broker", f"sqlite:///{tmp_path}/q"], "q/queue.sqlite"),
    ]:
        done = command("dispatch", "send", "m.json", *words, cwd=tmp_path)
        assert done.stdout == f"queued r1 in {file}\n"
        assert (tmp_path / file).exists()


def test_quiet_logs_what_is_not_as_it_should_be(site: Site):
    """Of a dispatcher, unlike of others, that is warnings and errors: its help says so."""
    site.send("r1", trainingVmSku="ND7")
    run = site.start("run", "--config", str(site.config), "--once", "--quiet")
    (line,) = run.communicate()[1].splitlines()
    assert "warning: r1: rejected" in line
    assert "log warnings and errors alone" in command("dispatch", "run", "--help").stdout


def test_a_copy_needs_its_folder(site: Site):
    """One sentence says which is not there."""
    site.send("r1")
    run = site.start("backup", "none/copy.sqlite")
    folder = site.folder / "none"
    assert run.communicate()[1] == f"error: there is no folder {folder} for the copy\n"
    assert run.returncode == 2


def test_a_name_that_is_none(site: Site):
    """A fact's name is refused with what one is."""
    site.send("r1")
    site.finish()
    run = site.start("progress", "r1", "bad name")
    assert "can't be told: a name is a letter, and then" in run.communicate()[1]


def test_without_a_ledger_there_is_nothing_to_look_at(tmp_path: Path):
    """Looking makes no ledger; the hint says what does."""
    done = command("dispatch", "status", "--state", tmp_path / "none")
    assert done.returncode == 2
    assert "there is no ledger" in done.stderr
    assert not (tmp_path / "none").exists()


def test_a_new_message_is_seen_at_once(site: Site):
    """A dispatcher that rests takes what comes without being told."""
    site.send("r0")
    run = site.start("run", "--config", str(site.config))
    while not site.ends():
        time.sleep(0.05)
    site.send("r1")
    while len(site.ends()) < 2:
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=60) == 0
    assert site.trained() == {"r0": 1, "r1": 1}


@pytest.mark.parametrize("id", ["-x", "--json", "--", "--help"])
def test_a_request_that_looks_like_an_option(site: Site, id: str):
    """It came by a message, so it can be looked at and canceled: behind ``--``."""
    site.send(id)
    site.call("run", "--config", str(site.config), "--once")
    assert asked(site, "status")["requests"][0]["requestId"] == id
    assert site.call("status", "--limit", "1", "--", id).splitlines()[0] == id
    site.call("progress", "--seq", "2", "--", id, "imagesDownloaded")
    assert id in site.call("cancel", "--", id)


def test_the_table_tells_what_a_trainer_reached(tmp_path: Path):
    """How it ended is said by its state; that a machine went is nothing it reached."""
    site = Site(tmp_path)
    site.send("r1")
    site.send("r2", trainingVmSku="ND7")
    site.finish()
    rows = [line.split() for line in site.call("status").splitlines() if line[0] == "r"]
    assert rows == [
        ["request", "state", "sku", "image", "so", "far"],
        ["r2", "rejected", "ND7", "cwolff/my_keras_model"],
        ["r1", "succeeded", "ND6", "cwolff/my_keras_model", "imagesDownloaded"],
    ]


def test_what_a_request_waits_for_is_shown(tmp_path: Path):
    """The reason that its executor gives stands in the table and beside the request."""
    site = Site(tmp_path, seconds=300.0)
    site.config.write_text(site.config.read_text("utf-8").replace("at-once: 8", "at-once: 1"))
    site.send("r1", "r2")
    for _ in range(2):
        site.call("run", "--config", str(site.config), "--once")
    for words in (["status"], ["status", "r2"]):
        assert "it waits: 1 at once run here" in site.call(*words)
    assert site.requests()["r1"]["reason"] is None
    site.call("cancel", "r1")
    site.call("cancel", "r2")
    site.finish()
    assert site.requests()["r2"]["reason"] == "it never ran"
