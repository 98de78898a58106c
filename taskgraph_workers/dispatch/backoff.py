"""How long to wait: after a call that led nowhere, and until the next look at a job."""

from __future__ import annotations

from typing import Callable

#: A number from 0 up to 1, by chance; tests own it.
Chance = Callable[[], float]

# 2 to the power of more than this is never needed.
_MOST_TRIES = 30


def delay(tries: int, chance: Chance, first_s: float = 1.0, most_s: float = 300.0) -> float:
    """Seconds to wait after so many tries: twice as long each time, up to a limit, with jitter.

    Half of it is certain and half by chance, so that many who failed together come again apart.

    >>> [delay(tries, lambda: 1.0) for tries in (0, 1, 2, 20)], delay(0, lambda: 0.0)
    ([1.0, 2.0, 4.0, 300.0], 0.5)
    """
    whole = min(most_s, first_s * 2.0 ** min(tries, _MOST_TRIES))
    return float(whole * (0.5 + chance() / 2))


def look_after(age_s: float, chance: Chance, soon_s: float = 0.2, most_s: float = 15.0) -> float:
    """Seconds until the next look at a job that is so old: what is young may end any moment.

    So an end is noticed within a tenth of the time that a job took, or within ``most_s``.

    >>> [look_after(age, lambda: 1.0) for age in (0, 20, 86400)], look_after(-5, lambda: 0.0)
    ([0.2, 2.0, 15.0], 0.1)
    """
    whole = min(most_s, max(soon_s, age_s / 10))
    return float(whole * (0.5 + chance() / 2))
