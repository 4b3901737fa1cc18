"""What operators keep: rows in segments, keys by number, ends by time."""
