"""Sizes and durations: the one place where text becomes MiB or seconds.

Every function that rounds says in its name which way.
"""

from __future__ import annotations

import re
from fractions import Fraction

#: Bytes in each unit of size. The short ones are binary, as Slurm's, LSF's and PBS's are.
SIZE_UNITS = {
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", 1)},
    **{f"{prefix}B": 1000**power for power, prefix in enumerate("KMGT", 1)},
    **{prefix: 1024**power for power, prefix in enumerate("KMGT", 1)},
}
_MIB = 1024**2
_BYTES = {unit.lower(): factor for unit, factor in SIZE_UNITS.items()}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE | re.ASCII)

_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_LETTERS = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+(?::\d+){1,3})", re.ASCII)

#: No real size, duration or count has more digits than this.
_MOST_DIGITS = 15


def mib_floor(text: str) -> int:
    """A size in whole MiB, rounded down: what a machine has.

    Raises ValueError, with a sentence, for what is no size.

    >>> mib_floor("16GiB"), mib_floor("1.5 TiB"), mib_floor("16GB")
    (16384, 1572864, 15258)
    """
    return int(_bytes(text) // _MIB)


def mib_ceil(text: str) -> int:
    """A size in whole MiB, rounded up: what a task or a worker needs.

    >>> mib_ceil("16GB")
    15259
    """
    return int(-(-_bytes(text) // _MIB))


def mib_text(mib: int) -> str:
    """A size in MiB as a configuration says it, in the largest unit that leaves no rest.

    >>> mib_text(16384), mib_text(1572864), mib_text(1000)
    ('16GiB', '1536GiB', '1000MiB')
    """
    for power, unit in ((2, "TiB"), (1, "GiB")):
        if mib and mib % 1024**power == 0:
            return f"{mib // 1024**power}{unit}"
    return f"{mib}MiB"


def _bytes(text: str) -> Fraction:
    found = _SIZE.fullmatch(text.strip())
    if found is None or len(found[1]) > _MOST_DIGITS or found[2].lower() not in _BYTES:
        raise ValueError(f"{text!r} is no size: write a number and a unit, such as 16GiB")
    return Fraction(found[1]) * Fraction(_BYTES[found[2].lower()])


def seconds(said: int | str) -> int:
    """A duration in seconds: ``90m``, ``1h30m``, ``D-HH:MM:SS``, ``[[D:]H:]M:S``, plain seconds.

    Clock forms are read as Merlin reads them, so ``20:00`` is 20 minutes.
    Raises ValueError, with a sentence, for what is none, and for zero.

    >>> seconds("90m"), seconds("2h"), seconds("1-00:00:00"), seconds("00:20:00"), seconds(60)
    (5400, 7200, 86400, 1200, 60)
    """
    total = said if isinstance(said, int) else _seconds(said.strip().lower())
    if total is None or len(str(abs(total))) > _MOST_DIGITS:
        raise ValueError(
            f"{said!r} is no duration: write 90m, 2h, 1-00:00:00, H:M:S or a number of seconds"
        )
    if total <= 0:
        raise ValueError("a duration must be longer than nothing")
    return total


def _seconds(text: str) -> int | None:
    if len(text) > 4 * _MOST_DIGITS:
        return None
    if re.fullmatch(r"\d+", text, re.ASCII):
        return int(text)
    letters = _LETTERS.fullmatch(text)
    if letters and text:
        return sum(int(n) * each for n, each in zip(letters.groups("0"), _SECONDS.values()))
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        return None
    parts = [int(part) for part in clock[2].split(":")]
    if clock[1] is not None:
        # Slurm's D-H:M, D-H:M:S: here the first number after the days is hours.
        hours = [*parts, 0][:3]
        return None if len(parts) > 3 else int(clock[1]) * 86400 + _weigh(hours)
    return _weigh(parts)


def _weigh(parts: list[int]) -> int:
    """Seconds of ``[[d, h,] m,] s``."""
    return sum(n * each for n, each in zip(reversed(parts), reversed(_SECONDS.values())))


def days_ceil_minute(duration_s: int) -> str:
    """``D-HH:MM:00``, as Slurm reads it, which itself rounds up to a minute.

    >>> days_ceil_minute(61), days_ceil_minute(90000)
    ('0-00:02:00', '1-01:00:00')
    """
    minutes = -(-duration_s // 60)
    return f"{minutes // 1440}-{minutes // 60 % 24:02}:{minutes % 60:02}:00"


def hours_ceil_minute(duration_s: int) -> str:
    """``H:MM``, as LSF reads it, which knows no seconds.

    >>> hours_ceil_minute(61), hours_ceil_minute(90000)
    ('0:02', '25:00')
    """
    minutes = -(-duration_s // 60)
    return f"{minutes // 60}:{minutes % 60:02}"


def hours_exact(duration_s: int) -> str:
    """``HH:MM:SS``, as PBS reads it; hours may be more than 24.

    >>> hours_exact(61), hours_exact(90000)
    ('00:01:01', '25:00:00')
    """
    return f"{duration_s // 3600:02}:{duration_s // 60 % 60:02}:{duration_s % 60:02}"


def days_exact(duration_s: int) -> str:
    """``HH:MM:SS``, or ``D:HH:MM:SS`` from a day on, as Merlin reads both.

    >>> days_exact(1200), days_exact(90000)
    ('00:20:00', '1:01:00:00')
    """
    days, rest = divmod(duration_s, 86400)
    return f"{days}:{hours_exact(rest)}" if days else hours_exact(rest)


def clock_text(duration_s: int) -> str:
    """A duration as people read it, to the second.

    >>> clock_text(1200), clock_text(90061)
    ('0:20:00', '1-01:01:01')
    """
    days, rest = divmod(duration_s, 86400)
    return f"{days}-{hours_exact(rest)}" if days else hours_exact(rest).removeprefix("0")


def duration_text(duration_s: int) -> str:
    """A duration in the largest unit that leaves no rest.

    >>> duration_text(1728000), duration_text(86400), duration_text(5400), duration_text(7)
    ('20 days', '1 day', '90 min', '7 s')
    """
    for length, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if duration_s and duration_s % length == 0:
            return f"{duration_s // length} {unit if duration_s != 86400 else 'day'}"
    return f"{duration_s} s"
