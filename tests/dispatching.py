"""Dispatchers to test with: a clock that tests own, and an executor with faults to order."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ledgers import NOW, body, judge, send, unsent

from taskgraph_workers.dispatch.brokers.base import Delivery
from taskgraph_workers.dispatch.brokers.embedded import Embedded
from taskgraph_workers.dispatch.brokers.external import External
from taskgraph_workers.dispatch.brokers.sql import SqlBroker
from taskgraph_workers.dispatch.brokers.transport import Transport
from taskgraph_workers.dispatch.executors.base import Unreachable
from taskgraph_workers.dispatch.ledger import outbox, progress, queries
from taskgraph_workers.dispatch.ledger.database import Ledger, Settings, open_ledger
from taskgraph_workers.dispatch.ledger.files import QUEUE
from taskgraph_workers.dispatch.ledger.values import End, Request
from taskgraph_workers.dispatch.log import Log
from taskgraph_workers.dispatch.loop import Loop
from taskgraph_workers.dispatch.means import Means, Pace
from taskgraph_workers.dispatch.model import FINAL, Job, Progress, Status
from taskgraph_workers.dispatch.receive import Intake

#: Without waiting for what another test process does.
PACE = Pace()


@dataclass
class Clock:
    """A clock that goes on where somebody sleeps, or a test says so."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Service:
    """An executor in memory. It starts whatever it is told to: a key twice is two trainings.

    ``faults`` are for the next calls of a method: what is raised before it does anything, or after
    (then it is done, and nobody knows). None: no fault.
    """

    name: str = "local"
    ephemeral: bool = True
    jobs: dict[str, Job] = field(default_factory=dict)
    starts: Counter[str] = field(default_factory=Counter)
    statuses: dict[str, Status] = field(default_factory=dict)
    told: dict[str, list[Progress]] = field(default_factory=lambda: defaultdict(list))
    calls: Counter[str] = field(default_factory=Counter)
    canceled: set[str] = field(default_factory=set)
    released: set[str] = field(default_factory=set)
    before: dict[str, list[Exception | None]] = field(default_factory=lambda: defaultdict(list))
    after: dict[str, list[Exception | None]] = field(default_factory=lambda: defaultdict(list))

    def _fault(self, faults: dict[str, list[Exception | None]], method: str) -> None:
        fault = faults[method].pop(0) if faults[method] else None
        if fault is not None:
            raise fault

    def submit(self, job: Job) -> str:
        self.calls["submit"] += 1
        self._fault(self.before, "submit")
        self.jobs[job.key] = job
        self.starts[job.key] += 1
        self.statuses[f"job-{job.key}"] = Status("running", 0, "vm-1")
        self._fault(self.after, "submit")
        return f"job-{job.key}"

    def find(self, key: str) -> str | None:
        self.calls["find"] += 1
        self._fault(self.before, "find")
        return f"job-{key}" if key in self.jobs else None

    def poll(self, handles: Iterable[str]) -> Mapping[str, Status]:
        self.calls["poll"] += 1
        self._fault(self.before, "poll")
        return {each: self.statuses.get(each, Status("lost")) for each in handles}

    def cancel(self, handle: str) -> None:
        self.calls["cancel"] += 1
        self._fault(self.before, "cancel")
        self.canceled.add(handle)
        if handle in self.statuses and self.statuses[handle].phase in ("queued", "running"):
            self.statuses[handle] = replace(self.statuses[handle], phase="canceled")

    def progress(self, handle: str) -> Iterable[Progress]:
        self.calls["progress"] += 1
        self._fault(self.before, "progress")
        return list(self.told[handle])

    def release(self, handle: str) -> None:
        self.calls["release"] += 1
        self._fault(self.before, "release")
        self.released.add(handle)

    def end(self, phase: str = "succeeded", **changes: Any) -> None:
        """Have all jobs that run end so."""
        for handle, status in self.statuses.items():
            if status.phase in ("queued", "running", "unknown"):
                self.statuses[handle] = replace(status, phase=phase, **changes)


