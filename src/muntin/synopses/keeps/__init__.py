"""What a keep holds: planned for its stream, in blocks of slices, as versions that readers hold."""
