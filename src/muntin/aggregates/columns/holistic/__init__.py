"""Accumulators of holistic aggregates as columns: runs, sets, lists, histograms, registers."""
