"""What an image may be called.

The rule is the reference grammar of github.com/distribution/reference (``reference.go`` and
``regexp.go``), which Docker, Podman and the OCI's registries go by::

    reference        := name [ ":" tag ] [ "@" digest ]
    name             := [domain "/"] path-component ["/" path-component]*
    domain           := host [":" port-number]
    host             := domain-name | IPv4address | "[" IPv6address "]"
    domain-component := letters, digits and inner hyphens, parted by dots
    path-component   := [a-z0-9]+ parted by one of ``_`` ``.`` ``__`` or any number of ``-``
    tag              := [A-Za-z0-9_][A-Za-z0-9_.-]{0,127}
    digest           := algorithm ":" at least 32 hexadecimal digits

A name has 255 characters at most, and 64 hexadecimal digits alone are an image's id, not a name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from taskgraph_workers.dispatch.model import Start

if TYPE_CHECKING:
    from taskgraph_workers.model import Dispatch

_COMPONENT = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_COMPONENT}(?:\.{_COMPONENT})*|\[[a-fA-F0-9:]+\])"
_DOMAIN = rf"{_HOST}(?::[0-9]+)?"
_PATH = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAME = rf"(?:{_DOMAIN}/)?{_PATH}(?:/{_PATH})*"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(
    rf"(?P<name>{_NAME})(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?"
)
_ID = re.compile(r"[a-f0-9]{64}")

_MOST_NAME, _MOST = 255, 600


def name_of(image: str) -> str | None:
    """An image's name without tag and digest; None where it is no image at all.

    >>> name_of("registry.example.com:5000/team/trainer:1.2"), name_of("-v/etc:/etc")
    ('registry.example.com:5000/team/trainer', None)
    """
    found = _REFERENCE.fullmatch(image) if len(image) <= _MOST else None
    if found is None or len(found["name"]) > _MOST_NAME or _ID.fullmatch(image):
        return None
    return found["name"]


def fault_of(image: str) -> str:
    """What keeps a text from being an image's name, behind a colon; nothing if that is not plain.

    >>> fault_of("Team/Trainer"), fault_of("team/trainer")
    (': it has capital letters', '')
    """
    if "://" in image:
        return ": it begins with a scheme"
    if image != image.strip():
        return ": it begins or ends with a blank"
    is_capital = name_of(image) is None and name_of(image.lower()) is not None
    return ": it has capital letters" if is_capital else ""


def is_allowed(image: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the patterns matches the image from its beginning to its end.

    That is more than elsewhere in the configuration, where of ``a|b`` only ``b`` is held to the
    end, as in Taskgraph: here it decides what runs.
    """
    return any(pattern == image or re.fullmatch(pattern, image) for pattern in patterns)


def start_of(dispatch: Dispatch, image: str) -> Start:
    """How an image is started on the dispatchers' machine, as this configuration says.

    A command is found by the image's whole name, else by the name without tag and digest.
    """
    command = dispatch.commands.get(image) or dispatch.commands.get(name_of(image) or "")
    return Start(dispatch.engine, dispatch.engine_options, command or ())
