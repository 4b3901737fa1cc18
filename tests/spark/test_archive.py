"""Archives of Spark's classes: recorded by one process, used by those after it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from muntin.spark.environment import archive, java

SCRIPT = """
import os, sys, warnings
import muntin.spark
home = os.environ.get("JAVA_HOME")
quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
config = {"spark.driver.memory": "512m", "spark.driver.defaultJavaOptions": quick}
for expected in sys.argv[1:]:
    session = muntin.spark.session(master="local[1]", config=config)
    options = session.sparkContext.getConf().get("spark.driver.defaultJavaOptions")
    assert expected in options, options
    if expected == "SharedArchiveFile":
        # What no job has loaded need not be recorded, and recording takes longest.
        assert session.range(3).count() == 3
    assert os.environ.get("JAVA_HOME") == home
    assert session._jvm.System.getenv("JAVA_HOME") == home
    if expected == sys.argv[-1]:
        # Its JVM goes on, and is asked for another session.
        session.stop()
        try:
            muntin.spark.session(master="nowhere")
        except muntin.spark.SparkError as error:
            print(error)
    else:
        muntin.spark.stop(session)
"""


@pytest.mark.slow
def test_an_archive_is_recorded_once_and_then_used(tmp_path: Path) -> None:
    """Two sessions, one after the other, in one process, with a cache of their own."""
    found = java.find_java()
    if found is None or not (found.runtime / "lib" / "server" / "classes.jsa").exists():
        pytest.skip("this Java cannot record archives")
    command = [sys.executable, "-c", SCRIPT, "ArchiveClassesAtExit", "SharedArchiveFile"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "MUNTIN_CACHE_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "Spark did not start on 'nowhere': " in done.stdout
    assert " WARN " not in done.stderr
    assert "incubator" not in done.stderr
    assert len(list(tmp_path.glob("classes/*.jsa"))) == 1


class TestArchives:
    @pytest.fixture
    def runtime(self, tmp_path: Path) -> java.Java:
        base = tmp_path / "jre" / "lib" / "server"
        base.mkdir(parents=True)
        (base / "classes.jsa").write_bytes(b"base")
        return java.Java(tmp_path / "jre", tmp_path / "jre", "17.0.1", "PATH")

    def made(self, runtime: java.Java, folder: Path, *more: str) -> archive.Archive:
        found = archive.archive_for(runtime, runtime.runtime, folder, more)
        assert found is not None
        return found

    def test_one_process_records_and_the_next_ones_use_it(
        self, runtime: java.Java, tmp_path: Path
    ) -> None:
        one = self.made(runtime, tmp_path)
        recording = one.options()[-1]
        assert recording.startswith("-XX:ArchiveClassesAtExit=")
        assert one.options() == []
        target = Path(recording.partition("=")[2])
        target.write_bytes(b"\0" * 4096)
        assert one.options() == [], "a file without its header is not whole"
        target.write_bytes(bytes.fromhex("a8ab0bf0") + b"rest")
        assert one.options()[-1] == f"-XX:SharedArchiveFile={one.path}"
        assert self.made(runtime, tmp_path, "other class path").options() != one.options()

    def test_another_java_has_another_archive(self, runtime: java.Java, tmp_path: Path) -> None:
        newer = java.Java(runtime.home, runtime.runtime, "21.0.2", "PATH")
        assert self.made(runtime, tmp_path).key != self.made(newer, tmp_path).key

    def test_failed_attempts_come_to_an_end(
        self, runtime: java.Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(archive, "_PATIENCE", -1)
        monkeypatch.setattr(archive, "_is_running", lambda owner: False)
        one = self.made(runtime, tmp_path)
        assert [bool(one.options()) for _ in range(5)] == [True, True, True, False, False]

    def test_only_one_of_many_processes_records(self, runtime: java.Java, tmp_path: Path) -> None:
        one = self.made(runtime, tmp_path)
        code = (
            "import sys; from pathlib import Path\n"
            "from muntin.spark.environment.archive import Archive\n"
            "print(len(Archive(Path(sys.argv[1]), sys.argv[2]).options()))\n"
            "sys.stdin.read()"
        )
        command = [sys.executable, "-c", code, str(one.folder), one.key]
        pipe = subprocess.PIPE
        running = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(6)]
        counts = [process.stdout.readline().strip() for process in running if process.stdout]
        for process in running:
            process.communicate()
        assert sorted(counts) == ["0"] * 5 + ["2"]

    def test_it_is_left_out_where_it_is_impossible(
        self, runtime: java.Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        spaces = tmp_path / "a b"
        assert archive.archive_for(runtime, tmp_path, spaces) is None
        assert archive.archive_for(runtime, tmp_path, None) is None
        file = tmp_path / "file"
        file.write_text("")
        assert archive.Archive(file, "k").options() == []
        monkeypatch.setenv("MUNTIN_CLASS_ARCHIVE", "0")
        assert archive.archive_for(runtime, tmp_path, tmp_path) is None
        monkeypatch.delenv("MUNTIN_CLASS_ARCHIVE")
        (runtime.runtime / "lib" / "server" / "classes.jsa").unlink()
        assert archive.archive_for(runtime, tmp_path, tmp_path) is None
