"""Every registered aggregate obeys the laws, and a planted mistake is caught."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregates.cases import KINDS, arrays, case_id, python_rows, relaxed
from muntin.aggregates import Aggregate, resolve
from muntin.aggregates.extremes import Max
from muntin.aggregates.sums import Sum, Total
from muntin.testing import laws


@pytest.mark.parametrize("case", KINDS, ids=case_id)
@relaxed
@given(data=st.data())
def test_laws_hold(case, data):
    types = case.types
    algebra = resolve(*case).algebra
    size = data.draw(st.integers(0, 8))
    args = data.draw(arrays(types, size))
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)), np.int64)
    laws.check_laws(algebra, python_rows(algebra.timed, args, times))


@pytest.mark.parametrize("name", ["first", "last"])
@relaxed
@given(args=arrays((pa.float64(),), 6))
def test_laws_hold_when_nulls_are_ignored(name, args):
    algebra = resolve(name, [pa.float64()], ignore_nulls=True).algebra
    laws.check_laws(algebra, python_rows(True, args, np.arange(6) % 3))


class MaxFromZero(Max):
    """Zero is no identity of a maximum of negative numbers."""

    identity = 0.0


class ForgetfulSum(Sum):
    """Subtracts the units but not the infinities."""

    def inverse(self, a, b):
        return Total(a.rows - b.rows, a.total._replace(units=a.total.units - b.total.units))


class RoundedSum(Aggregate):
    """A plain float sum: rounding makes grouping matter."""

    name = "rounded_sum"
    identity = 0.0

    def lift(self, value):
        return value

    def combine(self, a, b):
        return a + b

    def lower(self, partial):
        return partial

    def result_type(self, types):
        return pa.float64()


class Concat(RoundedSum):
    """Text in order, said to be commutative, selective and insensitive to duplicates."""

    name = "concat"
    identity = ""


def test_a_wrong_identity_is_caught():
    with pytest.raises(
        AssertionError, match=r"max has a wrong identity: identity = 0\.0, a = -1\.0"
    ):
        laws.check_identity(MaxFromZero((pa.float64(),)), -1.0)
    with pytest.raises(AssertionError, match="wrong identity"):
        laws.check_laws(MaxFromZero((pa.float64(),)), [-1.0, -2.0, -3.0])


def test_a_wrong_inverse_is_caught():
    with pytest.raises(AssertionError, match="sum has a wrong inverse"):
        laws.check_laws(ForgetfulSum((pa.float64(),)), [1.0, float("inf"), 2.0])


def test_lost_associativity_is_caught():
    with pytest.raises(AssertionError, match="rounded_sum is not associative"):
        laws.check_associative(RoundedSum(), 1e16, 1.0, 1.0)


def test_wrong_claims_are_caught():
    with pytest.raises(AssertionError, match="concat is not commutative"):
        laws.check_commutative(Concat(), "a", "b")
    with pytest.raises(AssertionError, match="concat is not selective"):
        laws.check_selective(Concat(), "a", "b")
    with pytest.raises(AssertionError, match="concat is sensitive to duplicates"):
        laws.check_duplicate_insensitive(Concat(), "a")


def test_parts_that_differ_from_the_whole_are_caught():
    with pytest.raises(AssertionError, match="rounded_sum differs from its parts"):
        laws.check_parts_equal_whole(RoundedSum(), [1e16, 1.0, 1.0], 1)
