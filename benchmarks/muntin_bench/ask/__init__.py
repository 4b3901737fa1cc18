"""What it costs to keep slices to be asked, and to ask."""

from muntin_bench.ask.benchmark import run

__all__ = ["run"]
