"""Row queries rewritten by the update patterns of their operators."""

from muntin.planner.rows.rewritings.rates import SAMPLE, StreamRate, rates_of
from muntin.planner.rows.rewritings.rules import is_undecided, rewritten, weighed

__all__ = ["SAMPLE", "StreamRate", "is_undecided", "rates_of", "rewritten", "weighed"]
