"""What goes wrong with a run and its checkpoint."""

from __future__ import annotations

from muntin.spark.problems import SparkError


class CheckpointError(SparkError):
    """A checkpoint that a run cannot continue with, or that another run holds."""


class RunError(SparkError):
    """A run that has come to an end it was not asked for."""
