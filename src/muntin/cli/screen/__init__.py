"""What a running pipeline shows on a terminal, as lines, or as JSON."""
