"""Facts: each once, in any order, shown in one."""

from __future__ import annotations

import itertools
import json
import math
import random
from typing import Any

import pytest
from ledgers import NOW, ask, program, started

from taskgraph_workers.dispatch.ledger import attempts, progress
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.model import END_ROWS, SPELLINGS, Progress, Status


def append(ledger: Ledger, *facts: Progress, request_id: str = "r1", attempt: int = 1) -> int:
    return ledger.do(progress.append, request_id, attempt, facts)


def names(ledger: Ledger) -> list[str]:
    found = ledger.see(progress.facts_of, ["r1"]).get("r1", ())
    return [fact.progress.name for fact in found]


def test_a_fact_is_kept_once(ledger: Ledger):
    """The first of those with the same run, name and seq stays; others are ignored."""
    ask(ledger)
    assert append(ledger, Progress("imagesDownloaded", NOW, data={"count": 3})) == 1
    assert append(ledger, Progress("imagesDownloaded", NOW + 9)) == 0
    (fact,) = ledger.see(progress.facts_of, ["r1"])["r1"]
    assert (fact.progress.at, fact.progress.data) == (NOW, {"count": 3})


def test_runs_and_numbers_are_facts_of_their_own(ledger: Ledger):
    """The same name in another run, or with another number, is another fact."""
    ask(ledger)
    facts = [Progress("epochDone", NOW, run, seq) for run in range(2) for seq in range(3)]
    assert append(ledger, *facts) == 6
    found = ledger.see(progress.facts_of, ["r1"])["r1"]
    assert [fact.progress for fact in found] == facts


def test_facts_are_shown_by_rank_and_then_time(ledger: Ledger):
    """However late and mixed up they come, and whatever clocks say of first and last."""
    wanted = [
        Progress("trainingVmCreated", NOW + 50),
        Progress("imagesDownloaded", NOW + 40),
        Progress("modelIteration1Done", NOW + 20),
        Progress("modelIteration2Done", NOW + 30),
        Progress("trainingVmStopping", NOW + 11),
        Progress("trainingVmDestroyed", NOW + 10),
        Progress("trainingVmCreated", NOW, run=1),
    ]
    ask(ledger)
    mixed = random.Random(1).sample(wanted, len(wanted))
    assert sum(append(ledger, each) for each in mixed) == len(wanted)
    found = ledger.see(progress.facts_of, ["r1"])["r1"]
    assert [fact.progress for fact in found] == wanted


def test_facts_after_the_end_are_kept_and_change_nothing(ledger: Ledger):
    """Late progress is added to the table; the end stays as it was."""
    running = started(ledger)
    ended = ledger.do(attempts.change, running, "succeeded", NOW, Status("succeeded"))
    assert append(ledger, Progress("imagesDownloaded", NOW - 5)) == 1
    assert append(ledger, Progress("trainingVmDestroyed", NOW + 5)) == 1
    assert ledger.see(attempts.read, "r1", 1) == ended
    wanted = ["imagesDownloaded", "trainingSuceededWithImages", "trainingVmDestroyed"]
    assert names(ledger) == wanted


@pytest.mark.parametrize(
    "name",
    [*END_ROWS.values(), *SPELLINGS],
)
def test_nobody_but_the_ledger_says_how_it_ended(ledger: Ledger, name: str):
    """A trainer that says that it succeeded has not ended its request."""
    ask(ledger)
    assert append(ledger, Progress(name, NOW)) == 0
    assert names(ledger) == []


@pytest.mark.parametrize(("request_id", "attempt"), [("unknown", 1), ("r1", 0), ("r1", 2)])
def test_facts_of_nothing_known_are_dropped(ledger: Ledger, request_id: str, attempt: int):
    """Progress of a request, or an attempt, that there is not makes no row."""
    ask(ledger)
    fact = Progress("imagesDownloaded", NOW)
    assert append(ledger, fact, request_id=request_id, attempt=attempt) == 0


LOOP: dict[str, Any] = {}
LOOP["self"] = LOOP

