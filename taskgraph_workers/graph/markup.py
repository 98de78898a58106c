"""HTML out of text that others wrote: whatever goes in comes out as text.

What is no :class:`Html` is escaped where it is put in, so that nothing can be forgotten.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any, Union

# Controls, those of writing direction (they can make a text read as another), lone surrogates.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_BREAK = re.compile("[\t\n\u2028\u2029]")

# The characters by which a <script> could end, or a comment begin.
_UNSAFE = "<>&"


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


Child = Union[str, Html]


def visible(text: str, line: bool = False) -> str:
    r"""A text with what can't be seen in it spelled out; with ``line``, what breaks a line, too.

    >>> print(visible("a\u202eb\n", line=True))
    a\u202eb\n
    """
    text = _CONTROL.sub(_spelled, text)
    return _BREAK.sub(_spelled, text) if line else text


def _spelled(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def escape(text: Child) -> Html:
    """A text as HTML, also inside an attribute."""
    return text if isinstance(text, Html) else Html(html.escape(visible(text)))


def join(*parts: Child) -> Html:
    """Parts, one after the other."""
    return Html("".join(map(escape, parts)))


def tag(name: str, *children: Child, **attributes: str | bool | None) -> Html:
    """An element. True is an attribute without a value; None and False are none.

    >>> tag("b", "1 < 2", class_="x", aria_label='"', hidden=True)
    '<b class="x" aria-label="&quot;" hidden>1 &lt; 2</b>'
    """
    told = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{told}>{join(*children)}</{name}>")


def embed(value: Any) -> Html:
    """A value as JSON for a ``<script type="application/json">``: ASCII, and nothing ends it."""
    text = json.dumps(value, separators=(",", ":"))
    for char in _UNSAFE:
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Html(text)
