"""What a sender may have meant: words more for the reason why a message is refused.

Nothing here decides whether one is. Names of fields are told, values never.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import json
import re
import unicodedata
import zlib
from collections.abc import Collection, Iterable
from typing import Any, Callable
from urllib.parse import unquote_to_bytes

# How much of a text is looked at, how many layers of it, and how many values of an envelope.
_MOST_BYTES, _MOST_LAYERS, _MOST_VALUES = 4096, 3, 200
# How long a name may be to be taken for another one, how many are looked at, and how near one is.
_MOST_NAME, _MOST_NAMES, _NEAR = 64, 100, 0.8

_OBJECT = re.compile(rb'\s*\{\s*["}]')
_PLAIN = re.compile(r"\w{1,40}", re.ASCII)

#: How the .NET clients of Azure Service Bus begin a text that they serialize.
_SERIALIZED = b"@\x06string"


def layers(body: bytes) -> str:
    """What a JSON object is wrapped into, such as ``base64 of UTF-16``; nothing where it is none.

    >>> layers(b"eyJhIjogMX0="), layers(b"start")
    ('base64', '')
    """
    found = _peeled(body, _MOST_LAYERS)
    return " of ".join(found[0]) if found else ""


def inside(value: Any, fields: Collection[str]) -> str:
    """Where in a value of JSON an object with some of these fields is; nothing where none is.

    >>> inside({"Records": [{"body": '{"requestId": "r1"}'}]}, {"requestId"})
    'Records[0].body'
    """
    level: list[tuple[str, Any]] = [("", value)]
    for count, (path, each) in enumerate(level):
        if count == _MOST_VALUES:
            break
        if path and _holds(each, fields):
            return path
        level += [(f"{path}{step}".lstrip("."), item) for step, item in _steps(each)]
    return ""


def near(name: str, others: Iterable[str]) -> str | None:
    """Which of some names was meant as this one, whatever its case, blanks and hyphens.

    >>> near("requestId", ["trainingImage", "request-ID"]), near("requestId", ["image"])
    ('request-ID', None)
    """
    plain: dict[str, str] = {}
    for each in others:
        if len(each) <= _MOST_NAME and len(plain) < _MOST_NAMES:
            plain.setdefault(_plain(each), each)
    if not plain:
        return None
    found = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=_NEAR)
    return plain[found[0]] if found else None


def shown(key: str) -> str:
    """A key for a reason: short, and plain ASCII."""
    return ascii(key if len(key) <= 40 else key[:40] + "...")


def _plain(name: str) -> str:
    text = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in text if char.isalnum())


def _steps(value: Any) -> Iterable[tuple[str, Any]]:
    """What is in a value, each with how it is reached."""
    if isinstance(value, dict):
        for key, item in list(value.items())[:_MOST_VALUES]:
            yield f".{key if _PLAIN.fullmatch(key) else shown(key)}", item
    elif isinstance(value, list):
        for number, item in enumerate(value[:_MOST_VALUES]):
            yield f"[{number}]", item


def _holds(value: Any, fields: Collection[str]) -> bool:
    if isinstance(value, dict):
        return any(name in value for name in fields)
    if not isinstance(value, str):
        return False
    found = _peeled(value[:_MOST_BYTES].encode(errors="replace"), _MOST_LAYERS)
    return found is not None and any(name.encode() in found[1] for name in fields)


# --- layers -----------------------------------------------------------------------------------


def _peeled(body: bytes, most: int) -> tuple[list[str], bytes] | None:
    """The layers around an object, and how it begins; None where there is none."""
    body = body[:_MOST_BYTES]
    if b"\0" not in body[:8] and _OBJECT.match(body):
        return [], body
    for name, peel in _LAYERS.items() if most else ():
        inner = peel(body)
        found = None if inner is None else _peeled(inner, most - 1)
        if found is not None:
            return [name, *found[0]], found[1]
    return None


def _without_mark(body: bytes) -> bytes | None:
    return body[3:] if body.startswith(b"\xef\xbb\xbf") else None


def _from(codec: str) -> Callable[[bytes], bytes | None]:
    def peel(body: bytes) -> bytes | None:
        if b"\0" not in body[:8]:
            return None
        return body.decode(codec, "ignore").lstrip("\ufeff").encode(errors="replace")

    return peel


def _inflated(body: bytes) -> bytes | None:
    try:
        return zlib.decompressobj(47).decompress(body, _MOST_BYTES)  # 47: gzip or zlib
    except zlib.error:
        return None


def _from_base64(body: bytes) -> bytes | None:
    text = b"".join(body.split()).translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
    try:
        return base64.b64decode(text[: len(text) // 4 * 4], validate=True)
    except (binascii.Error, ValueError):
        return None


def _from_quotes(body: bytes) -> bytes | None:
    if not body.lstrip().startswith(b'"'):
        return None
    # What is cut off is made up for, so that its beginning can be read.
    text = body.decode(errors="replace").strip().rstrip('"').rstrip("\\") + '"'
    try:
        return str(json.loads(text)).encode(errors="replace")
    except ValueError:
        return None


def _from_form(body: bytes) -> bytes | None:
    found = re.match(rb"[\w.-]+=(?=%7B|\{)", body, re.IGNORECASE)
    return unquote_to_bytes(body[found.end() :]) if found else None


def _from_serialized(body: bytes) -> bytes | None:
    return body[body.find(b"{") :] if body.startswith(_SERIALIZED) and b"{" in body else None


_LAYERS: dict[str, Callable[[bytes], bytes | None]] = {
    "UTF-8 with a byte order mark": _without_mark,
    "UTF-32": _from("utf-32-le"),
    "UTF-32 (big-endian)": _from("utf-32-be"),
    "UTF-16": _from("utf-16-le"),
    "UTF-16 (big-endian)": _from("utf-16-be"),
    "text in quotes": _from_quotes,
    "a form": _from_form,
    "a serialized string": _from_serialized,
    "compressed data": _inflated,
    "base64": _from_base64,
}
