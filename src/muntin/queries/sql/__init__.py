"""SQL text: the dialect, its grammar, and the parser."""
