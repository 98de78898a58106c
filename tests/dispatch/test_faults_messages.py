"""Messages of every kind through a whole dispatcher, and what is said of them."""

from __future__ import annotations

import base64
import json

import pytest
from dispatching import World
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledgers import body, send, waits

from taskgraph_workers.dispatch.ledger import dead
from taskgraph_workers.dispatch.receive import Intake

#: T4, each with a code it may be refused by.
BAD = {
    "empty": (b"", "not-json"),
    "not JSON": (b"train, please", "not-json"),
    "an array": (b"[1]", "not-an-object"),
    "a field is missing": (body("r1", trainingImage=None), "missing-field"),
    "a wrong type": (body("r1", trainingVmSku=6), "wrong-type"),
    "a megabyte": (b'{"requestId": "' + b"x" * 1_000_000 + b'"}', "too-large"),
    "a newline in the id": (body("r\n1"), "bad-value"),
    "a NUL in the id": (body("r\0001"), "bad-value"),
    "a byte order mark": (b"\xef\xbb\xbf" + body("r1"), "not-json"),
    "base64": (base64.b64encode(body("r1")), "not-json"),
    "not UTF-8": (b'{"requestId": "\xff"}', "not-json"),
    "deep": (b"[" * 100_000, "bad-value"),
    "another SKU": (body("r1", trainingVmSku="ND7"), "unknown-sku"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_message_is_a_dead_letter_once_and_the_next_one_runs(world: World, kind: str):
    """T4, T5, P4: at once, with its reason, and without holding up any other."""
    content, code = BAD[kind]
    send(world.ledger, content)
    world.send("r2")
    world.turns(2)
    (letter,) = world.ledger.see(dead.letters)
    assert (letter.code, letter.times, letter.reason != "") == (code, 1, True)
    assert world.states()["r2"] == "running"
    assert not waits(world.ledger)


@pytest.mark.parametrize("text", ["$(touch here)", "`x`", "; rm -rf /", "../../etc", "-v/:/", "ü"])
def test_values_of_a_message_are_data(world: World, text: str):
    """What would mean something to a shell or in a path is an id like any other."""
    world.send(text)
    world.turns(2)
    assert world.states() == {text: "running"}
    (key,) = world.service.jobs
    assert key.isalnum()


def test_nothing_secret_is_logged(world: World):
    """P12: of a message its id, SKU and image alone, whatever becomes of it; of errors the type."""
    secrets = {"trainingImagesContainer": "sas-secret", "password": "hunter2"}
    world.send("r1", **secrets)
    world.send("r1", **secrets, other="sas-secret")
    world.send("r2", **{**secrets, "trainingVmSku": "ND7"})
    world.send("r3", **{**secrets, "trainingBaseModelBlobId": 5})
    world.service.before["find"] = [ValueError("hunter2")]
    world.turns(20)
    said = world.said.getvalue()
    assert "accepted" in said
    assert "conflict" in said
    assert "ValueError" in said
    assert not any(word in said for word in ("sas-secret", "hunter2", "images-3"))


def test_what_was_refused_is_shown_with_what_it_asked_for(world: World):
    """P12: in the log and in the ledger; but no URL, which may have a password, and no nonsense."""
    world.send("r1", trainingVmSku="ND7", trainingImagesContainer=None)
    world.send("r2", trainingImage="https://me:hunter2@example.com/x", trainingImagesContainer=None)
    world.send("r3", trainingVmSku=["ND6"], trainingImage="a\nb")
    send(world.queue, b"start!", world.clock())
    world.turns(4)
    shown = [(world.request(each).sku, world.request(each).image) for each in ("r1", "r2", "r3")]
    assert shown == [("ND7", "cwolff/my_keras_model"), ("ND6", None), (None, None)]
    lines = world.said.getvalue().splitlines()
    assert "r1: rejected sku=ND7 image=cwolff/my_keras_model attempt=1" in lines[0]
    assert [line.rpartition(" ")[2] for line in lines] == [f"letter={n}" for n in range(1, 5)]
    assert "hunter2" not in world.said.getvalue()


def test_a_judge_that_fails_is_said_and_stops_nothing(world: World):
    """P5: with the embedded queue, too."""

    def judging(content: bytes) -> object:
        raise KeyError("secret")

    world.loop.intake = Intake(world.loop.means, world.loop.intake.transport, judging)  # type: ignore[arg-type]
    world.send("r1")
    world.turns(60)
    (letter,) = world.ledger.see(dead.letters)
    assert letter.code == "handler-failed"
    assert "secret" not in world.said.getvalue()


FUZZ = st.one_of(
    st.binary(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["requestId", "trainingVmSku", "trainingImage", "x"]), inner
            )
        ),
        max_leaves=10,
    ).map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass")),
    st.tuples(st.integers(0, 120), st.integers(0, 255)).map(
        lambda at: body("r1")[: at[0]] + bytes([at[1]]) + body("r1")[at[0] + 1 :]
    ),
)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(FUZZ, min_size=50, max_size=50))
def test_any_bytes_are_recorded_or_refused(world: World, contents: list[bytes]):
    """Whatever comes is taken off the queue in one turn: the loop never stops."""
    for content in contents:
        send(world.ledger, content)
    world.turns(1)
    assert not waits(world.ledger)
    assert "failed" not in world.said.getvalue()
