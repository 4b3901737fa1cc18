"""Bounded input on Spark: both stages in one job, without state."""
