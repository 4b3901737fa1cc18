"""One engine a file: scripts that other environments run, each with an `Adapter`."""
