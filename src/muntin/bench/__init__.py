"""Benchmarks: seeded workloads, measured loops, and reports of ratios."""

from muntin.bench.report import Report
from muntin.bench.runner import ABOUT, ALL, NAMES, attempt, chosen, run

__all__ = ["ABOUT", "ALL", "NAMES", "Report", "attempt", "chosen", "run"]
