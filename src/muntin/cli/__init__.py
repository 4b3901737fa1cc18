"""The command line: the only importer of the argument parser."""
