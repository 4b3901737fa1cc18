"""Files that workers read themselves, so that their rows never enter the JVM."""
