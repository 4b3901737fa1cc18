"""Figures and tables of the thesis on incremental window-based aggregations."""
