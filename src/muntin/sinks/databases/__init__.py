"""Results in databases, each row exactly once."""
