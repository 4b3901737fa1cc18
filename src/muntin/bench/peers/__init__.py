"""Muntin beside other engines: the same rows, the same queries, answers compared, then times."""

from muntin.bench.peers.runner import run

__all__ = ["run"]
