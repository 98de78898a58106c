"""A queue in a database of its own: leases, and what happens to its file."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dispatching import Clock
from ledgers import NOW, body, send

from taskgraph_workers.dispatch.brokers.base import Broker, BrokerDown, Delivery
from taskgraph_workers.dispatch.brokers.sql import SqlBroker
from taskgraph_workers.dispatch.ledger import outbox
from taskgraph_workers.dispatch.ledger.database import Ledger, Settings, open_ledger
from taskgraph_workers.dispatch.ledger.errors import LedgerError
from taskgraph_workers.dispatch.ledger.files import QUEUE

LEASE_S = 30.0
OPEN = Settings(kind=QUEUE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "queue"


@pytest.fixture
def messages(folder: Path) -> Iterator[Ledger]:
    """The queue as its sender has it."""
    with open_ledger(folder, OPEN) as opened:
        yield opened


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def broker(folder: Path, clock: Clock) -> SqlBroker:
    return SqlBroker(folder, clock, LEASE_S, clock.sleep)


def received(broker: Broker) -> Delivery:
    found = broker.receive(0.0)
    assert found is not None
    return found


def test_receiving_waits_as_long_as_it_is_told(broker: SqlBroker, messages: Ledger, clock: Clock):
    """Without a message it comes back with none; with one, at once."""
    assert broker.receive(2.0) is None
    assert clock.now == pytest.approx(NOW + 2.0)
    send(messages, body())
    assert broker.receive(2.0) is not None
    assert clock.now == pytest.approx(NOW + 2.0)


def test_a_message_comes_while_somebody_waits(folder: Path, messages: Ledger, clock: Clock):
    """Waiting looks again and again, also where the clock is set back meanwhile."""
    naps = itertools.count()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds - 10.0)
        if next(naps) == 3:
            send(messages, body(), clock())

    broker = SqlBroker(folder, clock, sleep=sleep)
    assert broker.receive(60.0) is not None
    assert next(naps) < 10


def test_a_received_message_is_held_by_its_lease(broker: SqlBroker, messages: Ledger, clock: Clock):
    """T12: nobody else has it meanwhile; after that its first holder has no say any more."""
    send(messages, body())
    slow = received(broker)
    clock.sleep(LEASE_S - 1)
    assert broker.receive(0.0) is None
    assert not broker.is_empty()
    clock.sleep(1.0)
    ours = received(broker)
    broker.release(slow, 0.0)
    assert broker.receive(0.0) is None
    assert not broker.acknowledge(slow)
    assert broker.acknowledge(ours)
    assert broker.is_empty()


def test_a_message_that_is_given_back_comes_again(
    broker: SqlBroker, messages: Ledger, clock: Clock
):
    """After its delay, and for anybody."""
    send(messages, body())
    broker.release(received(broker), 5.0)
    assert broker.receive(0.0) is None
    clock.sleep(5.0)
    assert broker.acknowledge(received(broker))


def test_what_a_wrong_clock_put_off_is_taken(broker: SqlBroker, messages: Ledger, clock: Clock):
    """A sender, or a dispatcher, whose clock was years ahead holds no message back."""
    send(messages, b"sent", NOW + 10**8)
    send(messages, b"leased")
    received(SqlBroker(broker.folder, lambda: NOW + 10**7, LEASE_S))
    assert {received(broker).body, received(broker).body} == {b"sent", b"leased"}
    assert broker.receive(0.0) is None


def test_an_end_is_published_once_for_each_id(broker: SqlBroker, messages: Ledger):
    """Whoever does not know whether it was, publishes again; its readers see it once."""
    for _ in range(2):
        broker.publish({"requestId": "r1"}, "r1/1")
    broker.publish({"requestId": "r1"}, "r1/2")
    assert [end.message_id for end in messages.see(outbox.ends)] == ["r1/1", "r1/2"]
    assert broker.is_empty()


# --- its file -------------------------------------------------------------------------------


def test_a_queue_that_nobody_made_is_waited_for(broker: SqlBroker, folder: Path):
    """Looking for messages makes none: the folder may be of a disk that is not mounted."""
    broker.check()
    with pytest.raises(BrokerDown, match="there is no queue at"):
        broker.receive(0.0)
    with pytest.raises(BrokerDown, match="there is no queue at"):
        broker.publish({}, "r1/1")
    assert not folder.exists()
    with open_ledger(folder, OPEN) as made:
        send(made, body())
    assert broker.acknowledge(received(broker))


@pytest.mark.parametrize("anew", [False, True])
def test_a_queue_that_is_gone_for_a_while(
    broker: SqlBroker, messages: Ledger, folder: Path, anew: bool
):
    """It is down until there is one again: the same, or another that was made anew."""
    send(messages, b"first")
    first = received(broker)
    messages.close()
    folder.rename(folder.with_name("away"))
    for call in (lambda: broker.acknowledge(first), lambda: broker.publish({}, "r1/1")):
        with pytest.raises(BrokerDown, match="there is no queue at"):
            call()
    if anew:
        with open_ledger(folder, OPEN) as made:
            send(made, b"second")
        assert not broker.acknowledge(first)
        assert received(broker).body == b"second"
        shutil.rmtree(folder)
    folder.with_name("away").rename(folder)
    assert broker.acknowledge(first)


def test_a_queue_that_is_locked_is_down_for_a_moment(
    broker: SqlBroker, messages: Ledger, folder: Path
):
    """T6: said as such, and what was received is still held after it."""
    send(messages, body())
    ours = received(broker)
    other = sqlite3.connect(folder / QUEUE.name, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BrokerDown, match=r"the queue .* is locked by another process"):
        broker.acknowledge(ours)
    other.execute("ROLLBACK")
    other.close()
    assert broker.acknowledge(ours)


def test_what_is_no_queue_is_refused_at_once(broker: SqlBroker, folder: Path):
    """Before anything runs: nothing that passes, and nothing that is written on."""
    folder.mkdir()
    with sqlite3.connect(folder / QUEUE.name) as theirs:
        theirs.execute("CREATE TABLE theirs (a)")
    with pytest.raises(LedgerError, match=r"the queue .* is another program's database"):
        broker.check()


# --- whose it is ----------------------------------------------------------------------------


def modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in folder.iterdir()}


def test_a_queue_is_its_user_s_unless_the_folder_says_more(folder: Path, tmp_path: Path):
    """As made by sending: private. In a folder that a group may write to, that group's."""
    with open_ledger(folder, OPEN) as made:
        send(made, body())
        assert modes(folder) == {0o600}
    group = tmp_path / "group"
    group.mkdir()
    group.chmod(0o2770)
    old = os.umask(0o077)
    try:
        with open_ledger(group, OPEN) as made:
            send(made, body())
            assert modes(group) == {0o660}
        with open_ledger(group, OPEN):
            assert modes(group) == {0o660}
    finally:
        os.umask(old)


