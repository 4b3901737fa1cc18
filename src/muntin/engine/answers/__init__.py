"""Stage B's answers: from sealed slices to the windows that are due."""
