"""The optimizer: what its plans cost, and how long it takes to make them."""

from muntin_bench.optimizer.benchmark import run

__all__ = ["run"]
