"""Messages as libraries, gateways and people send them, where they should have sent JSON alone."""

from __future__ import annotations

import base64
import gzip
import json
import time
import zlib
from collections import Counter
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from dispatching import World
from ledgers import NOW, body, judge

from taskgraph_workers.dispatch.ledger import dead, receipt
from taskgraph_workers.dispatch.meant import inside, near
from taskgraph_workers.dispatch.message import MOST_BYTES, canonical, read
from taskgraph_workers.dispatch.model import Message, Refused

FIELDS = json.loads(body("r1"))
TEXT = json.dumps(FIELDS)
BODY = TEXT.encode()
BASE64 = base64.b64encode(BODY)


def made(value: Any) -> bytes:
    return json.dumps(value).encode()


def also(text: bytes) -> bytes:
    """The message with something more in it."""
    return BODY[:-1] + b', "x": ' + text + b"}"


def named(**names: str) -> bytes:
    """The message with other names for some of its fields."""
    return made({names.get(name, name): value for name, value in FIELDS.items()})


#: Each with what its reason says of where the message is.
ENVELOPES = {
    "SQS by Lambda": (made({"Records": [{"messageId": "1", "body": TEXT}]}), "Records[0].body"),
    "SNS": (made({"Type": "Notification", "TopicArn": "arn", "Message": TEXT}), "Message"),
    "SNS in SQS": (
        made({"Records": [{"body": json.dumps({"Type": "Notification", "Message": TEXT})}]}),
        "Records[0].body",
    ),
    "Event Grid": (made([{"id": "1", "eventType": "t", "data": FIELDS}]), "[0].data"),
    "CloudEvents": (made({"specversion": "1.0", "id": "1", "data": FIELDS}), "data"),
    "CloudEvents, binary": (
        made({"specversion": "1.0", "id": "1", "data_base64": BASE64.decode()}),
        "data_base64",
    ),
    "Pub/Sub": (made({"message": {"data": BASE64.decode()}, "subscription": "s"}), "message.data"),
    "kombu": (made({"body": BASE64.decode(), "content-type": "application/json"}), "body"),
    "Celery": (made([[], FIELDS, {"callbacks": None}]), "[1]"),
    "one of many": (made([FIELDS, FIELDS]), "[0]"),
    "named": (made({"start training": FIELDS}), "'start training'"),
    "quotes": (made(TEXT), "its quotes"),
    "quotes around base64": (made(BASE64.decode()), "its quotes"),
}

#: Each with what its reason says that it looks like.
WRAPPED = {
    "base64": (BASE64, "base64"),
    "base64 in lines": (base64.encodebytes(BODY), "base64"),
    "base64 without padding": (base64.b64encode(BODY + b" ").rstrip(b"="), "base64"),
    "base64 for addresses": (base64.urlsafe_b64encode(also(b'"\xc3\xbf???>>>"')), "base64"),
    "base64 of UTF-16": (base64.b64encode(TEXT.encode("utf-16-le")), "base64 of UTF-16"),
    "base64 of UTF-16, marked": (base64.b64encode(TEXT.encode("utf-16")), "base64 of UTF-16"),
    "base64 twice": (base64.b64encode(BASE64), "base64 of base64"),
    "base64 of gzip": (base64.b64encode(gzip.compress(BODY)), "base64 of compressed data"),
    "gzip": (gzip.compress(BODY), "compressed data"),
    "zlib": (zlib.compress(BODY), "compressed data"),
    "UTF-16": (TEXT.encode("utf-16"), "UTF-16"),
    "UTF-16, unmarked": (TEXT.encode("utf-16-le"), "UTF-16"),
    "UTF-16, big-endian": (TEXT.encode("utf-16-be"), "UTF-16 (big-endian)"),
    "UTF-32": (TEXT.encode("utf-32"), "UTF-32"),
    "a mark": (b"\xef\xbb\xbf" + BODY, "UTF-8 with a byte order mark"),
    "a form": (b"payload=" + quote(TEXT).encode(), "a form"),
    "Service Bus from .NET": (b"@\x06string\x083http://x/\x9a\x05" + BODY + b"\x01", "serialized"),
}

