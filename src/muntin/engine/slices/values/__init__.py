"""Values of sealed slices: an index of ranks by time, and marks of when each was last seen."""
