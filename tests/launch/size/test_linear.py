"""Linear programs whose answers are known."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest

from taskgraph_workers.launch.size.linear import Column, cheapest


def test_the_cheapest_mix_of_columns_is_found():
    """Of rolls of 5 and 3 on bars of 8: the mixed pattern beats the pure ones."""
    mixed = Column(1, (1, 1))

    def price(prices: Sequence[Fraction]) -> Column | None:
        return mixed if sum(prices) > 1 else None

    found = cheapest((6, 8), [Column(1, (1, 0)), Column(1, (0, 2))], price)
    assert dict(found.amounts) == {mixed: 6, Column(1, (0, 2)): 1}
    assert found.prices == (Fraction(1, 2), Fraction(1, 2))


def test_floats_find_the_same():
    """As far as floats go, whose dust is taken for nothing."""
    thirds = [Column(1, (3, 0)), Column(1, (0, 3))]
    both = Column(1, (2, 2))

    def price(prices: Sequence[float]) -> Column | None:
        return both if 2 * sum(prices) > 1 + 1e-9 else None

    found = cheapest((7, 11), thirds, price, exact=False)
    exact = cheapest((7, 11), thirds, price)
    assert [float(each) for each in exact.prices] == pytest.approx(found.prices)
    assert {type(amount) for _, amount in found.amounts} == {float}
    amounts = {column: float(amount) for column, amount in exact.amounts}
    assert amounts == pytest.approx(dict(found.amounts))


def test_a_circle_ends():
    """A price function that never has enough doesn't keep it going."""
    found = cheapest((4,), [Column(1, (2,))], lambda prices: Column(1, (2,)))
    assert sum(amount for _, amount in found.amounts) == 2
