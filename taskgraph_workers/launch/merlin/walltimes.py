"""Walltimes: what Merlin makes of them, and what their writer meant.

Merlin (``utils.convert_to_timedelta``) deletes the letters d, h, m and s, and reads the rest as
``[[d:]h:]m:s``: a bare 20 is 20 seconds, and so is ``20m``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from taskgraph_workers import units
from taskgraph_workers.errors import counted

#: Fewer seconds than anybody asks for: more likely they are meant as minutes.
_FEW_S = 600


class Walltime(NamedTuple):
    """A walltime in seconds, None where it is none, and what should be said about it."""

    seconds: int | None
    note: str = ""
    hint: str = ""


def walltime(said: object, written: str | None) -> Walltime:
    """A walltime out of a spec: as YAML read it, and as it is written there.

    Raises ValueError, with a sentence, for what is none.

    >>> walltime("00:20:00", None).seconds, walltime(20, "20").seconds
    (1200, 20)
    >>> walltime("90m", "90m").note
    'Merlin reads 90m as 90 seconds: it deletes the letters; launch takes 5400 seconds'
    """
    if isinstance(said, bool) or not isinstance(said, (int, str)):
        raise ValueError(f"{written or said!r} is no duration: write H:M:S, in quotes")
    if isinstance(said, int):
        return _number(said, written)
    total = units.seconds(said)
    text = said.strip()
    merlins = _merlins(text)
    if merlins == total:
        return _number(total, text) if text.isdigit() else Walltime(total)
    hint = f'write it as Merlin reads it: "{units.days_exact(total)}"'
    if merlins is None:
        return Walltime(total, f"Merlin can't read {text}; launch takes {total} seconds", hint)
    what = f"Merlin reads {text} as {counted(merlins, 'second')}: it deletes the letters"
    return Walltime(total, f"{what}; launch takes {total} seconds", hint)


def _number(number: int, written: str | None) -> Walltime:
    """A number: as such, or what YAML makes of a clock without quotes, to the base 60."""
    total = units.seconds(number)
    if written is not None and ":" in written:
        meant = units.seconds(written)
        what = f"YAML reads {written} as the number {total}, to the base 60"
        also = ", and so does Merlin" if meant != total else ""
        hint = f'put it in quotes: "{written}"'
        return Walltime(meant, f"{what}{also}; launch takes {units.days_exact(meant)}", hint)
    if total < _FEW_S:
        what = f"a walltime of {total} is {counted(total, 'second')} to Merlin, and to launch"
        return Walltime(
            total, what, f'if minutes are meant, write "{units.days_exact(total * 60)}"'
        )
    return Walltime(total)


def _merlins(text: str) -> int | None:
    """What Merlin makes of it; None where it fails."""
    fields = re.sub("[dhms]", "", text).split(":")
    if len(fields) > 4:
        return None
    try:
        numbers = [int(field or "0") for field in fields]
    except ValueError:
        return None
    return sum(number * each for number, each in zip(reversed(numbers), (1, 60, 3600, 86400)))
