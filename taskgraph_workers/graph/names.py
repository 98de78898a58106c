"""Generated aliases: the names that moved tasks ask Taskgraph for.

Taskgraph looks an alias up by name and caches what it found, so a moved task needs a name of its
own. The name tells what was asked for and, by a digest, what became of it; read as the regular
expression that every alias key is, it matches itself alone.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Mapping
from typing import Any

from taskgraph_workers.model import ALIAS_FIELDS, Placement

_GENERATED = re.compile(r"(?P<asked>[A-Za-z0-9-]*(?:_[0-9a-f]{2}[A-Za-z0-9-]*)*)_at_[0-9a-f]{12}")
_lock = threading.Lock()


def generated_name(placement: Placement) -> str:
    """The alias name for a moved placement.

    >>> re.sub("[0-9a-f]{12}$", "...", _name("b-gpu.4", ["pool"]))
    'b-gpu_2e4_at_...'
    """
    return _name(placement.asked, [str(placement.fields[f].value) for f in ALIAS_FIELDS])


def _name(asked: str, content: list[str]) -> str:
    digest = hashlib.sha256("\0".join([asked, *content]).encode()).hexdigest()[:12]
    plain = "".join(
        c if c.isascii() and (c.isalnum() or c == "-") else "".join(f"_{b:02x}" for b in c.encode())
        for c in asked
    )
    return f"{plain}_at_{digest}"


def asked_name(name: str) -> str | None:
    """The worker name behind a generated alias; None for any other name.

    >>> asked_name(_name("b gpu.4", ["pool"])), asked_name("b-gpu")
    ('b gpu.4', None)
    """
    found = _GENERATED.fullmatch(name)
    if found is None:
        return None
    plain = found["asked"].encode()
    plain = re.sub(rb"_([0-9a-f]{2})", lambda m: bytes.fromhex(m[1].decode()), plain)
    return plain.decode(errors="replace")


def project_aliases(aliases: Mapping[str, Any]) -> Mapping[str, Any]:
    """The alias table as the project wrote it, without generated names."""
    if not any("_at_" in name for name in aliases):
        return aliases
    return {name: alias for name, alias in aliases.items() if asked_name(name) is None}


def add_alias(graph_config: Any, name: str, placement: Placement) -> None:
    """Make a generated alias known to Taskgraph.

    The table is replaced, never changed: other threads may be going through it.
    """
    alias = {field: placement.fields[field].value for field in ALIAS_FIELDS}
    with _lock:
        workers = graph_config["workers"]
        if workers["aliases"].get(name) != alias:
            workers["aliases"] = {**workers["aliases"], name: alias}
