"""Start messages: bytes from outside, read once into a value that is safe to work with.

What can come in is anything at all. :func:`read` never raises, takes time and memory in proportion
to the size of the message, and says of each fault what is wrong, without the values.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from taskgraph_workers.dispatch.meant import inside, layers, near, shown
from taskgraph_workers.dispatch.model import Message, Refused

#: The largest message that is read, in bytes: what Azure Service Bus and SQS carry.
MOST_BYTES = 256 * 1024

#: The longest requestId, and the longest of the other values (an S3 key has at most 1024 bytes).
MOST_ID, MOST_TEXT = 200, 2048

# Arrays and objects inside of one another; a fixed limit, so that all dispatchers agree.
_MOST_DEPTH = 32
# Digits of a number; the double with the most has 767 significant ones.
_MOST_DIGITS = 1100

#: The fields that a message must have, and the one that it may have.
REQUEST_ID, SKU, IMAGE = "requestId", "trainingVmSku", "trainingImage"
CONTAINER, BASE_MODEL = "trainingImagesContainer", "trainingBaseModelBlobId"
NEEDED = (REQUEST_ID, SKU, IMAGE, CONTAINER)

_TYPES = {bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}

# Categories of characters: those that no table can show, and those that nobody sees; and the
# characters that turn the direction of what is shown behind them.
_CONTROLS, _UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"}), frozenset({"Cf", "Zs"})
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

_NOT_JSON = "the message is not JSON"


class _Bad(ValueError):
    """A message that can't be read: the code and the reason."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason


def read(body: bytes) -> Message | Refused:
    """The start message that these bytes are, or why they can never be one."""
    known = None
    doubled: list[str] = []
    unfit: list[str] = []
    try:
        value = _parsed(body, doubled, unfit)
        if not isinstance(value, dict):
            raise _Bad("not-an-object", _no_object(value))
        known = None if REQUEST_ID in doubled else _good_id(value.get(REQUEST_ID))
        _check(value, doubled, unfit)
        digest = digest_of(canonical(value))
    except _Bad as bad:
        return Refused(bad.code, bad.reason, digest_of(body), known)
    faults = _elsewhere(value) or list(_faults(value))
    if faults:
        reason = "; ".join(reason for _, reason in faults)
        asked = shown_of(value.get(SKU), value.get(IMAGE))
        return Refused(faults[0][0], reason, digest, known, **asked)
    base = value.get(BASE_MODEL) or None
    fields = (value[REQUEST_ID], value[SKU], value[IMAGE], value[CONTAINER], base)
    return Message(*fields, digest=digest, body=value)


def shown_of(sku: object, image: object) -> dict[str, str | None]:
    """What a refused message asks for, as far as it can be shown: text, and no URL.

    >>> shown_of("ND6", "https://me:secret@example.com/trainer")
    {'sku': 'ND6', 'image': None}
    """
    return {"sku": _fit_to_show(sku), "image": _fit_to_show(image)}


