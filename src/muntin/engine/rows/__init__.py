"""Stage A: rows become partials per slice, group and cell."""
