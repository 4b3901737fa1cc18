"""Which bucket or node runs which trees."""
