"""Any interleaving of messages, turns, crashes, lapses and events keeps the promises (T14)."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from dispatching import Died, World, down
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from ledgers import waits
from sqlalchemy import event

from taskgraph_workers.dispatch.ledger import attempts, dead, outbox
from taskgraph_workers.dispatch.loop import Loop
from taskgraph_workers.dispatch.means import Pace
from taskgraph_workers.dispatch.message import key_of
from taskgraph_workers.dispatch.model import FINAL, STATES, Progress, Status

IDS = ("a", "b", "c")
OWN_S = Pace().own_s

#: Contents of messages: two that run, one that is rejected.
CONTENTS = {"good": {}, "other": {"trainingBaseModelBlobId": "m"}, "bad": {"trainingVmSku": "ND7"}}

#: What a service does wrong, and when: before it does anything, or after.
METHODS = st.sampled_from(["submit", "find", "poll", "cancel", "progress", "release"])
PHASES = st.sampled_from(["queued", "running", "succeeded", "failed", "canceled", "unknown"])


class Dispatchers(RuleBasedStateMachine):
    """Two dispatchers, which die and come again, and an executor that fails in every way."""

    apart = False

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.mkdtemp()
        self.world = World(Path(self.folder) / "state", apart=self.apart)
        # There is no power cut in this test.
        self.world.close()
        for each in {self.world.ledger.engine, self.world.queue.engine}:
            event.listen(each, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF"))
        self.sent: set[str] = set()
        self.highest: dict[str, tuple[int, int]] = {}
        self.born = 0
        self.loops = [self.another(), self.another()]

    def another(self) -> Loop:
        """A dispatcher that begins, under a name that no other had."""
        self.born += 1
        return self.world.dispatcher(f"d{self.born}", pace=Pace(batch=2, messages=2))

    def teardown(self) -> None:
        """When all faults are over, everything ends."""
        if not hasattr(self, "world"):
            return
        world = self.world
        for faults in (world.service.before, world.service.after):
            faults.clear()
        if world.broker is not None:
            world.broker.deaths.clear()
        for _ in range(40):
            world.clock.now += OWN_S * 10
            world.service.end()
            for loop in self.loops:
                loop.turn()
        assert all(loop.is_idle() for loop in self.loops)
        assert set(world.states().values()) <= FINAL
        assert {name.split(":")[0] for name in self.sent} == set(world.states())
        assert not world.ledger.see(outbox.is_unsent)
        self.promises_hold()
        told = sorted(end.message_id for end in world.ends())
        # Its readers have each end, once, wherever that is.
        assert sorted(end.message_id for end in world.queue.see(outbox.ends)) == told
        assert world.service.released >= {f"job-{key}" for key in world.service.jobs}
        world.close()
        shutil.rmtree(self.folder)

    # --- what happens ---

    @rule(id=st.sampled_from(IDS), content=st.sampled_from(sorted(CONTENTS)))
    def deliver(self, id: str, content: str) -> None:
        self.world.send(id, **CONTENTS[content])
        self.sent.add(f"{id}:{content}")

    @rule(at=st.integers(0, 1), once=st.booleans())
    def turn(self, at: int, once: bool) -> None:
        """A dispatcher works, and may die in the middle of it."""
        try:
            self.loops[at].once() if once else self.loops[at].turn()
        except Died:
            self.loops[at] = self.another()

    @rule(seconds=st.sampled_from([0.5, 5.0, OWN_S + 1]))
    def pass_time(self, seconds: float) -> None:
        self.world.clock.now += seconds

    @rule(
        method=METHODS,
        fault=st.sampled_from([down(), Died(), RuntimeError()]),
        late=st.booleans(),
    )
    def fail(self, method: str, fault: Exception, late: bool) -> None:
        """The next call fails; of a start nobody may know whether it came to be."""
        faults = self.world.service.after if late else self.world.service.before
        faults[method].append(fault)

    @precondition(lambda self: self.world.service.statuses)
    @rule(data=st.data(), phase=PHASES, anew=st.booleans())
    def happen(self, data: st.DataObject, phase: str, anew: bool) -> None:
        """Something becomes of a job, as far as that is possible once it has ended."""
        statuses = self.world.service.statuses
        handle = data.draw(st.sampled_from(sorted(statuses)))
        known = statuses[handle]
        if known.phase not in FINAL:
            run = known.run + (1 if anew and phase == "queued" else 0)
            statuses[handle] = replace(known, phase=phase, run=run)
            fact = Progress("imagesDownloaded", self.world.clock.now, run)
            self.world.service.told[handle].append(fact)

    @precondition(lambda self: self.world.service.statuses)
    @rule(data=st.data())
    def vanish_for_a_moment(self, data: st.DataObject) -> None:
        """The executor does not answer about a job: that is no news of it."""
        statuses = self.world.service.statuses
        handle = data.draw(st.sampled_from(sorted(statuses)))
        known = statuses[handle]
        statuses[handle] = Status("unknown")
        self.turn(0, False)
        if statuses[handle].phase == "unknown":
            statuses[handle] = known

    @rule(id=st.sampled_from(IDS))
    def cancel(self, id: str) -> None:
        self.world.ledger.do(attempts.ask_cancel, id, self.world.clock.now)

    # --- what must hold ---

    @invariant()
    def promises_hold(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.check_promises()
        keys = {key_of(id, n) for id in IDS for n in range(1, 10)}
        assert set(self.world.service.jobs) <= keys

    @invariant()
    def no_message_is_lost(self) -> None:
        """P2: it waits, or there is a request of its id; a conflict is a dead letter besides."""
        if not hasattr(self, "world"):
            return
        known = set(self.world.states())
        assert waits(self.world.queue) or {each.split(":")[0] for each in self.sent} == known

    @invariant()
    def states_move_forward_only(self) -> None:
        if not hasattr(self, "world"):
            return
        for id, state in self.world.states().items():
            request = self.world.request(id)
            now_is = (request.attempt, min(STATES.index(state), 3))
            assert now_is >= self.highest.get(id, (0, 0))
            self.highest[id] = now_is

    @invariant()
    def nothing_else_became_of_a_message(self) -> None:
        """Dead letters are rejections and conflicts: nothing failed in an unknown way."""
        if not hasattr(self, "world"):
            return
        codes = {letter.code for letter in self.world.ledger.see(dead.letters)}
        assert codes <= {"conflict", "unknown-sku"}


class DispatchersApart(Dispatchers):
    """The same, with a queue of its own, whose leases run out where a dispatcher died."""

    apart = True

    @rule(step=st.sampled_from(["receive", "record", "acknowledge", "publish"]))
    def die(self, step: str) -> None:
        """The next dispatcher that has done this is killed."""
        self.world.broker.deaths.add(step)


# Not shrunk: a turn writes to a disk, and what fails is short enough to be read.
SETTINGS = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
)
TestDispatchers = Dispatchers.TestCase
TestDispatchers.settings = SETTINGS
TestDispatchersApart = DispatchersApart.TestCase
TestDispatchersApart.settings = SETTINGS
