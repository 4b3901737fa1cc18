"""Synthetic data and assertions for tests, ours and users'."""

from muntin.testing.compare import assert_same_rows, check_types, rows_of
from muntin.testing.trades import trades

__all__ = ["assert_same_rows", "check_types", "rows_of", "trades"]
