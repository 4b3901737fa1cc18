"""Accumulators as columns: one class per kind of part, with its loops."""
