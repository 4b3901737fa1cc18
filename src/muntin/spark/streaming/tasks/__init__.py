"""A batch as the tasks see it: stage A in map tasks, stage B in stateful ones."""
