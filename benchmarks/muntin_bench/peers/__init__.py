"""Muntin beside other engines: the same rows, the same queries, answers compared, then times."""

from muntin_bench.peers.runner import run

__all__ = ["run"]
