"""Partials as 64-bit integers, for the compiled techniques."""
