"""SIGKILL in the middle, and many at once: nothing is lost, nothing is there twice."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from ledgers import NOW, ask, body, judge, own, program, send, unsent, waits

from taskgraph_workers.dispatch.brokers.embedded import Embedded
from taskgraph_workers.dispatch.failpoints import armed
from taskgraph_workers.dispatch.ledger import attempts, dead, outbox, progress, queries
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.model import Status

RECORD = """
import sys, time
from ledgers import NOW, judge
from taskgraph_workers.dispatch.brokers.embedded import Embedded
from taskgraph_workers.dispatch.ledger.database import open_ledger
broker = Embedded(open_ledger(sys.argv[1]), lambda: NOW)
while (recorded := broker.record_next(judge)) is not None:
    print(recorded.result, recorded.request_id, flush=True)
"""

END = """
import sys
from ledgers import NOW, own
from taskgraph_workers.dispatch.brokers.embedded import Embedded
from taskgraph_workers.dispatch.ledger import attempts
from taskgraph_workers.dispatch.ledger.database import open_ledger
from taskgraph_workers.dispatch.model import Status
ledger = open_ledger(sys.argv[1])
ledger.do(attempts.change, own(ledger, NOW + 1), "failed", NOW + 1, Status("failed"))
Embedded(ledger, lambda: NOW + 1).relay(100)
print("done")
"""

OWN = """
import sys
from ledgers import NOW
from taskgraph_workers.dispatch.ledger import attempts
from taskgraph_workers.dispatch.ledger.database import open_ledger
ledger = open_ledger(sys.argv[1])
while found := ledger.do(attempts.own, attempts.Owner("me", 60.0, limit=3), NOW):
    for mine in found:
        assert ledger.do(attempts.record_handle, mine, sys.argv[2]) is not None
        print(mine.request_id)
"""

RELAY = """
import sys
from ledgers import NOW
from taskgraph_workers.dispatch.ledger import outbox
from taskgraph_workers.dispatch.ledger.database import open_ledger
ledger = open_ledger(sys.argv[1])
while found := ledger.do(outbox.take, NOW, 60.0, 3):
    for end in found:
        print(end.message_id)
        assert ledger.do(outbox.sent, end, NOW)
"""


def killed(code: str, folder: Path, failpoint: str) -> str:
    run = program(code, folder, failpoint=failpoint)
    out, err = run.communicate()
    assert (run.returncode, err) == (-9, "")
    return out


def together(code: str, folder: Path, count: int) -> Counter[str]:
    """What several processes print that do the same at once."""
    runs = [program(code, folder, number) for number in range(count)]
    said = [run.communicate() for run in runs]
    assert [err for _, err in said] == [""] * count
    return Counter(line for out, _ in said for line in out.splitlines())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.mark.parametrize("point", ["after-receive", "before-commit", "after-commit"])
def test_a_dispatcher_that_is_killed_loses_no_message(ledger: Ledger, folder: Path, point: str):
    """At whatever step it dies: the message waits, or its request is there, never both."""
    broker = Embedded(ledger, lambda: NOW)
    send(ledger, body("r1"))
    send(ledger, body("r2", trainingVmSku="ND7"))
    killed(RECORD, folder, point)
    done = len(ledger.see(queries.newest))
    assert done == (point == "after-commit")
    assert waits(ledger)
    killed(RECORD, folder, f"{point}:{2 - done}")
    results = Counter()
    while (recorded := broker.record_next(judge)) is not None:
        results[recorded.result] += 1
    states = {each.request_id: each.state for each in ledger.see(queries.newest)}
    assert states == {"r1": "accepted", "r2": "rejected"}
    assert results["duplicate"] == results["conflict"] == 0
    assert [end.message_id for end in ledger.see(unsent)] == ["r2/1"]
    assert [letter.times for letter in ledger.see(dead.letters)] == [1]


@pytest.mark.parametrize("point", ["after-state-change", "after-outbox-write", "during-relay"])
def test_an_end_that_is_killed_happens_whole_or_not(ledger: Ledger, folder: Path, point: str):
    """State, request, progress and end message are all there, or none of them is."""
    ask(ledger)
    killed(END, folder, point)
    ended = point == "during-relay"
    found = ledger.see(queries.request, "r1")
    assert found is not None
    assert found.state == ("failed" if ended else "accepted")
    assert len(ledger.see(unsent)) == ended
    assert len(ledger.see(progress.facts_of, ["r1"])) == ended
    if not ended:
        mine = own(ledger, NOW + 100)
        ledger.do(attempts.change, mine, "failed", NOW, Status("failed"))
    assert Embedded(ledger, lambda: NOW + 100).relay(100) == 1
    assert len(ledger.see(outbox.ends)) == 1


def test_dispatchers_share_messages(ledger: Ledger, folder: Path):
    """Several processes record each message once, duplicates among them once more for nothing."""
    for number in range(60):
        send(ledger, body(f"r{number}"))
        if number % 3 == 0:
            send(ledger, body(f"r{number}"))
    said = together(RECORD, folder, 3)
    wanted = Counter({f"accepted r{number}": 1 for number in range(60)})
    wanted.update(f"duplicate r{number}" for number in range(0, 60, 3))
    assert said == wanted


def test_dispatchers_that_are_killed_again_and_again_lose_nothing(ledger: Ledger, folder: Path):
    """Killed at random moments, others take over, and each message is recorded once."""
    broker = Embedded(ledger, lambda: NOW)
    names = {f"r{number}" for number in range(150)}
    for name in sorted(names):
        send(ledger, body(name))
    said: list[str] = []
    for pause in range(8):
        pair = [program(RECORD, folder) for _ in range(2)]
        time.sleep(0.3 + pause * 0.03)
        for run in pair:
            run.kill()
        said += [line for run in pair for line in run.communicate()[0].splitlines()]
    while (recorded := broker.record_next(judge)) is not None:
        said.append(f"{recorded.result} {recorded.request_id}")
    assert {each.request_id for each in ledger.see(queries.newest, 1000)} == names
    assert {line.split()[0] for line in said if " " in line} == {"accepted"}
    assert max(Counter(said).values()) == 1
    assert {each.result for each in [ask(ledger, name) for name in names]} == {"duplicate"}


def test_dispatchers_share_attempts(ledger: Ledger, folder: Path):
    """Each attempt is owned by one process, and written by it."""
    for number in range(40):
        ask(ledger, f"r{number}")
    assert together(OWN, folder, 3) == Counter(f"r{number}" for number in range(40))


def test_dispatchers_share_ends(ledger: Ledger, folder: Path):
    """Each end message is taken by one process while its lease lasts."""
    for number in range(40):
        ask(ledger, f"r{number}", trainingVmSku="ND7")
    assert together(RELAY, folder, 3) == Counter(f"r{number}/1" for number in range(40))


def test_a_failpoint_outside_of_tests_is_nothing():
    """Without the variable nothing is compared, counted or killed."""
    assert armed("") is armed("")
    armed("")("after-commit")
    armed("somewhere-else")("after-commit")
    third = armed("after-commit:3")
    third("after-commit")
    third("after-commit")
