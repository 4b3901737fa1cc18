"""A streaming run as the driver sees it: batches, plans, progress."""
