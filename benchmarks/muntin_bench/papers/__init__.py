"""The papers' figures and tables that no other benchmark repeats, with verdicts."""

from muntin_bench.papers.reproduce import run

__all__ = ["run"]