#: Each with what its reason says.
BROKEN = {
    "lines of two": (BODY + b"\n" + BODY, "a second one begins in it, line 2 column 1"),
    "CRLF between two": (BODY + b"\r\n" + BODY, "a second one begins in it, line 2 column 1"),
    "two at once": (BODY + BODY, "send each on its own"),
    "a NUL behind it": (BODY + b"\0", "something follows its end"),
    "a comment": (BODY + b" // now", "something follows its end"),
    "a comma too many": (BODY[:-1] + b",}", "line 1 column"),
    "single quotes": (repr(FIELDS).encode(), "line 1 column 2"),
    "curly quotes": (TEXT.replace('"', "\u201d").encode(), "line 1 column 2"),
    "no quotes": (b"{requestId: 'a'}", "line 1 column 2"),
    "a plus": (also(b"+1"), "Expecting value"),
    "a zero too many": (also(b"01"), "delimiter"),
    "hexadecimal": (also(b"0x10"), "delimiter"),
    "a raw NUL": (also(b'"\0"'), "Invalid control character, line"),
    "a raw line feed": (BODY.replace(b"ND6", b"ND\n6"), "Invalid control character, line"),
    "Windows-1252": (also('"M\u00fcnz\u2019"'.encode("cp1252")), "it is not UTF-8, see byte"),
    "half a pair, raw": (also(b'"\xed\xa0\x80"'), "it is not UTF-8"),
    "overlong": (also(b'"\xc0\xaf"'), "it is not UTF-8"),
    "MessagePack": (b"\x84\xa9requestId\xa2r1", "it is not UTF-8, see byte 1"),
    "pickle": (b"\x80\x04\x95", "it is not UTF-8"),
    "protobuf": (b"\x0a\x02r1\x12\x03ND6", "it does not begin with {"),
    "a form": (urlencode(FIELDS).encode(), "it does not begin with {"),
    "YAML": (b"requestId: r1\n", "it does not begin with {"),
    "XML": (b'<?xml version="1.0"?><a/>', "it does not begin with {"),
    "a gateway": (b"<html>502 Bad Gateway</html>", "it does not begin with {"),
    "a fence": (b"```json\n" + BODY + b"\n```", "it does not begin with {"),
    "another blank": (b"\xc2\xa0" + BODY, "it does not begin with {"),
    "a mark inside": (b" \xef\xbb\xbf" + BODY, "it does not begin with {"),
}

#: Each with the name that its reason tells in the place of the right one.
NAMES = {
    "another case": (named(requestId="requestid"), "requestId", "'requestid'"),
    "snake case": (named(trainingVmSku="training_vm_sku"), "trainingVmSku", "'training_vm_sku'"),
    "a hyphen": (named(requestId="request-ID"), "requestId", "'request-ID'"),
    "a typo": (named(trainingImage="traningImage"), "trainingImage", "'traningImage'"),
    "one letter less": (
        named(trainingImagesContainer="trainingImageContainer"),
        "trainingImagesContainer",
        "'trainingImageContainer'",
    ),
    "a blank": (named(trainingImage=" trainingImage"), "trainingImage", "' trainingImage'"),
    "unseen": (
        named(trainingImage="trainingImage\u200b"),
        "trainingImage",
        r"'trainingImage\u200b'",
    ),
    "Cyrillic": (
        named(trainingVmSku="tr\u0430iningVmSku"),
        "trainingVmSku",
        r"'tr\u0430iningVmSku'",
    ),
    "wide": (named(requestId="\uff52equestId"), "requestId", r"'\uff52equestId'"),
    "the model": (
        made({**FIELDS, "trainingBaseModelBlobID": "models/1"}),
        "trainingBaseModelBlobId",
        "'trainingBaseModelBlobID'",
    ),
}

REFUSED = {
    **{f"{name}, an envelope": content for name, (content, _) in ENVELOPES.items()},
    **{f"{name}, wrapped": content for name, (content, _) in WRAPPED.items()},
    **{f"{name}, broken": content for name, (content, _) in BROKEN.items()},
    **{f"{name}, a name": content for name, (content, _, _) in NAMES.items()},
}

TAKEN = {
    "CRLF": json.dumps(FIELDS, indent=1).replace("\n", "\r\n").encode(),
    "blanks around it": b"\r\n\t " + BODY + b"\n\n",
    "-0": also(b"-0"),
    "-0.0": also(b"-0.0"),
    "many digits": also(b"9" * 1000),
    "an endless fraction": also(b"0." + b"3" * 1000),
    "as deep as may be": also(b"[" * 31 + b"]" * 31),
    "a long key": made({**FIELDS, "k" * 100_000: 1}),
    "no key": made({**FIELDS, "": 1}),
    "many keys": made({**FIELDS, **{f"k{number}": number for number in range(5000)}}),
    "names of Python": made({**FIELDS, "__proto__": {"a": 1}, "__class__": "x"}),
    "another id besides": made({**FIELDS, "requestID": "r2"}),
    "no model, and said so": made(
        {**FIELDS, "trainingBaseModelBlobId": None, "trainingBaseModelBlobID": "models/1"}
    ),
    "a message inside": made({**FIELDS, "data": {**FIELDS, "requestId": "r2"}}),
    "a BOM in a value": also(b'"\xef\xbb\xbf"'),
    "escapes": BODY.replace(b"ND6", rb"\u004e\u0044\u0036"),
}


