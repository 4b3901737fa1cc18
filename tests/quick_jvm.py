"""Processes of tests, with a JVM that starts soon rather than being fast later on."""

from __future__ import annotations

import os

OPTION = "spark.driver.defaultJavaOptions"
VALUE = "-XX:TieredStopAtLevel=1"


def quick_jvm() -> dict[str, str]:
    """The environment of such a process, which has the archive of classes of all the others.

    Settings in a folder of their own (``SPARK_CONF_DIR``) would be another class path to the JVM.
    """
    return {**os.environ, "JDK_JAVA_OPTIONS": VALUE}
