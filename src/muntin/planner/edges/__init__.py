"""Edge rates: how many slices a set of windows cuts per unit of time."""
