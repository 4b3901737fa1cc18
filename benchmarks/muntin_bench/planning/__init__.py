"""Planning thousands of queries, and the first call of a process, in seconds."""

from muntin_bench.planning.benchmark import run

__all__ = ["run"]