def canonical(value: Any) -> bytes:
    """JSON in one form only: sorted keys, no blanks, UTF-8.

    Raises a ValueError where it can't be written: infinite numbers, halves of surrogate pairs.

    >>> canonical({"b": 1, "a": "ü"}).decode()
    '{"a":"ü","b":1}'
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _Bad("bad-value", "the message has text with half a surrogate pair") from None


def digest_of(content: bytes) -> str:
    """What tells one message from another: the SHA-256, in hex.

    It is that of the canonical JSON, or of the message as it is where that has none.
    """
    return hashlib.sha256(content).hexdigest()


def is_deep(value: Any) -> bool:
    """Whether JSON is nested deeper than everything that works with it can follow.

    It is looked at level by level, and not by recursion, whose limit differs from one interpreter
    to another.
    """
    level = [value]
    for _ in range(_MOST_DEPTH):
        level = [item for each in level for item in _inside(each)]
        if not level:
            return False
    return True


def key_of(request_id: str, attempt: int) -> str:
    """The key of an attempt: what names it wherever it runs, fit for every file system and API.

    >>> key_of("c3feb8b2-287e-11e8-b467-0ed5f89f718b", 1)
    'ujk4dppvt6y6kbpbqqca37ga6w'
    """
    seed = f"taskgraph-workers\0{request_id}\0{attempt}"
    return base64.b32encode(hashlib.sha256(seed.encode()).digest())[:26].decode().lower()


def valid_id(value: object) -> bool:
    """Whether a requestId can be one: text of 1 to 200 characters without control characters."""
    return not _text_fault(value, MOST_ID)


def end_message(
    request_id: str, outcome: str, machine: str | None, run: int | None, reason: str = ""
) -> dict[str, Any]:
    """What the sender is told at the end. ``machine`` and ``run`` are None if nothing ever ran."""
    told: dict[str, Any] = {"trainingVmId": machine, "requestId": request_id, "outcome": outcome}
    return {**told, **({"reason": reason} if reason else {}), "runId": run}


# --- from bytes to a value ---


def _parsed(body: bytes, doubled: list[str], unfit: list[str]) -> Any:
    """The JSON value. Raises _Bad.

    Into ``doubled`` come keys that one of its objects says twice, into ``unfit`` what is wrong with
    its numbers: such a message can be read so far that its sender can be told.
    """
    if len(body) > MOST_BYTES:
        raise _Bad("too-large", f"the message has {len(body)} bytes; {MOST_BYTES} is the limit")
    text = _decoded(body)

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) < len(items):
            counts = Counter(key for key, _ in items)
            doubled.extend(key for key, count in counts.items() if count > 1)
        return made

    def number(of: Callable[[str], Any], digits: str) -> Any:
        if len(digits) > _MOST_DIGITS:
            return unfit.append(f"a number with {len(digits)} digits")
        value = of(digits)
        is_fit = isinstance(value, int) or math.isfinite(value)
        return value if is_fit else unfit.append("a number that is too large")

    try:
        return json.loads(
            text,
            object_pairs_hook=pairs,
            parse_int=partial(number, int),
            parse_float=partial(number, float),
            parse_constant=lambda name: unfit.append(f"{name}, which is no JSON number"),
        )
    except json.JSONDecodeError as error:
        raise _Bad("not-json", f"{_NOT_JSON}: {_broken(error, text)}{_wrapped(body)}") from None
    except RecursionError:
        raise _too_deep() from None


def _decoded(body: bytes) -> str:
    if body.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise _Bad("not-json", f"{_NOT_JSON}: it begins with a byte order mark{_wrapped(body)}")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        where = f"it is not UTF-8, see byte {error.start + 1}"
        raise _Bad("not-json", f"{_NOT_JSON}: {where}{_wrapped(body)}") from None


def _broken(error: json.JSONDecodeError, text: str) -> str:
    """What is wrong with a text that is no JSON."""
    where, rest = f"line {error.lineno} column {error.colno}", text[error.pos :]
    begin = text.lstrip(" \t\r\n")[:1]
    if not begin:
        return "it is empty"
    if begin not in '{["':
        return "it does not begin with {"
    if error.msg.startswith("Extra data"):
        if rest.startswith("{"):
            return f"a second one begins in it, {where}: send each on its own"
        return f"something follows its end, {where}"
    what = error.msg[: -len(" at")] if error.msg.endswith(" at") else error.msg
    return f"{what}, {where}"


def _wrapped(body: bytes) -> str:
    """A word more where it is what may be a message, as some libraries send it."""
    found = layers(body)
    return f"; it looks like {found}: send the text itself, in UTF-8" if found else ""


def _no_object(value: Any) -> str:
    what = f"the message is {_type(value)}, not an object"
    where = inside(value, NEEDED)
    if isinstance(value, str) and inside([value], NEEDED):
        where = "its quotes"
    return f"{what}; there is one in {where}: send that alone" if where else what


def _check(value: Any, doubled: Sequence[str], unfit: Sequence[str]) -> None:
    """Raises _Bad for what no two readers would understand alike."""
    if unfit:
        raise _Bad("bad-value", f"the message has {unfit[0]}")
    if is_deep(value):
        raise _too_deep()
    if doubled:
        raise _Bad("bad-value", f"the message says {shown(doubled[0])} twice")


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _too_deep() -> _Bad:
    return _Bad("bad-value", f"the message is nested more than {_MOST_DEPTH} deep")


# --- from a value to fields ---


def _faults(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """All that is wrong with the fields: a code and a reason each."""
    for name in (*NEEDED, BASE_MODEL):
        said = value.get(name)
        if said is None:
            what = _missing(name, value)
            if what:
                yield "missing-field", f"{name} {what}"
        elif not isinstance(said, str):
            yield "wrong-type", f"{name} is {_type(said)}, not text"
        elif said or name != BASE_MODEL:
            what = _text_fault(said, MOST_ID if name == REQUEST_ID else MOST_TEXT)
            what = what or (name != REQUEST_ID and _substitution(said)) or ""
            if what:
                yield "bad-value", f"{name} {what}"


def _missing(name: str, value: Mapping[str, Any]) -> str:
    """What is wrong where a field is not said: nothing, if it need not be and is not misspelled.

    A training without the model that it was to begin with would cost hours, and tell nobody.
    """
    others = (key for key in value if key not in (*NEEDED, BASE_MODEL))
    meant = None if name in value else near(name, others)
    if meant is not None:
        return f"is missing, but there is {shown(meant)}"
    return "is missing" if name in NEEDED else ""


def _elsewhere(value: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is wrong with an envelope around a message: a code and a reason."""
    where = "" if any(name in value for name in NEEDED) else inside(value, NEEDED)
    what = f"the message is inside of another, in {where}: send that alone"
    return [("missing-field", what)] if where else []


def _good_id(value: Any) -> str | None:
    return value if isinstance(value, str) and valid_id(value) else None


def _fit_to_show(value: object) -> str | None:
    is_fit = isinstance(value, str) and not _text_fault(value, MOST_TEXT) and "://" not in value
    return str(value) if is_fit else None


def _text_fault(value: object, most: int) -> str:
    """What is wrong with a text; nothing if it can be stored and shown anywhere."""
    if not isinstance(value, str):
        return f"is {_type(value)}, not text"
    if not value.strip():
        return "is empty"
    if len(value) > most:
        return f"has {len(value)} characters; {most} is the limit"
    if value.isprintable():
        return ""
    kinds = {unicodedata.category(char) for char in value}
    if kinds & _CONTROLS or not _TURNING.isdisjoint(value):
        return "has a control character"
    return "" if kinds - _UNSEEN else "is empty"


def _substitution(value: str) -> str:
    """No name of an image, a container or a blob looks like this; a careless trainer runs it."""
    found = "$(" in value or "${" in value or "`" in value
    return "has what a shell would replace" if found else ""


def _type(value: object) -> str:
    return "null" if value is None else _TYPES.get(type(value), "text")
