"""What a run keeps on disk: records, plans, tables, and their checks."""
