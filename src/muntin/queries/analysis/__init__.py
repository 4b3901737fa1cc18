"""From the syntax tree of a SELECT to the query it means."""
