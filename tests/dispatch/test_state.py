"""Where a dispatcher's state is, and that no password is seen."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from taskgraph_workers.dispatch import owners
from taskgraph_workers.dispatch import state as states
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.log import Log
from taskgraph_workers.dispatch.means import Means
from taskgraph_workers.dispatch.state import State, masked, state_of
from taskgraph_workers.errors import WorkersError
from taskgraph_workers.model import Commands, Dispatch


def means(ledger: Ledger) -> Means:
    return Means(ledger, {}, Log(sys.stderr), "me")


def asks(state: State) -> None:
    states.messages(state, create=True).close()


PASSWORD = "amqp://me:hunter2@queue.example.com/vhost"


def test_a_folder_is_found_in_the_usual_order():
    """The option, the variable, XDG_STATE_HOME if it is absolute, and a folder of the home."""
    environ = {"HOME": "/home/me", "XDG_STATE_HOME": "/var/me", states.STATE: "/env"}
    found = []
    for option in ("/option", None):
        found.append(str(state_of({"state": option}, environ).folder))
    del environ[states.STATE]
    found.append(str(state_of({}, environ).folder))
    environ["XDG_STATE_HOME"] = "relative"
    found.append(str(state_of({}, environ).folder))
    assert found == [
        "/option",
        "/env",
        "/var/me/taskgraph-workers",
        "/home/me/.local/state/taskgraph-workers",
    ]


@pytest.mark.parametrize("name", ["database", "broker"])
def test_a_password_is_taken_from_the_environment_only(name: str):
    """On a command line it is refused, with the variable to put it in, and is not repeated."""
    variable = f"TASKGRAPH_WORKERS_{name.upper()}"
    with pytest.raises(WorkersError, match=variable) as refused:
        state_of({name: PASSWORD}, {})
    assert "hunter2" not in str(refused.value)
    assert getattr(state_of({}, {variable: PASSWORD}), name) == PASSWORD


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (PASSWORD, "amqp://me:***@queue.example.com/vhost"),
        ("postgresql://me@db/x", "postgresql://me@db/x"),
        ("amqp://me:p@ss@host/", "amqp://me:***@host/"),
        ("amqp://:secret@host/", "amqp://:***@host/"),
        ("azure://queue?sas_token=abc&x=1", "azure://queue?sas_token=***&x=1"),
        ("redis://host/0?password=abc", "redis://host/0?password=***"),
        ("http://[::1", "***"),
        ("amqp://me:p/x@host/", "***"),
        ("amqp://me:p#x@host/", "***"),
        ("AccountKey=abc==;x=1", "AccountKey=***;x=1"),
        ("sqlite:////srv/key=1", "sqlite:////srv/key=1"),
        (
            "amqp://host:5672/vhost?mail=me@example.com",
            "amqp://host:5672/vhost?mail=me@example.com",
        ),
        ("amqp://[::1]:5672/@vhost", "amqp://[::1]:5672/@vhost"),
        ("sqlite:////srv/me@here/a:b", "sqlite:////srv/me@here/a:b"),
        (
            "Endpoint=sb://ns.example.net/;SharedAccessKey=YWJj==",
            "Endpoint=sb://ns.example.net/;SharedAccessKey=***",
        ),
    ],
)
def test_what_is_secret_in_a_url_is_not_shown(url: str, shown: str):
    """P12: passwords and tokens, wherever they stand; what can't be read is not shown at all."""
    assert masked(url) == shown


@pytest.mark.parametrize("name", ["database", "broker"])
@pytest.mark.parametrize(
    ("said", "hint"), [("/tmp/q", "sqlite:////tmp/q"), ("queue", "sqlite:////FOLDER")]
)
def test_a_path_is_no_url(name: str, said: str, hint: str):
    """The hint is the URL that was meant, as far as that is known."""
    with pytest.raises(WorkersError) as caught:
        state_of({name: said}, {})
    assert str(caught.value) == f"--{name} is no URL: {said}\n    hint: {hint}"


def test_what_nobody_knows_is_said_without_its_secrets(tmp_path: Path):
    """A broker or database of another kind is refused, and its password kept."""
    environ = {states.STATE: str(tmp_path), states.BROKER: PASSWORD}
    environ[states.DATABASE] = "oracle://me:hunter2@db/x"
    state = state_of({}, environ)
    with pytest.raises(WorkersError, match="oracle") as refused:
        states.ledger(state)
    assert "hunter2" not in str(refused.value)
    with states.ledger(state_of({"state": str(tmp_path)}, {})) as ledger:
        for refuse in (lambda: states.transport(state, means(ledger)), lambda: asks(state)):
            with pytest.raises(WorkersError, match="amqp") as refused:
                refuse()
            assert "hunter2" not in str(refused.value)
    with pytest.raises(WorkersError, match="no URL"):
        state_of({}, {states.BROKER: "me:hunter2"})


