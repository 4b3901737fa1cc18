"""Benchmarks: seeded workloads, measured loops, and reports of ratios."""

from muntin_bench.report import Report
from muntin_bench.runner import ABOUT, ALL, NAMES, REPORTS, attempt, chosen, run

__all__ = ["ABOUT", "ALL", "NAMES", "REPORTS", "Report", "attempt", "chosen", "run"]
