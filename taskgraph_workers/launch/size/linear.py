"""Linear programs with few rows, in exact fractions: the simplex method, columns made on demand."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Callable, NamedTuple, Optional

#: No program of ours takes so many turns, unless it goes round in a circle.
MOST_TURNS = 300


class Column(NamedTuple):
    """A variable: what one unit of it costs, and what it adds to each row."""

    cost: int
    rows: tuple[int, ...]


class Optimum(NamedTuple):
    """Prices of the rows, and the columns in use with their amounts."""

    prices: tuple[Fraction, ...]
    amounts: tuple[tuple[Column, Fraction], ...]


Price = Callable[[Sequence[Fraction]], Optional[Column]]


def cheapest(totals: Sequence[int], start: Sequence[Column], price: Price) -> Optimum:
    """The cheapest amounts of columns that add up to ``totals``, row by row.

    ``start`` is one column for each row that is zero in all other rows. ``price`` returns a column
    that costs less than its rows are worth at these prices, or None. Where a circle ends it, the
    prices are not the best ones: who takes a bound from them has to check it.
    """
    size = len(totals)
    columns = list(start)
    inverse = [
        [Fraction(int(i == j), column.rows[i]) for j in range(size)]
        for i, column in enumerate(columns)
    ]
    amounts = [
        Fraction(total, column.rows[i]) for i, (total, column) in enumerate(zip(totals, start))
    ]
    for _ in range(MOST_TURNS):
        prices = _prices(columns, inverse)
        column = price(prices)
        if column is None or not _enter(column, columns, inverse, amounts):
            break
    return Optimum(tuple(_prices(columns, inverse)), tuple(zip(columns, amounts)))


def _prices(columns: Sequence[Column], inverse: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    used = [(column.cost, row) for column, row in zip(columns, inverse) if column.cost]
    return [sum((cost * row[j] for cost, row in used), Fraction()) for j in range(len(columns))]


def _enter(
    column: Column,
    columns: list[Column],
    inverse: list[list[Fraction]],
    amounts: list[Fraction],
) -> bool:
    """Take a column into use instead of the one that it uses up first."""
    rows = [(j, value) for j, value in enumerate(column.rows) if value]
    change = [sum((line[j] * value for j, value in rows), Fraction()) for line in inverse]
    leaving = [(amounts[i] / step, i) for i, step in enumerate(change) if step > 0]
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
