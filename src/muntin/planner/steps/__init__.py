"""The steps of planning, in the order in which they run."""
