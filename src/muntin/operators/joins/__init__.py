"""Joins: of rows that end by themselves, of such as may end early, and many over one store."""
