"""Streams on Spark: one streaming query carries all queries, which join and leave while it runs."""
