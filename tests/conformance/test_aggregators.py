"""Every technique with every aggregate it takes, against recomputation."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aggregates.cases import KINDS, arrays, case_id, python_rows
from aggregators.concat import Concat
from muntin.aggregates import resolve
from muntin.aggregates.extremes import Max
from muntin.aggregates.sums import Sum, Total
from muntin.aggregators import info, legal, names
from muntin.testing import conformance

# There are hundreds of cases, each for up to eleven techniques.
few = settings(deadline=None, max_examples=3, suppress_health_check=list(HealthCheck))


class Latest(Concat):
    """What came last: selective, and order is all that matters."""

    name = "latest"
    selective = True
    identity = None

    def combine(self, a, b):
        return a if b is None else b


@pytest.mark.parametrize("case", KINDS, ids=case_id)
@few
@given(data=st.data())
def test_every_legal_pair_equals_recomputation(case, data):
    types = case.types
    algebra = resolve(*case).algebra
    size = data.draw(st.integers(1, 14), label="rows")
    args = data.draw(arrays(types, size), label="args")
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)), np.int64)
    rows = python_rows(algebra.timed, args, times)
    window = data.draw(st.integers(1, 6), label="window")
    seed = data.draw(st.integers(0, 1000), label="seed")
    for technique in legal(algebra):
        several = info(technique).several_ranges
        conformance.check_slides(technique, algebra, rows, [window, 2] if several else [window])
        conformance.check_positions(technique, algebra, rows, seed)
    conformance.check_snapshots(legal(algebra)[seed % len(legal(algebra))], algebra, rows, window)


@pytest.mark.parametrize("technique", names())
@pytest.mark.parametrize("aggregate", [Concat(), Latest()], ids=lambda one: one.name)
@settings(few, max_examples=25)
@given(data=st.data())
def test_order_is_kept(technique, aggregate, data):
    if technique not in legal(aggregate):
        return
    rows = data.draw(st.text("abcdefgh", min_size=1, max_size=60))
    window = data.draw(st.integers(1, 20))
    ranges = [window, 3, 1] if info(technique).several_ranges else [window]
    conformance.check_slides(technique, aggregate, rows, ranges)
    conformance.check_positions(technique, aggregate, rows, data.draw(st.integers(0, 1000)))
    conformance.check_snapshots(technique, aggregate, rows[:20], window)


class MaxFromZero(Max):
    """Zero is no identity of a maximum of negative numbers."""

    identity = 0


class ForgetfulSum(Sum):
    """Subtracts the units but not the infinities."""

    def inverse(self, a, b):
        return Total(a.rows - b.rows, a.total._replace(units=a.total.units - b.total.units))


@pytest.mark.parametrize("technique", ["panes", "flatfat", "flatfit"])
def test_a_wrong_identity_is_caught(technique):
    with pytest.raises(AssertionError, match=f"{technique} of max answers 0, not -1"):
        conformance.check_slides(technique, _honest(MaxFromZero((pa.int64(),))), [-1, -2], [3])


@pytest.mark.parametrize("technique", ["panes_inv", "slickdeque_inv"])
def test_a_wrong_inverse_is_caught(technique):
    rows = [float("inf"), 1.0, 2.0, 3.0]
    with pytest.raises(AssertionError, match=r"answers inf, not 3\.0"):
        conformance.check_slides(technique, ForgetfulSum((pa.float64(),)), rows, [2])


def _honest(aggregate):
    """Let the definition fold rows without the identity, which would hide itself."""
    aggregate.of = max
    return aggregate
