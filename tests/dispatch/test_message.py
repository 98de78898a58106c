"""Start messages of every good and bad kind."""

from __future__ import annotations

import base64
import hashlib
import json
import time
import uuid
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taskgraph_workers.dispatch import message
from taskgraph_workers.dispatch.message import canonical, digest_of, key_of, read, valid_id
from taskgraph_workers.dispatch.model import Message, Refused

ISSUE = {
    "requestId": "c3feb8b2-287e-11e8-b467-0ed5f89f718b",
    "trainingVmSku": "ND6",
    "trainingImage": "account/my_keras_model",
    "trainingImagesContainer": "images-3-15-2018",
    "trainingBaseModelBlobId": "models/model-3-14-2018",
}


def said(**changes: Any) -> bytes:
    fields = {**ISSUE, **changes}
    return json.dumps({name: each for name, each in fields.items() if each != "LEFT OUT"}).encode()


def refused(body: bytes) -> Refused:
    found = read(body)
    assert isinstance(found, Refused), found
    return found


def test_the_issue_s_message_is_read():
    """The originating issue's example comes out field by field."""
    found = read(said())
    assert isinstance(found, Message)
    assert found.request_id == ISSUE["requestId"]
    assert (found.sku, found.image) == ("ND6", "account/my_keras_model")
    assert (found.images_container, found.base_model) == (
        "images-3-15-2018",
        "models/model-3-14-2018",
    )
    assert found.body == ISSUE


@pytest.mark.parametrize("base", ["LEFT OUT", None, ""])
def test_a_base_model_may_be_left_out(base: str | None):
    """A training that starts from nothing names no base model."""
    found = read(said(trainingBaseModelBlobId=base))
    assert isinstance(found, Message)
    assert found.base_model is None


def test_the_digest_is_of_the_content():
    """Blanks and the order of keys don't matter to a digest; every value does."""
    sorted_body = json.dumps(dict(sorted(ISSUE.items())), indent=4).encode()
    first, second, other = read(said()), read(sorted_body), read(said(extra=1))
    assert isinstance(first, Message)
    assert isinstance(second, Message)
    assert isinstance(other, Message)
    assert first.digest == second.digest == hashlib.sha256(canonical(ISSUE)).hexdigest()
    assert other.digest != first.digest


def test_what_is_refused_has_a_digest_too():
    """Of its content where that is clear: a sender who repeats itself fills no disk."""
    first = refused(b'{"requestId": "r1", "x": 1}')
    assert first.digest == refused(b'{"x":1, "requestId":"r1"}').digest
    assert first.digest == hashlib.sha256(b'{"requestId":"r1","x":1}').hexdigest()
    for body in (b"{", b"[1]", b'{"a": 1, "a": 1}', b'{"a": "\\ud800"}', b"\xff"):
        assert refused(body).digest == hashlib.sha256(body).hexdigest()


