"""One local Spark session for all live tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from muntin.spark.environment.java import find_java
from spark.cluster_processes import end, of_environment


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs Spark."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session", autouse=True)
def spark_processes() -> Iterator[str]:
    """A mark in the environment of every process that tests start; none outlives the tests."""
    name, value = "MUNTIN_TESTS", uuid4().hex
    os.environ[name] = value
    yield f"{name}={value}"
    end(of_environment(f"{name}={value}"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local session with two cores, UTC and ANSI; its JVM ends with the tests."""
    pytest.importorskip("pyspark")
    if find_java() is None:
        pytest.skip("no Java runtime")
    from muntin.spark import session, stop

    folder = tmp_path_factory.mktemp("spark")
    started = session(
        "muntin-tests",
        master="local[2]",
        config={
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
            "spark.driver.memory": "1g",
            # Tests are over before much of what a better compiler makes pays off, and what a
            # collector does beside them, it does on their cores.
            "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )
    yield started
    stop(started)
