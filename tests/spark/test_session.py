"""The session that Muntin starts, and those it finds."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import muntin
from muntin import spark as muntin_spark
from muntin._cache import cache_folder
from muntin.spark import SparkError, SparkWarning
from muntin.spark.environment import daemon, existing, settings
from spark.cluster import interpreter_without_muntin


def test_a_session_has_what_streams_need(spark: Any) -> None:
    assert muntin_spark.check_session(spark).warnings == []
    assert muntin_spark.check_session(spark).ok
    assert spark.conf.get(settings.PROVIDER) == settings.ROCKSDB
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert settings.HISTORY.items() <= dict(spark.sparkContext.getConf().getAll()).items()


def test_its_jvm_allocates_in_few_arenas(spark: Any) -> None:
    (name,) = settings.FEW_ARENAS
    assert spark.sparkContext._jvm.java.lang.System.getenv(name) == os.environ[name]


def test_workers_run_this_interpreter_with_one_thread(spark: Any) -> None:
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import polars as pl

        for _ in batches:
            values = [sys.executable, str(pa.cpu_count()), str(pl.thread_pool_size())]
            yield pa.RecordBatch.from_pydict({"value": values})

    rows = spark.range(1).coalesce(1).mapInArrow(look, "value string").collect()
    assert [row.value for row in rows] == [sys.executable, "1", "1"]


def test_workers_are_forked_with_what_tasks_import(spark: Any) -> None:
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            command = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().decode().split("\0")
            yield pa.RecordBatch.from_pydict({"value": [command[2], str("numba" in sys.modules)]})

    rows = spark.range(1).coalesce(1).mapInArrow(look, "value string").collect()
    assert [row.value for row in rows] == ["muntin.spark.environment.daemon", "True"]


def test_workers_are_reached_without_a_network(spark: Any) -> None:
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            enabled = os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "")
            yield pa.RecordBatch.from_pydict({"value": [enabled.lower()]})

    rows = spark.range(1).coalesce(1).mapInArrow(look, "value string").collect()
    assert [row.value for row in rows] == ["true"]
    assert settings.worker_sockets("/a" * 31) == {}


def test_a_worker_ends_quietly_when_its_jvm_is_gone() -> None:
    def broken(*_: Any) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    assert daemon.work(broken, None, True) == 1
    assert daemon.work(lambda *given: len(given), None, True) == 2


def test_no_thread_runs_when_workers_are_forked() -> None:
    program = """if True:
        import os, sys
        from muntin.spark.environment.daemon import LOADED, load
        load()
        assert not [name for name in LOADED if name not in sys.modules]
        assert not {"polars", "duckdb"} & set(sys.modules)
        tasks = "/proc/self/task"
        names = (open(f"{tasks}/{each}/comm").read() for each in os.listdir(tasks))
        print(sorted({name.strip() for name in names} - {"jemalloc_bg_thd"}))
    """
    environment = {**os.environ, **settings.ONE_THREAD}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, check=True
    )
    assert done.stdout == b"['python']\n"


def test_the_active_session_is_taken_as_it_is(spark: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert muntin_spark.session(master="local[2]") is spark
    with pytest.warns(SparkWarning, match=r"not applied: spark\.some\.key"):
        assert muntin_spark.session(config={"spark.some.key": 1}) is spark


def test_what_an_active_session_lacks_is_said(spark: Any) -> None:
    other = spark.newSession()
    other.conf.set(settings.PROVIDER, "org.example.HeapStore")
    # Expressions mean what they mean in the session's zone, so there is nothing to say of it.
    other.conf.set(settings.TIME_ZONE, "Europe/Athens")
    other.conf.set(settings.ARROW, "false")
    other.conf.set(settings.BATCH_BYTES, "64m")
    with pytest.warns(SparkWarning) as caught:
        assert muntin_spark.require_session(other) is other
    said = [str(warning.message) for warning in caught]
    assert len(said) == 3
    assert "HeapStore" in said[0]
    assert f"set {settings.ARROW} to true" in said[1]
    assert f"set {settings.BATCH_BYTES} to {settings.NO_LIMIT}" in said[2]


class TestInterpreterOfWorkers:
    """What a session of the user's own would fail for at its first job, in one sentence before."""

    @staticmethod
    def refused(spark: Any) -> str:
        frame = spark.range(1).selectExpr("CAST(id AS TIMESTAMP) AS ts")
        sql = "SELECT count(*) AS n FROM t [RANGE '1 min' SLIDE '1 min']"
        with pytest.raises(SparkError, match=r"^worker Python: ") as bounded:
            muntin.aggregate(frame, sql, time="ts")
        with pytest.raises(SparkError) as caught:
            muntin_spark.require_session(spark)
        assert bounded.value.message == caught.value.message
        assert f"set the environment variable PYSPARK_PYTHON to {sys.executable}" in (
            caught.value.hint or ""
        )
        return caught.value.message

    def test_one_that_is_not_there(self, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spark.sparkContext, "pythonExec", "python-of-nobody")
        assert "'python-of-nobody', which is not on the path" in self.refused(spark)

    def test_one_without_muntin(
        self, spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """As where an environment is not activated: ``python3`` is another one then."""
        other = interpreter_without_muntin(tmp_path)
        other.rename(tmp_path / "python3")
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setattr(spark.sparkContext, "pythonExec", "python3")
        assert f"{tmp_path}/python3, which has no muntin;" in self.refused(spark)

    @pytest.mark.parametrize(
        ("script", "words"),
        [
            ('echo \'{"version": [3, 99], "places": {}}\'', "Python 3.99 at "),
            ("exit 3", "which does not answer"),
            ("echo hello", "which does not answer"),
        ],
    )
    def test_one_of_another_kind(
        self, spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, words: str
    ) -> None:
        other = tmp_path / "python"
        other.write_text(f"#!/bin/sh\n{script}\n")
        other.chmod(0o755)
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(other))
        assert words in self.refused(spark)

    def test_one_with_another_muntin(
        self, spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        package = tmp_path / "muntin"
        package.mkdir()
        (package / "__init__.py").touch()
        other = tmp_path / "python"
        other.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}" exec "{sys.executable}" "$@"\n')
        other.chmod(0o755)
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(other))
        with pytest.warns(SparkWarning, match=f"the Muntin at {package}"):
            muntin_spark.require_session(spark)

    def test_another_name_of_this_one(
        self, spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        other = tmp_path / "python"
        other.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        other.chmod(0o755)
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(other))
        assert muntin_spark.check_session(spark).warnings == []


