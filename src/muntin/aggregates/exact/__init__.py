"""Exact numbers: integers of any width, rounded once when they are read."""
