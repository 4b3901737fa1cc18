"""Muntin on Spark: the only package that imports pyspark, and only when a session is asked for."""

from muntin.spark.doctor import doctor
from muntin.spark.existing import check_session, require_session
from muntin.spark.findings import Finding, Findings
from muntin.spark.problems import SparkError, SparkWarning
from muntin.spark.session import session, stop
from muntin.spark.shipping import ship

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