BAD = {
    "empty": (b"", "not-json", "it is empty"),
    "blank": (b" \n", "not-json", "it is empty"),
    "text": (b"start training", "not-json", "it does not begin with {"),
    "cut": (said()[:-1], "not-json", "delimiter"),
    "array": (b"[" + said() + b"]", "not-an-object", "a list, not an object"),
    "string": (b'"start"', "not-an-object", "text, not an object"),
    "number": (b"5", "not-an-object", "a number, not an object"),
    "null": (b"null", "not-an-object", "null, not an object"),
    "utf-8 mark": (b"\xef\xbb\xbf" + said(), "not-json", "byte order mark"),
    "utf-16": (said().decode().encode("utf-16"), "not-json", "byte order mark"),
    "utf-16 bare": (said().decode().encode("utf-16-le"), "not-json", ""),
    "latin-1": ('{"requestId": "ü"}'.encode("latin-1"), "not-json", "not UTF-8"),
    "base64": (base64.b64encode(said()), "not-json", "looks like base64"),
    "very deep": (b"[" * 250_000, "bad-value", "nested"),
    "very deep objects": (b'{"a":' * 50_000, "bad-value", "nested"),
    "large": (said(x="x" * 2**20), "too-large", "262144 is the limit"),
    "doubled": (said()[:-1] + b', "requestId": "b"}', "bad-value", "'requestId' twice"),
    "NUL byte": (b"\0" + said(), "not-json", ""),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_object_of_json_is_refused(name: str):
    """Bytes that are no message say why, and give no id."""
    body, code, reason = BAD[name]
    found = refused(body)
    assert (found.code, found.request_id) == (code, None)
    assert reason in found.reason


UNFIT = {
    "NaN": (b"NaN", "NaN, which is no JSON number"),
    "infinity": (b"-Infinity", "-Infinity, which is no JSON number"),
    "1e400": (b"1e400", "a number that is too large"),
    "inside": (b'[{"y": -1E999}]', "a number that is too large"),
    "digits": (b"9" * 5000, "a number with 5000 digits"),
    "decimals": (b"0." + b"9" * 5000, "a number with 5002 digits"),
    "deep": (b"[" * 40 + b"]" * 40, "nested more than 32 deep"),
    "doubled": (b'{"y": [{"z": 1, "z": 2}]}', "'z' twice"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_no_two_readers_take_alike_is_refused(name: str):
    """Wherever it stands. Whose message it is, is clear, so that its sender can be told."""
    value, reason = UNFIT[name]
    found = refused(said()[:-1] + b', "x": ' + value + b"}")
    assert (found.code, found.request_id) == ("bad-value", ISSUE["requestId"])
    assert reason in found.reason


FIELDS = {
    "missing": ({"trainingVmSku": "LEFT OUT"}, "missing-field", "trainingVmSku is missing"),
    "null": ({"trainingImage": None}, "missing-field", "trainingImage is missing"),
    "number": ({"trainingVmSku": 6}, "wrong-type", "trainingVmSku is a number, not text"),
    "boolean": ({"trainingImage": True}, "wrong-type", "trainingImage is a boolean"),
    "list": ({"trainingImagesContainer": ["a"]}, "wrong-type", "is a list"),
    "object": ({"trainingBaseModelBlobId": {}}, "wrong-type", "is an object"),
    "empty": ({"trainingImage": ""}, "bad-value", "trainingImage is empty"),
    "blank": ({"trainingImage": "  "}, "bad-value", "trainingImage is empty"),
    "NUL": ({"trainingImage": "a\0b"}, "bad-value", "control character"),
    "newline": ({"trainingImagesContainer": "a\nb"}, "bad-value", "control character"),
    "separator": ({"trainingImagesContainer": "a\u2028b"}, "bad-value", "control character"),
    "C1": ({"trainingImagesContainer": "a\u009bb"}, "bad-value", "control character"),
    "shell": ({"trainingImagesContainer": "$(reboot)"}, "bad-value", "a shell"),
    "backtick": ({"trainingBaseModelBlobId": "`reboot`"}, "bad-value", "a shell"),
    "direction": ({"trainingImage": "a\u202eb"}, "bad-value", "control character"),
    "unseen": ({"trainingImagesContainer": "\u200b\u2060"}, "bad-value", "is empty"),
    "braces": ({"trainingImage": "a/${HOME}"}, "bad-value", "a shell"),
    "long": ({"trainingImage": "a" * 2049}, "bad-value", "2048 is the limit"),
    "surrogate": ({"trainingImage": "\ud800"}, "bad-value", "surrogate"),
    "surrogate key": ({"\udfff": 1}, "bad-value", "surrogate"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_message_with_a_bad_field_keeps_its_id(name: str):
    """A message that can't work says why, and whose it is, so that its sender can be told."""
    changes, code, reason = FIELDS[name]
    found = refused(said(**changes))
    assert (found.code, found.request_id) == (code, ISSUE["requestId"])
    assert reason in found.reason


def test_all_faults_are_told_at_once():
    """Nobody mends a message one field at a time."""
    found = refused(said(trainingVmSku="LEFT OUT", trainingImage=5))
    assert found.reason == "trainingVmSku is missing; trainingImage is a number, not text"


def test_a_reason_tells_no_value():
    """What a field says may be a secret, and is not repeated."""
    found = refused(said(trainingImage="hunter2\n", trainingVmSku=["hunter2"]))
    assert "hunter2" not in found.reason


@pytest.mark.parametrize(
    "bad",
    [
        "",
        " ",
        "a\0",
        "a\nb",
        "a\x7f",
        "a\x85",
        "x" * 201,
        "\ud800",
        5,
        None,
        ["a"],
        "\u200b",
        "\u00a0",
        "a\u202eb",
        "a\r\n",
        True,
        1.5,
    ],
)
def test_an_id_that_is_none_gives_no_id(bad: object):
    """A requestId that can't be stored or shown is not one."""
    assert refused(said(requestId=bad)).request_id is None
    assert not valid_id(bad)


@pytest.mark.parametrize(
    "good", ["a", "../../etc/passwd", "$(reboot)", "ünïcode", "x" * 200, "a b"]
)
def test_an_id_may_be_any_text(good: str):
    """A requestId is never part of a path or a command: it may look like anything."""
    found = read(said(requestId=good))
    assert isinstance(found, Message)
    assert found.request_id == good


def test_a_field_that_is_said_twice_elsewhere_keeps_the_id():
    """Which of two values counts is not guessed; whose message it is, is clear."""
    found = refused(said()[:-1] + b', "trainingVmSku": "NC6"}')
    assert (found.code, found.request_id) == ("bad-value", ISSUE["requestId"])


def test_keys_are_fit_for_every_system():
    """A key is 26 of base32's characters in lower case, other for each request and attempt."""
    names = [str(uuid.uuid4()) for _ in range(500)]
    keys = {key_of(name, number) for name in names for number in (1, 2)}
    assert len(keys) == 1000
    assert all(
        len(key) == 26 and set(key) <= set("abcdefghijklmnopqrstuvwxyz234567") for key in keys
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
NAMES = st.sampled_from([*ISSUE, "extra"])


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
@example(b"\xff" * 10)
def test_any_bytes_are_read_or_refused(body: bytes):
    """Reading never raises, and says the same of the same bytes."""
    found = read(body)
    assert isinstance(found, (Message, Refused))
    assert found == read(body)
    assert len(found.digest) == 64


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(NAMES, JSON, max_size=6))
def test_any_json_is_read_or_refused(value: dict[str, Any]):
    """What is read has text in every field, without what no shell, file or database takes."""
    found = read(json.dumps({**ISSUE, **value}).encode())
    if isinstance(found, Refused):
        assert found.reason
        assert "\n" not in found.reason
        assert found.request_id is None or valid_id(found.request_id)
        return
    for text in (found.request_id, found.sku, found.image, found.images_container):
        assert text.strip()
        assert not set(text) & set("\0\n\r\x1b")
        text.encode()
    assert found.digest == digest_of(canonical(found.body))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_damaged_message_is_read_or_refused(data: st.DataObject):
    """A good message with bytes changed, dropped or doubled never raises."""
    body = bytearray(said())
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        body = body or bytearray(b"{")
    assert isinstance(read(bytes(body)), (Message, Refused))


@pytest.mark.parametrize(
    "body",
    [b"[" * message.MOST_BYTES, b"[[]," * 60_000, b"9" * message.MOST_BYTES, b'"' * 2**18],
    ids=["open", "wide", "digits", "quotes"],
)
def test_the_largest_messages_are_read_at_once(body: bytes):
    """Time goes with the size: no message of the largest size holds a dispatcher up."""
    start = time.process_time()
    read(body[: message.MOST_BYTES])
    assert time.process_time() - start < 2.0
