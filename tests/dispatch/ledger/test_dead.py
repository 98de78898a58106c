"""Dead letters: kept, counted, put back."""

from __future__ import annotations

from ledgers import NOW, ask, body, judge, refusal, send, unsent

from taskgraph_workers.dispatch.brokers.embedded import Embedded
from taskgraph_workers.dispatch.ledger import dead, queries, queue, receipt
from taskgraph_workers.dispatch.ledger.database import Ledger
from taskgraph_workers.dispatch.ledger.queue import START
from taskgraph_workers.dispatch.message import MOST_BYTES
from taskgraph_workers.dispatch.model import Refused


def bury(ledger: Ledger, content: bytes = b"{", code: str = "not-json", now: float = NOW) -> int:
    """Bury a message; the number of its letter."""
    ledger.do(dead.bury, START, content, refusal(code, content), now)
    kept = content[:MOST_BYTES]
    letters = ledger.see(dead.letters)
    return next(each.id for each in letters if (each.body, each.code) == (kept, code))


def test_a_letter_tells_what_came_and_why_it_is_dead(ledger: Ledger):
    """Everything that is needed to mend it is kept."""
    refused = Refused("missing-field", "x is missing", "d", "r1")
    ledger.do(dead.bury, START, b"\xff{", refused, NOW)
    (found,) = ledger.see(dead.letters)
    assert ledger.see(dead.letter, found.id) == found
    assert (found.body, found.size, found.is_whole) == (b"\xff{", 2, True)
    assert (found.code, found.reason, found.request_id) == ("missing-field", "x is missing", "r1")
    assert (found.queue, found.first_at, found.times) == (START, NOW, 1)


def test_the_same_letter_is_counted(ledger: Ledger):
    """A sender that repeats itself fills no disk; another fault, or content, is another letter."""
    first = bury(ledger)
    assert bury(ledger, now=NOW + 9) == first
    assert bury(ledger, b"[") != first
    assert bury(ledger, code="handler-failed") != first
    found = ledger.see(dead.letter, first)
    assert found is not None
    assert (found.times, found.first_at, found.last_at) == (2, NOW, NOW + 9)


def test_letters_are_listed_from_the_newest(ledger: Ledger):
    """So many of them."""
    numbers = [bury(ledger, b"%d" % number) for number in range(5)]
    assert [each.id for each in ledger.see(dead.letters)] == numbers[::-1]
    assert [each.id for each in ledger.see(dead.letters, 3)] == numbers[:1:-1]


def test_a_letter_that_is_put_back_is_a_message_again(ledger: Ledger):
    """It waits in its queue, as it came, and is no letter any more."""
    number = bury(ledger)
    assert ledger.do(dead.put_back, number, NOW).ok
    assert ledger.see(dead.letters) == ()
    taken = ledger.do(queue.take, START, NOW, 30.0)
    assert taken is not None
    assert taken.body == b"{"
    again = ledger.do(dead.put_back, number, NOW)
    assert (again.ok, again.reason) == (False, f"there is no dead letter {number}")


def test_only_the_beginning_of_a_large_message_is_kept(ledger: Ledger):
    """What was too large to be read fills no disk, and can't be put back."""
    number = bury(ledger, b"x" * (MOST_BYTES * 4))
    found = ledger.see(dead.letter, number)
    assert found is not None
    assert (len(found.body), found.size, found.is_whole) == (MOST_BYTES, MOST_BYTES * 4, False)
    back = ledger.do(dead.put_back, number, NOW)
    assert not back.ok
    assert "262144 of 1048576 bytes" in back.reason
    assert len(ledger.see(dead.letters)) == 1


def test_a_rejected_message_that_is_put_back_gets_a_second_chance(ledger: Ledger):
    """Where the configuration was mended, the very same message runs, as another attempt."""
    broker = Embedded(ledger, lambda: NOW)
    send(ledger, body())
    rejected = broker.record_next(lambda _: refusal())
    assert rejected is not None
    assert (rejected.result, rejected.attempt) == ("rejected", 1)
    (letter,) = ledger.see(dead.letters)
    assert ledger.do(dead.put_back, letter.id, NOW).ok
    reopened = broker.record_next(judge)
    assert reopened is not None
    assert (reopened.result, reopened.attempt) == ("reopened", 2)


def test_a_rejected_message_that_is_put_back_in_vain_ends_again(ledger: Ledger):
    """Where nothing was mended it is rejected anew: a letter and an end message of its own."""
    ask(ledger, trainingVmSku="ND7")
    (letter,) = ledger.see(dead.letters)
    ledger.do(dead.put_back, letter.id, NOW)
    again = Embedded(ledger, lambda: NOW).record_next(judge)
    assert again is not None
    assert (again.result, again.attempt) == ("rejected", 2)
    assert len(ledger.see(dead.letters)) == 1
    ends = ledger.see(unsent)
    assert [end.message_id for end in ends] == ["r1/1", "r1/2"]


def test_a_letter_that_is_put_back_frees_no_other_content(ledger: Ledger):
    """Putting back an old mistake changes nothing of a request that goes on since."""
    ask(ledger, trainingVmSku="ND7")
    ask(ledger)
    (letter,) = ledger.see(dead.letters)
    ledger.do(dead.put_back, letter.id, NOW)
    again = Embedded(ledger, lambda: NOW).record_next(judge)
    assert again is not None
    assert again.result == "conflict"
    found = ledger.see(queries.request, "r1")
    assert found is not None
    assert (found.state, found.attempt) == ("accepted", 2)


def test_a_letter_that_is_put_back_frees_its_own_content_alone(ledger: Ledger):
    """What was rejected last is not tried again because something older is."""
    ask(ledger, trainingVmSku="ND7")
    ask(ledger, trainingVmSku="ND8")
    _, older = ledger.see(dead.letters)
    ledger.do(dead.put_back, older.id, NOW)
    assert ask(ledger, trainingVmSku="ND8").result == "duplicate"


def test_a_letter_of_what_runs_by_now_is_a_duplicate(ledger: Ledger):
    """Putting back a message that was accepted since leads to nothing new."""
    ledger.do(receipt.record, body(), refusal(), NOW)
    ask(ledger, trainingVmSku="ND7")
    assert ask(ledger).result == "reopened"
    _, older = ledger.see(dead.letters)
    assert older.body == body()
    ledger.do(dead.put_back, older.id, NOW)
    again = Embedded(ledger, lambda: NOW).record_next(judge)
    assert again is not None
    assert (again.result, ask(ledger).result) == ("duplicate", "duplicate")


def test_a_letter_can_be_thrown_away(ledger: Ledger):
    """Discarding is for good, once."""
    number = bury(ledger)
    assert ledger.do(dead.discard, number)
    assert not ledger.do(dead.discard, number)
