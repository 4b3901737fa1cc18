"""What is kept of a stream, and what is asked of it, as written."""
