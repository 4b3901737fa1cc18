"""Techniques over many groups at once."""
