"""What Spark needs of this machine: Java, packages, settings, an interpreter."""
