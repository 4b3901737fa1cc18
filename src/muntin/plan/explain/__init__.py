"""A plan that people can read: one model, and a printer for every format."""
