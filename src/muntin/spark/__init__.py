"""Muntin on Spark: the only package that imports pyspark, and only when a session is asked for."""

from muntin.spark.environment.doctor import Finding, Findings, doctor
from muntin.spark.environment.existing import check_session, require_session
from muntin.spark.environment.shipping import ship
from muntin.spark.problems import SparkError, SparkWarning
from muntin.spark.session import session, stop

__all__ = [
    "Finding",
    "Findings",
    "SparkError",
    "SparkWarning",
    "check_session",
    "doctor",
    "require_session",
    "session",
    "ship",
    "stop",
]
