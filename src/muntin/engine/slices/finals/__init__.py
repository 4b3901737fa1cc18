"""What final techniques keep of sealed slices: totals, deques, queries' own structures."""
