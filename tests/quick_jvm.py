"""Processes of tests, with a JVM that starts soon rather than being fast later on."""

from __future__ import annotations

import os
from pathlib import Path

OPTION = "spark.driver.defaultJavaOptions"
VALUE = "-XX:TieredStopAtLevel=1"


def quick_jvm(folder: Path) -> dict[str, str]:
    """The environment of such a process; Spark reads its settings from the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spark-defaults.conf").write_text(f"{OPTION} {VALUE}\n")
    return {**os.environ, "SPARK_CONF_DIR": str(folder)}
