"""Many requests, two dispatchers, kills at random moments, duplicates (P1, P2, P7).

``TASKGRAPH_WORKERS_SOAK=full`` runs 1,000 requests with 50 kills, in some minutes.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

from ledgers import body, program, send
from trainings import Site

from taskgraph_workers.dispatch.ledger import dead, outbox, queries
from taskgraph_workers.dispatch.ledger.database import open_ledger

FULL = os.environ.get("TASKGRAPH_WORKERS_SOAK") == "full"

#: Requests and kills, with a service that is another process's, and with real trainings.
MANY, KILLS = (1000, 50) if FULL else (120, 8)
REAL, REAL_KILLS = (60, 15) if FULL else (12, 4)

#: A dispatcher that starts jobs at a service which never looks whether it has one already.
PROGRAM = """
import os, sys, time, uuid
from ledgers import judge
from taskgraph_workers.dispatch import owners
from taskgraph_workers.dispatch.brokers.embedded import Embedded
from taskgraph_workers.dispatch.ledger.database import open_ledger
from taskgraph_workers.dispatch.log import Log
from taskgraph_workers.dispatch.loop import Loop
from taskgraph_workers.dispatch.means import Means
from taskgraph_workers.dispatch.model import Status
from taskgraph_workers.dispatch.receive import Intake

JOBS = sys.argv[2]

class Service:
    name, ephemeral = "local", True
    def _of(self, key):
        return sorted(each for each in os.listdir(JOBS) if each.startswith(key))
    def submit(self, job):
        handle = f"{job.key}.{uuid.uuid4().hex}"
        os.close(os.open(os.path.join(JOBS, handle), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        return handle
    def find(self, key):
        return next(iter(self._of(key)), None)
    def poll(self, handles):
        return {each: self._status(each) for each in handles}
    def _status(self, handle):
        age = time.time() - os.stat(os.path.join(JOBS, handle)).st_mtime
        return Status("running" if age < 0.3 else "succeeded", 0, f"vm-{handle[:4]}")
    def cancel(self, handle): pass
    def progress(self, handle): return ()
    def release(self, handle): pass

ledger = open_ledger(sys.argv[1])
means = Means(ledger, {"local": Service()}, Log(sys.stderr, quiet=True), owners.name())
Loop(means, Intake(means, Embedded(ledger), judge)).run(until_idle=True)
"""


def kill_now_and_then(start: object, kills: int, chance: random.Random) -> None:
    """Two dispatchers at a time; one that is killed, or done, is followed by another."""
    runs: list[subprocess.Popen[str]] = [start(), start()]  # type: ignore[operator]
    for number in range(kills):
        time.sleep(chance.uniform(0.2, 0.9))
        victim = runs[number % 2]
        victim.kill()
        victim.communicate()
        runs[number % 2] = start()  # type: ignore[operator]
    for run in runs:
        _, err = run.communicate(timeout=600)
        # That there was a conflict may be said, and nothing else.
        others = [line for line in err.splitlines() if ": conflict " not in line]
        assert (run.returncode, others) == (0, [])


def test_a_service_that_starts_whatever_it_is_told(tmp_path: Path):
    """Nothing lost, nothing started twice, each ended, by looking up and owning alone."""
    jobs, state = tmp_path / "jobs", tmp_path / "state"
    jobs.mkdir()
    names = {f"r{number}" for number in range(MANY)}
    chance = random.Random(5)
    with open_ledger(state) as ledger:
        for name in sorted(names):
            for _ in range(chance.choice([1, 1, 1, 2, 5])):
                send(ledger, body(name), time.time())
            if chance.random() < 0.1:
                send(ledger, body(name, trainingBaseModelBlobId="other"), time.time())
        kill_now_and_then(lambda: program(PROGRAM, state, jobs), KILLS, chance)
        states = {each.request_id: each.state for each in ledger.see(queries.newest, 2 * MANY)}
        assert states == dict.fromkeys(names, "succeeded")
        assert len(os.listdir(jobs)) == MANY
        ends = ledger.see(outbox.ends, 2 * MANY)
        assert Counter(end.body["requestId"] for end in ends) == dict.fromkeys(names, 1)
        assert {letter.code for letter in ledger.see(dead.letters)} == {"conflict"}
        assert ledger.see(queries.is_idle)


def test_real_trainings_on_this_machine(tmp_path: Path):
    """Each training counts itself: once for each request, whoever was killed when."""
    site = Site(tmp_path, seconds=0.2)
    names = [f"r{number}" for number in range(REAL)]
    site.send(*names, *names[:3])
    kill_now_and_then(_without_log(site), REAL_KILLS, random.Random(7))
    site.finish()
    assert site.trained() == dict.fromkeys(names, 1)
    assert {each["state"] for each in site.requests().values()} == {"succeeded"}
    assert sorted(end["requestId"] for end in site.ends()) == sorted(names)


def _without_log(site: Site) -> object:
    return lambda: site.start("run", "--config", str(site.config), "--until-idle", "-q")