def another_user(group: int, call: Callable[[], object]) -> int:
    """The exit code of a process that calls this, as a user who is in a group."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        os.setgroups([group])
        os.setgid(65534)
        os.setuid(65534)
        call()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("group", [65500, 65501])
def test_a_program_of_another_user_sends(group: int):
    """By the group of the folder; and it reads the ends, while a dispatcher has the file open."""
    base = Path(tempfile.mkdtemp())
    try:
        base.chmod(0o755)
        folder = base / "queue"
        folder.mkdir()
        os.chown(folder, 0, 65500)
        folder.chmod(0o2770)

        def sends() -> None:
            with open_ledger(folder, OPEN) as opened:
                send(opened, body())

        def reads() -> None:
            with open_ledger(folder, Settings(create=False, kind=QUEUE)) as opened:
                assert [end.message_id for end in opened.see(outbox.ends)] == ["r1/1"]

        broker = SqlBroker(folder, lambda: NOW)
        allowed = group == 65500
        assert another_user(group, sends) == (not allowed)
        if allowed:
            assert broker.acknowledge(received(broker))
            broker.publish({"requestId": "r1"}, "r1/1")
            assert another_user(group, reads) == another_user(group, sends) == 0
            assert received(broker).body == body()
    finally:
        shutil.rmtree(base)
