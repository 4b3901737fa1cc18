"""An aggregate of a user's, for tests: order is all that matters to it."""

import pyarrow as pa

from muntin.aggregates import Aggregate


class Concat(Aggregate):
    """Text in order: neither commutative, nor invertible, nor selective."""

    name = "concat"
    commutative = False
    identity = ""

    def lift(self, value):
        return value

    def combine(self, a, b):
        return a + b

    def lower(self, partial):
        return partial

    def result_type(self, types):
        return pa.string()
