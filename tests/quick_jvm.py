"""Processes of tests, with a JVM that starts soon rather than being fast later on."""

from __future__ import annotations

import os

from muntin.spark.environment.archive import archive_of_sessions
from muntin.spark.environment.java import find_java

OPTION = "spark.driver.defaultJavaOptions"
VALUE = "-XX:TieredStopAtLevel=1"


def archived() -> str:
    """The option of a JVM of Spark's that is no session, but uses the archive of sessions."""
    java = find_java()
    archive = None if java is None else archive_of_sessions(java)
    if archive is None or not archive.path.exists():
        return "-Xshare:auto"
    return f"-Xlog:cds*=off -XX:SharedArchiveFile={archive.path}"


def quick_jvm() -> dict[str, str]:
    """The environment of such a process, which has the archive of classes of all the others.

    Settings in a folder of their own (``SPARK_CONF_DIR``) would be another class path to the JVM.
    """
    return {**os.environ, "JDK_JAVA_OPTIONS": VALUE}