class Died(BaseException):
    """A dispatcher that is killed."""


@dataclass
class Mortal(SqlBroker):
    """A queue of its own whose dispatcher dies, when it was ordered, once it has done something."""

    deaths: set[str] = field(default_factory=set)

    def receive(self, wait_s: float) -> Delivery | None:
        found = super().receive(wait_s)
        self._die("receive")
        return found

    def acknowledge(self, delivery: Delivery) -> bool:
        self._die("record")
        found = super().acknowledge(delivery)
        self._die("acknowledge")
        return found

    def publish(self, body: Mapping[str, Any], message_id: str) -> None:
        super().publish(body, message_id)
        self._die("publish")

    def _die(self, step: str) -> None:
        if step in self.deaths:
            self.deaths.remove(step)
            raise Died


def down(text: str = "no answer") -> Unreachable:
    """What an executor says that can't be reached."""
    return Unreachable(text)


@dataclass
class World:
    """A ledger, a clock, an executor, and a dispatcher that works with them.

    ``apart``: messages are in a queue of their own, and its dispatchers have them by ``broker``.
    """

    folder: Path
    clock: Clock = field(default_factory=Clock)
    service: Service = field(default_factory=Service)
    said: io.StringIO = field(default_factory=io.StringIO)
    apart: bool = False

    def __post_init__(self) -> None:
        self.ledger: Ledger = open_ledger(self.folder, Settings(busy_s=0.1))
        self.queue, self.broker = self.ledger, None
        if self.apart:
            self.queue = open_ledger(self.folder, Settings(kind=QUEUE))
            self.broker = Mortal(self.folder, self.clock, sleep=self.clock.sleep)
        self.loop = self.dispatcher()

    def dispatcher(self, name: str = "me", **changes: Any) -> Loop:
        """One more dispatcher on the ledger."""
        say = Log(self.said, clock=self.clock)
        means = Means(
            self.ledger,
            changes.pop("executors", {"local": self.service}),
            say,
            name,
            clock=self.clock,
            chance=lambda: 1.0,
            **changes,
        )
        transport: Transport = Embedded(self.ledger, self.clock)
        if self.broker is not None:
            transport = External(means, self.broker)
        return Loop(means, Intake(means, transport, judge), self.clock.sleep)

    def close(self) -> None:
        for each in (self.ledger, self.queue):
            each.close()

    def send(self, *request_ids: str, **changes: Any) -> None:
        for each in request_ids:
            send(self.queue, body(each, **changes), self.clock())

    def turns(self, count: int = 1, loop: Loop | None = None, after_s: float = 1.0) -> None:
        """Have a dispatcher do so many turns, with time going by between them."""
        for _ in range(count):
            (loop or self.loop).turn()
            self.clock.now += after_s

    def request(self, request_id: str = "r1") -> Request:
        found = self.ledger.see(queries.request, request_id)
        assert found is not None
        return found

    def states(self) -> dict[str, str]:
        return {each.request_id: each.state for each in self.ledger.see(queries.newest)}

    def ends(self) -> list[End]:
        return list(self.ledger.see(outbox.ends))

    def facts(self, request_id: str = "r1") -> list[str]:
        known = self.ledger.see(progress.facts_of, [request_id]).get(request_id, ())
        return [fact.progress.name for fact in known]

    def check_promises(self) -> None:
        """What holds at any time: P1 and P7."""
        assert all(count == 1 for count in self.service.starts.values())
        due = []
        for each in self.ledger.see(queries.newest):
            last = each.attempt + (each.state in FINAL)
            due += [f"{each.request_id}/{number}" for number in range(1, last)]
        told = [end.message_id for end in (*self.ends(), *self.ledger.see(unsent))]
        assert sorted(told) == sorted(due)
