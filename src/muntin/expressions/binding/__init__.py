"""From SQL nodes to typed expressions over a schema."""
