"""Typed expressions compiled and run on Arrow batches."""
