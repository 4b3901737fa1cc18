"""Benchmarks: seeded workloads, measured loops, and reports of ratios."""

from muntin_bench.report import Report
from muntin_bench.runner import ABOUT, ALL, NAMES, attempt, chosen, run

__all__ = ["ABOUT", "ALL", "NAMES", "Report", "attempt", "chosen", "run"]
