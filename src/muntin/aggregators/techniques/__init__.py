"""The final techniques, one per module, over encoded partials."""
