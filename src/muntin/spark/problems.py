"""What goes wrong with Spark itself, said in plain words."""

from __future__ import annotations

from muntin.errors import MuntinError


class SparkError(MuntinError, RuntimeError):
    """Spark cannot be used as it is: something is missing, too old, or of the wrong kind."""


class SparkWarning(UserWarning):
    """A Spark session works, but not as well as it could."""
