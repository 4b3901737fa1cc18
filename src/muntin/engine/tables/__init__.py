"""Static tables that the rows of a stream are joined with."""
