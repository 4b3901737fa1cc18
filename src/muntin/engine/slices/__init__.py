"""The slices that a stream keeps: open ones as they come, sealed ones in a log by time."""