def refused(content: bytes) -> Refused:
    found = read(content)
    assert isinstance(found, Refused), found
    return found


@pytest.mark.parametrize("kind", ENVELOPES)
def test_an_envelope_is_told_as_one(kind: str):
    """Its sender learns where in it the message is; nobody guesses that it was meant."""
    content, where = ENVELOPES[kind]
    found = refused(content)
    assert found.request_id is None
    assert f"in {where}: send that alone" in found.reason


@pytest.mark.parametrize("kind", WRAPPED)
def test_what_is_encoded_is_told_as_such(kind: str):
    """With all of its layers, and what to send."""
    content, what = WRAPPED[kind]
    found = refused(content)
    assert found.code == "not-json"
    assert f"; it looks like {what}" in found.reason.replace("a serialized", "serialized")
    assert found.reason.endswith(": send the text itself, in UTF-8")


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_no_json_is_told_where(kind: str):
    """What is wrong, and where to look; and nothing is taken for what it is not."""
    content, what = BROKEN[kind]
    found = refused(content)
    assert (found.code, found.request_id) == ("not-json", None)
    assert what in found.reason
    assert "looks like" not in found.reason


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_that_is_nearly_right_is_told(kind: str):
    """Also that of the model, which may be left out: to train without it would cost hours."""
    content, name, instead = NAMES[kind]
    found = refused(content)
    assert found.code == "missing-field"
    assert found.reason == f"{name} is missing, but there is {instead}"
    assert found.request_id == (None if name == "requestId" else "r1")


@pytest.mark.parametrize("kind", TAKEN)
def test_what_is_json_is_taken(kind: str):
    """Odd as it may look."""
    found = read(TAKEN[kind])
    assert isinstance(found, Message), found
    assert (found.request_id, found.sku) == ("r1", "ND6")
    assert json.loads(canonical(found.body)) == found.body


@pytest.mark.parametrize("kind", REFUSED)
def test_a_reason_can_be_shown_anywhere(kind: str):
    """One short line of plain text, which tells no value of the message."""
    reason = refused(REFUSED[kind]).reason
    assert reason.isascii()
    assert reason.isprintable()
    assert len(reason) < 300
    assert not any(value in reason for value in FIELDS.values())


def test_each_is_recorded_once(world: World):
    """A dead letter that is counted, or a request: whatever comes, and comes again."""
    results = Counter(
        world.ledger.do(receipt.record, content, judge(content), NOW).result
        for content in (*REFUSED.values(), *REFUSED.values(), *TAKEN.values())
    )
    assert set(results) == {"dead", "rejected", "reopened", "conflict", "duplicate"}
    assert results["reopened"] == 1
    letters = world.ledger.see(dead.letters, 1000)
    kept = {(letter.code, letter.body) for letter in letters}
    assert len(kept) == len(letters)
    assert {content for _, content in kept} >= set(REFUSED.values())
    world.send("r2")
    world.turns(2)
    assert world.states() == {"r1": "running", "r2": "running"}


BOMB = base64.b64encode(gzip.compress(b" " * 10**7))
LARGE = {
    "bombs": made({"x": [BOMB.decode()] * (MOST_BYTES // len(BOMB) - 1)}),
    "a bomb": gzip.compress(b" " * 10**8),
    "names nearly right": made({f"trainingVmSk{number}": 1 for number in range(9000)}),
    "objects that are none": made([{"a": "{" + " " * 1200}] * 200),
    "envelopes": made([{"a": [[{"b": [1]}] * 50]}] * 300),
    "quotes": b'"' + b"\\" * 262_000,
    "blanks": b" " * MOST_BYTES,
    "nearly base64": b"eyes open " * 26_000,
}


@pytest.mark.parametrize("kind", LARGE)
def test_finding_out_what_was_meant_takes_no_time(kind: str):
    """However large it is, and whatever it would become."""
    content = LARGE[kind]
    assert len(content) <= MOST_BYTES
    start = time.process_time()
    assert refused(content).reason
    assert time.process_time() - start < 1.0


def test_what_is_looked_for_must_be_there():
    """An envelope without a message, and names that are not near, are nothing."""
    assert inside({"Records": [{"body": '{"a": 1}'}], "b": [None, 5, "x"]}, ["requestId"]) == ""
    assert near("requestId", ["image", "sku", "k" * 5000, ""]) is None
