"""Any sequence of operations, against a model in plain Python."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from ledgers import NOW, body, judge, send, unsent, waits

from taskgraph_workers.dispatch.brokers.embedded import Embedded
from taskgraph_workers.dispatch.ledger import attempts, dead, outbox, queries
from taskgraph_workers.dispatch.ledger.attempts import Owner
from taskgraph_workers.dispatch.ledger.database import open_ledger
from taskgraph_workers.dispatch.ledger.values import Accepted, Attempt, End
from taskgraph_workers.dispatch.model import FINAL, REJECTED, STATES, Refused, Status

IDS = st.sampled_from(["a", "b"])
#: Contents of a message: two that run, two that are rejected.
CONTENTS: dict[str, dict[str, Any]] = {
    "good": {},
    "other": {"extra": 1},
    "bad": {"trainingVmSku": "ND7"},
    "worse": {"trainingImage": None},
}
TARGETS = st.sampled_from(sorted(set(STATES) - {REJECTED}))
FOR_S = 10.0


@dataclass
class Try:
    """An attempt as it should be."""

    state: str = "accepted"
    owner: str | None = None
    owned_until: float = 0.0
    next_look: float = NOW
    handle: str | None = None
    cancel: float | None = None


@dataclass
class Asked:
    """A request as it should be."""

    content: str
    tries: dict[int, Try] = field(default_factory=dict)
    number: int = 1
    state: str = "accepted"


class Ledgers(RuleBasedStateMachine):
    """Deliver, take, crash, own, let time pass, write as an owner that may be stale, relay."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.folder = tempfile.mkdtemp()
        self.ledger = open_ledger(self.folder)
        # There is no power cut in this test.
        raw = self.ledger.engine.raw_connection()
        raw.driver_connection.execute("PRAGMA synchronous=OFF")
        raw.close()
        self.broker = Embedded(self.ledger, lambda: self.now)
        self.waiting: list[tuple[str, str]] = []
        self.asked: dict[str, Asked] = {}
        self.held: list[Attempt] = []
        self.ends: dict[str, bool] = {}
        self.sending: list[tuple[End, float]] = []
        self.conflicts: set[tuple[str, str]] = set()

    def teardown(self) -> None:
        self.ledger.close()
        shutil.rmtree(self.folder)

    @rule(seconds=st.sampled_from([1.0, FOR_S]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule(request_id=IDS, content=st.sampled_from(sorted(CONTENTS)))
    def deliver(self, request_id: str, content: str) -> None:
        send(self.ledger, body(request_id, **CONTENTS[content]), self.now)
        self.waiting.append((request_id, content))

    @precondition(lambda self: self.waiting)
    @rule()
    def crash(self) -> None:
        def dies(content: bytes) -> Accepted | Refused:
            raise SystemExit

        try:
            self.broker.record_next(dies)
        except SystemExit:
            return
        raise AssertionError("a message was waiting")

    @rule()
    def record(self) -> None:
        recorded = self.broker.record_next(judge)
        if not self.waiting:
            assert recorded is None
            return
        request_id, content = self.waiting.pop(0)
        assert recorded is not None
        assert recorded.result == self.expected(request_id, content)

    def expected(self, request_id: str, content: str) -> str:
        """Write into the model what a message leads to."""
        known = self.asked.get(request_id)
        if known is not None and known.content == content:
            return "duplicate"
        if known is not None and known.state != REJECTED:
            self.conflicts.add((request_id, content))
            return "conflict"
        known = known or Asked(content, number=0)
        self.asked[request_id] = known
        known.content, known.number = content, known.number + 1
        known.state = "accepted" if content in ("good", "other") else REJECTED
        if known.state == REJECTED:
            self.ends[f"{request_id}/{known.number}"] = False
            return "rejected"
        known.tries[known.number] = Try(next_look=self.now)
        return "accepted" if known.number == 1 else "reopened"

    @rule(limit=st.integers(1, 3))
    def own(self, limit: int) -> None:
        due = [
            (each.next_look, name, number)
            for name, asked in self.asked.items()
            for number, each in asked.tries.items()
            if each.state not in FINAL and each.next_look <= self.now
            if each.owner is None or each.owned_until <= self.now
        ]
        found = self.ledger.do(attempts.own, Owner("me", FOR_S, limit), self.now)
        assert len(found) == min(limit, len(due))
        assert [each[0] for each in sorted(due)[:limit]] == sorted(
            self.asked[mine.request_id].tries[mine.attempt].next_look for mine in found
        )
        for mine in found:
            held = self.asked[mine.request_id].tries[mine.attempt]
            held.owner, held.owned_until = mine.owner, self.now + FOR_S
            held.next_look = held.owned_until
        self.held += found

    def believed(self, data: st.DataObject) -> tuple[Attempt, Try | None]:
        """An attempt that somebody holds, and what it is in the model unless it is stale."""
        mine = data.draw(st.sampled_from(self.held))
        real = self.asked[mine.request_id].tries[mine.attempt]
        fresh = mine.owner is not None and (mine.owner, mine.state) == (real.owner, real.state)
        return mine, real if fresh else None

    def check(self, changed: Attempt | None, expected: bool) -> None:
        assert (changed is not None) == expected
        if changed is not None:
            self.held.append(changed)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), to=TARGETS)
    def change(self, data: st.DataObject, to: str) -> None:
        mine, real = self.believed(data)
        forward = mine.state not in FINAL and STATES.index(to) >= STATES.index(mine.state)
        changed = self.ledger.do(attempts.change, mine, to, self.now, Status(to))
        self.check(changed, bool(real and forward))
        if real and forward:
            real.state = self.asked[mine.request_id].state = to
            if to in FINAL:
                real.owner, real.owned_until, real.next_look = None, 0.0, self.now
                self.ends[f"{mine.request_id}/{mine.attempt}"] = False

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def record_handle(self, data: st.DataObject) -> None:
        mine, real = self.believed(data)
        self.check(self.ledger.do(attempts.record_handle, mine, mine.key), real is not None)
        if real:
            real.handle = mine.key
            if real.state == "accepted":
                real.state = self.asked[mine.request_id].state = "submitted"

    @precondition(lambda self: self.held)
    @rule(data=st.data(), after_s=st.sampled_from([0.0, 5.0]))
    def let_go(self, data: st.DataObject, after_s: float) -> None:
        mine, real = self.believed(data)
        look = self.now + after_s
        self.check(self.ledger.do(attempts.let_go, mine, look), real is not None)
        if real:
            real.owner, real.owned_until = None, 0.0
            real.next_look = look if real.next_look else 0.0

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def keep(self, data: st.DataObject) -> None:
        mine, real = self.believed(data)
        until = self.now + FOR_S
        self.check(self.ledger.do(attempts.keep, mine, until), real is not None)
        if real:
            real.owned_until = until
            real.next_look = until if real.next_look else 0.0

    @rule(request_id=IDS)
    def cancel(self, request_id: str) -> None:
        said = self.ledger.do(attempts.ask_cancel, request_id, self.now)
        asked = self.asked.get(request_id)
        assert said == (asked.state if asked else None)
        real = asked.tries.get(asked.number) if asked else None
        if real and real.state not in FINAL and real.cancel is None:
            real.cancel, real.next_look = self.now, 0.0

    @rule()
    def take_ends(self) -> None:
        busy = {end.message_id for end, until in self.sending if until > self.now}
        found = self.ledger.do(outbox.take, self.now, FOR_S)
        wanted = {name for name, sent in self.ends.items() if not sent} - busy
        assert {end.message_id for end in found} == wanted
        taken = {end.message_id for end in found}
        self.sending = [
            (replace(end, lease="stale") if end.message_id in taken else end, until)
            for end, until in self.sending
        ]
        self.sending += [(end, self.now + FOR_S) for end in found]

    @precondition(lambda self: self.sending)
    @rule(data=st.data())
    def mark_sent(self, data: st.DataObject) -> None:
        end, _ = data.draw(st.sampled_from(self.sending))
        fresh = end.lease != "stale" and not self.ends[end.message_id]
        assert self.ledger.do(outbox.sent, end, self.now) == fresh
        self.ends[end.message_id] |= fresh

    @invariant()
    def requests_are_as_they_should_be(self) -> None:
        found = {each.request_id: each for each in self.ledger.see(queries.newest)}
        assert {name: (each.state, each.attempt) for name, each in found.items()} == {
            name: (asked.state, asked.number) for name, asked in self.asked.items()
        }
        alive = {name for name, asked in self.asked.items() if asked.state not in FINAL}
        assert {each.request_id for each in self.ledger.see(queries.alive)} == alive
        assert waits(self.ledger) == bool(self.waiting)

    @invariant()
    def attempts_are_as_they_should_be(self) -> None:
        for name, asked in self.asked.items():
            for number, real in asked.tries.items():
                found = self.ledger.see(attempts.read, name, number)
                assert found is not None
                assert real == Try(
                    *(found.state, found.owner, found.owned_until, found.next_look),
                    *(found.handle, found.cancel_asked_at),
                )

    @invariant()
    def conflicts_are_dead_letters(self) -> None:
        found = [each for each in self.ledger.see(dead.letters) if each.code == "conflict"]
        wanted = {(name, body(name, **CONTENTS[content])) for name, content in self.conflicts}
        assert {(each.request_id, each.body) for each in found} == wanted

    @invariant()
    def each_end_is_told_once(self) -> None:
        due = [end.message_id for end in self.ledger.see(unsent)]
        sent = [end.message_id for end in self.ledger.see(outbox.ends)]
        assert sorted(due + sent) == sorted(self.ends)
        assert set(sent) == {name for name, done in self.ends.items() if done}


TestSequences = Ledgers.TestCase
TestSequences.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