class TestSparkConnect:
    @pytest.mark.parametrize(
        "arguments",
        [
            {"master": "sc://host"},
            {"config": {"spark.remote": "sc://host"}},
            {"config": {"spark.api.mode": "connect"}},
        ],
    )
    def test_it_is_refused_when_asked_for(self, arguments: dict[str, Any]) -> None:
        with pytest.raises(SparkError, match="Spark Connect"):
            muntin_spark.session(**arguments)

    def test_it_is_refused_when_the_environment_asks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SPARK_REMOTE", "sc://host")
        with pytest.raises(SparkError, match="SPARK_REMOTE"):
            muntin_spark.session()
        assert not muntin_spark.doctor().ok

    def test_its_sessions_are_known_by_their_module(self) -> None:
        remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
        assert existing.is_connect(remote)
        with pytest.raises(SparkError, match="Spark Connect"):
            muntin_spark.check_session(remote)


def test_administered_settings_come_before_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["# a comment", "spark.master  spark://host:7077", "spark.x=1 2", "", "spark.empty"]
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    found = settings.administered_settings()
    assert found == {"spark.master": "spark://host:7077", "spark.x": "1 2"}


class TestHeap:
    """The options for a small heap, which a JVM does not start with beside those of others."""

    @pytest.fixture(autouse=True)
    def nothing_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_DRIVER_MEMORY", "JAVA_TOOL_OPTIONS"):
            monkeypatch.delenv(name, raising=False)

    def test_a_heap_of_the_default_size_is_kept_small(self) -> None:
        assert "-XX:+UseSerialGC" in settings.jvm_options({}, {})
        other = {settings.JVM_OPTIONS: "-XX:+PrintCommandLineFlags"}
        options = settings.jvm_options(other, {})
        assert options.index("-XX:+UseSerialGC") < options.index("-XX:+PrintCommandLineFlags")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("spark.driver.memory", "128m"),
            (settings.JVM_OPTIONS, "-Xss1m -XX:+UseG1GC"),
            ("spark.driver.extraJavaOptions", "-XX:+UseZGC"),
        ],
    )
    def test_what_settings_say_is_left_alone(self, name: str, value: str) -> None:
        for options in (
            settings.jvm_options({name: value}, {}),
            settings.jvm_options({}, {name: value}),
            settings.jvm_options({name: value}, {settings.JVM_OPTIONS: "-Xint"}),
        ):
            assert not {"-XX:+UseSerialGC", "-Xms256m"} & set(options)

    def test_what_says_nothing_of_it_changes_nothing(self) -> None:
        given = {
            "spark.driver.memoryOverhead": "1g",
            "spark.executor.memory": "2g",
            "spark.executor.extraJavaOptions": "-XX:+UseG1GC",
        }
        assert "-XX:+UseSerialGC" in settings.jvm_options({}, given)

    def test_what_the_administrator_says_is_left_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
        script = tmp_path / "spark-env.sh"
        script.write_text("# - SPARK_DRIVER_MEMORY, Memory for Driver (Default: 1G)\n")
        assert "-XX:+UseSerialGC" in settings.jvm_options({}, {})
        script.write_text("export SPARK_DRIVER_MEMORY=200m\n")
        assert "-XX:+UseSerialGC" not in settings.jvm_options({}, {})

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("JAVA_TOOL_OPTIONS", "-XX:+UseParallelGC"),
            ("PYSPARK_SUBMIT_ARGS", "--driver-memory 200m pyspark-shell"),
            ("PYSPARK_SUBMIT_ARGS", "--conf spark.driver.memory=200m pyspark-shell"),
            ("SPARK_DRIVER_MEMORY", "200m"),
        ],
    )
    def test_what_the_environment_says_is_left_alone(
        self, name: str, value: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(name, value)
        assert not {"-XX:+UseSerialGC", "-Xms256m"} & set(settings.jvm_options({}, {}))


def test_settings_of_a_cluster_leave_the_network_alone() -> None:
    cluster = settings.default_settings("spark://host:7077")
    assert "spark.driver.host" not in cluster
    assert "spark.sql.shuffle.partitions" not in cluster
    assert cluster["spark.executorEnv.NUMBA_CACHE_DIR"] == "muntin-kernels"
    assert not [name for name in cluster if name.startswith(settings.SOCKETS)]
    assert settings.default_settings("local[3]")["spark.sql.shuffle.partitions"] == "3"


def test_a_cache_folder_that_others_may_write_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_to_all = tmp_path / "shared"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("MUNTIN_CACHE_DIR", str(open_to_all))
    assert cache_folder() is None
    monkeypatch.setenv("MUNTIN_CACHE_DIR", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"


def test_names_of_connect_do_not_hit_classic_sessions() -> None:
    assert not existing.is_connect(SimpleNamespace())
