"""Trees of queries that share slices: how they are woven, and what that saves."""