UNFIT = {
    "no name": Progress("", NOW),
    "long name": Progress("x" * 201, NOW),
    "newline": Progress("a\nb", NOW),
    "surrogate": Progress("\ud800", NOW),
    "no time": Progress("x", math.nan),
    "endless": Progress("x", math.inf),
    "a year that no calendar has": Progress("x", 1e15),
    "before there were computers": Progress("x", -1.0),
    "deep": Progress("x", NOW, data={"loss": json.loads("[" * 50 + "]" * 50)}),
    "negative": Progress("x", NOW, seq=-1),
    "large": Progress("x", NOW, seq=2**63),
    "run": Progress("x", NOW, run=2**40),
    "much data": Progress("x", NOW, data={"log": "x" * 20_000}),
    "NaN": Progress("x", NOW, data={"loss": math.nan}),
    "bytes": Progress("x", NOW, data={"loss": b""}),
    "loop": Progress("x", NOW, data=LOOP),
    "no time at all": Progress("x", None),  # type: ignore[arg-type]
    "a time in words": Progress("x", "now"),  # type: ignore[arg-type]
    "no text": Progress(["x"], NOW),  # type: ignore[arg-type]
    "no object": Progress("x", NOW, data=5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("kind", UNFIT)
def test_facts_that_no_table_can_show_are_dropped(ledger: Ledger, kind: str):
    """A trainer that writes nonsense stops nothing, and the rest is taken."""
    ask(ledger)
    assert append(ledger, UNFIT[kind], Progress("imagesDownloaded", NOW)) == 1
    assert names(ledger) == ["imagesDownloaded"]


def test_facts_of_many_requests_are_asked_for_at_once(ledger: Ledger):
    """One question for a whole page, however long."""
    some = [f"r{number}" for number in range(3)]
    for each in some:
        ask(ledger, each)
        append(ledger, Progress("imagesDownloaded", NOW), request_id=each)
    found = ledger.see(progress.facts_of, [*some, *map(str, range(1200))])
    assert sorted(found) == some


def test_the_last_facts_are_those_that_are_shown_last(ledger: Ledger):
    """In the same order, and with how many there are; also the last but for some names."""
    names = ["trainingVmCreated", "imagesDownloaded", "a", "b", "trainingVmDestroyed"]
    ask(ledger)
    mixed = random.Random(2)
    for run, seq in itertools.product(range(2), range(3)):
        append(ledger, *(Progress(each, NOW + mixed.random(), run, seq) for each in names))
    found = ledger.see(progress.facts_of, ["r1"])["r1"]
    for limit in (1, 7, 100):
        assert ledger.see(progress.last, "r1", limit) == (found[-limit:], 30)
    for besides in ((), ("trainingVmDestroyed",), names):
        wanted = [fact for fact in found if fact.progress.name not in besides]
        assert ledger.see(progress.reached, "r1", besides) == (wanted[-1] if wanted else None)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """An attempt has few facts at most."""
    monkeypatch.setattr(progress, "MOST_FACTS", 5)
    return 5


def test_an_attempt_has_not_facts_without_end(ledger: Ledger, few: int):
    """So many, and one that says once that there were more; machines have theirs always."""
    ask(ledger)
    ask(ledger, "r2")
    facts = [Progress("step", NOW + seq, seq=seq) for seq in range(2 * few)]
    assert append(ledger, *facts[:3]) == 3
    assert not ledger.see(progress.is_full, "r1", 1)
    assert append(ledger, *facts) == 2
    assert ledger.see(progress.is_full, "r1", 1)
    assert append(ledger, *facts, Progress("trainingVmDestroyed", NOW + 1)) == 1
    assert append(ledger, Progress("step", NOW, run=1)) == 0
    wanted = ["step"] * few + ["progressFactsDropped", "trainingVmDestroyed"]
    assert names(ledger) == wanted
    assert append(ledger, *facts[:few], request_id="r2") == few


def test_what_is_told_again_is_not_dropped(ledger: Ledger, few: int):
    """A dispatcher that begins anew tells all; none of that is too much."""
    ask(ledger)
    facts = [Progress("step", NOW, seq=seq) for seq in range(few)]
    assert append(ledger, *facts) == few
    assert append(ledger, *facts) == 0
    assert append(ledger, *facts, *facts) == 0
    assert names(ledger) == ["step"] * few


WRITER = """
import sys
from ledgers import NOW
from taskgraph_workers.dispatch.ledger import progress
from taskgraph_workers.dispatch.ledger.database import open_ledger
from taskgraph_workers.dispatch.model import Progress
ledger = open_ledger(sys.argv[1])
made = 0
for seq in range(50):
    made += ledger.do(progress.append, "r1", 1, [Progress("epochDone", NOW, seq=seq)])
print(made)
"""


def test_two_writers_make_each_fact_once(ledger: Ledger, tmp_path: Any):
    """Processes that tell the same at once make one row of each."""
    ask(ledger)
    runs = [program(WRITER, tmp_path / "state") for _ in range(2)]
    said = [run.communicate() for run in runs]
    assert [err for _, err in said] == ["", ""]
    assert sum(int(out) for out, _ in said) == 50
    assert len(names(ledger)) == 50
