"""Aggregates that are read off all values of a window, or off a sketch of them."""
