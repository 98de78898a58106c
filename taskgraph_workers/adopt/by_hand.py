"""Placement as hand-written transforms work it out; written apart from the rules of placement.

A name is looked up once and leads to an alias, by the class of the run. The env of that alias is
given to the task where all is in it that the code wants, else none of it is; an alias with ``gpu``
in its name is refused then. So does mozilla/translations (``worker_selection``). Keys match as
everywhere in config.yml: exactly, else as a pattern, else ``default``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from taskgraph_workers.adopt.hand import Hand

_BUILT_IN = {"succeed": "built-in", "always-optimized": "invalid"}


@dataclass(frozen=True)
class Outcome:
    """Where a task runs and what env its machine gives it, or why it is refused."""

    pool: str = ""
    implementation: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""


def outcome(hand: Hand, name: str, run: Mapping[str, str]) -> Outcome:
    """What becomes of a name. ``run`` has the class, the level, ... by what ``by-`` says."""
    table = hand.data.get(hand.keys.names) or {}
    try:
        alias = str(_pick(_look_up(table, name), run))
        env = _env(hand, alias, run)
        if alias in _BUILT_IN:
            return Outcome(f"{_BUILT_IN[alias]}/{alias}", alias, env)
        aliases = (hand.data.get("workers") or {}).get("aliases") or {}
        fields = _look_up(aliases, alias)
        trust_domain = str(hand.data.get("trust-domain", ""))
        filled = {"alias": alias, "level": run["level"], "trust-domain": trust_domain}
        pool = [str(_pick(fields[k], run)) for k in ("provisioner", "worker-type")]
        return Outcome("/".join(pool).format(**filled), str(fields["implementation"]), env)
    except (LookupError, TypeError, AttributeError, ValueError, re.error) as error:
        return Outcome(refused=str(error) or type(error).__name__)


def _env(hand: Hand, alias: str, run: Mapping[str, str]) -> dict[str, str]:
    try:
        said = _look_up(hand.data.get(hand.keys.machines) or {}, alias).get("env") or {}
    except LookupError:
        said = {}
    if all(name in said for name in hand.keys.needs):
        return {name: str(_pick(value, run)) for name, value in said.items()}
    if "gpu" in alias:
        raise LookupError(f"{alias} lacks {' or '.join(hand.keys.needs)}")
    return {}


def _pick(value: Any, run: Mapping[str, str]) -> Any:
    """The branch of a keyed value; ``default`` for what nobody knows."""
    while isinstance(value, Mapping) and len(value) == 1:
        by, branches = next(iter(value.items()))
        if not str(by).startswith("by-"):
            break
        known = run.get(by[3:])
        if known is None and "default" not in branches:
            raise LookupError(f"nothing is said of an unknown {by[3:]}")
        value = branches["default"] if known is None else _look_up(branches, known)
    return value


def _look_up(table: Mapping[Any, Any], name: str) -> Any:
    keys = {str(key): value for key, value in table.items()}
    if name in keys:
        return keys[name]
    found = [value for key, value in keys.items() if re.match(key + "$", name)]
    if len(found) > 1:
        raise LookupError(f"several patterns match {name}")
    if not found and "default" not in keys:
        raise LookupError(f"nothing is said of {name}")
    return found[0] if found else keys["default"]