def test_without_configuration_it_is_this_machine(tmp_path: Path):
    """SQLite in the folder, its own queue, the local executor; nothing else is needed."""
    state = state_of({"state": str(tmp_path / "s")}, {})
    with states.ledger(state) as ledger:
        assert not states.transport(state, means(ledger)).listens
    assert (tmp_path / "s" / "ledger.sqlite").stat().st_mode & 0o077 == 0
    executors = states.Executors(state, Dispatch())
    assert executors.find(states.executor_name(state, Dispatch())).name == "local"


def test_a_database_may_be_named_by_its_url(tmp_path: Path):
    """The folder of a SQLite ledger, as a URL."""
    state = state_of({"database": f"sqlite:///{tmp_path}/here"}, {})
    states.ledger(state).close()
    assert (tmp_path / "here" / "ledger.sqlite").exists()


@pytest.mark.parametrize("variable", [states.DATABASE, states.BROKER])
@pytest.mark.parametrize("url", ["sqlite://srv/queue", "sqlite:///", "sqlite://"])
def test_a_url_that_names_no_folder(tmp_path: Path, variable: str, url: str):
    """A slash that is missing makes no folder of another name."""
    state = state_of({"state": str(tmp_path)}, {variable: url})
    with pytest.raises(WorkersError, match="names no folder of this machine") as raised:
        states.messages(state, create=True)
    assert "four slashes" in raised.value.problems[0].hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a b", "what?x=1", "#1", "100%41"])
def test_a_queue_may_be_named_by_its_url(tmp_path: Path, name: str):
    """Beside the ledger, too, in a file of its own; its folder is called what it is called."""
    state = state_of(
        {"state": str(tmp_path / name)}, {states.BROKER: f"sqlite:///{tmp_path}/{name}"}
    )
    assert states.has_queue(state)
    with states.messages(state, create=True), states.ledger(state) as ledger:
        assert states.transport(state, means(ledger)).listens
    files = {each.name for each in (tmp_path / name).glob("*.sqlite")}
    assert files == {"ledger.sqlite", "queue.sqlite"}


def test_messages_for_another_program_s_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """They are sent by its own tools; the broker is not loaded for saying so."""
    point = SimpleNamespace(name="other", value="theirs:Broker", load=None)
    monkeypatch.setattr(states, "offered", lambda group: [point])
    state = state_of({"state": str(tmp_path), "broker": "other://there"}, {})
    with pytest.raises(WorkersError, match="broker other are sent by its own tools"):
        asks(state)


def test_a_broker_of_others_that_can_not_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Says whose it is, and where it was to be; what it said itself may hold the password."""

    def load() -> Any:
        raise ImportError("no module for other://me:hunter2@there")

    point = SimpleNamespace(name="other", value="theirs:Broker", load=load)
    monkeypatch.setattr(states, "offered", lambda group: [point])
    state = state_of({"state": str(tmp_path), "broker": "other://there"}, {})
    with states.ledger(state) as ledger, pytest.raises(WorkersError) as raised:
        states.transport(state, means(ledger))
    assert "broker 'other' (theirs:Broker) can't be loaded: ImportError" in str(raised.value)
    assert "other://there" in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_executors_that_requests_are_still_at_are_known(tmp_path: Path):
    """Beside the one that new ones go to; one that nobody has is no error until it is chosen."""
    commands = {"cloud": Commands("cloud", release=("x",)), "lab": Commands("lab")}
    state = state_of({"state": str(tmp_path), "executor": "lab"}, {})
    dispatch = Dispatch(executor="cloud", executors=commands)
    executors = states.Executors(state, dispatch)
    assert states.executor_name(state, dispatch) == "lab"
    found = [executors.get(name) for name in ("cloud", "lab", "local", "gone")]
    assert [each and each.ephemeral for each in found] == [True, False, False, None]
    with pytest.raises(WorkersError, match="no executor"):
        executors.find("gone")


def test_an_owner_that_is_gone_is_known_on_its_machine():
    """What runs is there; what ended is gone; of another machine's nobody can tell."""
    mine = f"{owners.name()} token"
    here, pid, identity = mine.rpartition(" ")[0].rsplit(":", 2)
    assert pid == str(os.getpid())
    assert not owners.is_gone(mine)
    assert owners.is_gone(f"{here}:{pid}:{identity}0 token")
    assert owners.is_gone(f"{here}:4194999:{identity} token")
    assert not owners.is_gone(f"elsewhere:{pid}:{identity}0 token")
    assert not owners.is_gone("anything at all")
