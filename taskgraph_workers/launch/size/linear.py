"""Linear programs with few rows: the simplex method, columns made on demand.

In exact fractions; or in floats, which takes a tenth of the time. Who takes a bound from the latter
has to check it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from operator import truediv
from typing import Any, Callable, NamedTuple, Optional

#: No program of ours takes so many turns, unless it goes round in a circle.
MOST_TURNS = 300
#: No float that is less than this is anything.
NOTHING = 1e-9


class Column(NamedTuple):
    """A variable: what one unit of it costs, and what it adds to each row."""

    cost: int
    rows: tuple[int, ...]


class Optimum(NamedTuple):
    """Prices of the rows, and the columns in use with their amounts: fractions, or floats."""

    prices: tuple[Any, ...]
    amounts: tuple[tuple[Column, Any], ...]


Price = Callable[[Sequence[Any]], Optional[Column]]


def cheapest(
    totals: Sequence[int], start: Sequence[Column], price: Price, exact: bool = True
) -> Optimum:
    """The cheapest amounts of columns that add up to ``totals``, row by row.

    ``start`` is one column for each row that is zero in all other rows. ``price`` returns a column
    that costs less than its rows are worth at these prices, or None. Where a circle ends it, the
    prices are not the best ones: who takes a bound from them has to check it.
    """
    size = len(totals)
    columns = list(start)
    ratio: Callable[[int, int], Any] = Fraction if exact else truediv
    inverse = [
        [ratio(int(i == j), column.rows[i]) for j in range(size)]
        for i, column in enumerate(columns)
    ]
    amounts = [ratio(total, column.rows[i]) for i, (total, column) in enumerate(zip(totals, start))]
    for _ in range(MOST_TURNS):
        prices = _prices(columns, inverse)
        column = price(prices)
        if column is None or not _enter(column, columns, inverse, amounts):
            break
    return Optimum(tuple(_prices(columns, inverse)), tuple(zip(columns, amounts)))


def _prices(columns: Sequence[Column], inverse: Sequence[Sequence[Any]]) -> list[Any]:
    used = [(column.cost, row) for column, row in zip(columns, inverse) if column.cost]
    nothing = inverse[0][0] * 0
    return [sum([cost * row[j] for cost, row in used], nothing) for j in range(len(columns))]


def _enter(
    column: Column,
    columns: list[Column],
    inverse: list[list[Any]],
    amounts: list[Any],
) -> bool:
    """Take a column into use instead of the one that it uses up first."""
    rows = [(j, value) for j, value in enumerate(column.rows) if value]
    nothing = inverse[0][0] * 0
    change = [sum([line[j] * value for j, value in rows], nothing) for line in inverse]
    least = 0 if isinstance(nothing, Fraction) else NOTHING
    leaving = [(amounts[i] / step, i) for i, step in enumerate(change) if step > least]
    if not leaving:
        return False
    amount, out = min(leaving)
    pivot = change[out]
    inverse[out] = [value / pivot for value in inverse[out]]
    for i, step in enumerate(change):
        if i != out and step:
            amounts[i] -= step * amount
            inverse[i] = [a - step * b for a, b in zip(inverse[i], inverse[out])]
    amounts[out], columns[out] = amount, column
    return True
