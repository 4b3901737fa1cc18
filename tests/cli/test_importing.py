"""``muntin import`` through its real entry point, as a process once and then in this one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

MUNTIN = str(Path(sys.executable).parent / "muntin")
JOB = """\
CREATE TABLE trades (ts TIMESTAMP, symbol STRING, vol BIGINT) USING parquet LOCATION '/data';
SELECT symbol, sum(vol) AS v FROM trades GROUP BY window(ts, '10 minutes', '5 minutes'), symbol;
"""
LOST = "SELECT sum(vol) AS v FROM trades GROUP BY session_window(ts, '5 minutes');\n"

Muntin = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.sql").write_text(JOB)
    (tmp_path / "lossy.sql").write_text(JOB + LOST)
    return tmp_path


def test_a_file_that_is_carried_over_whole(folder: Path) -> None:
    done = subprocess.run(
        [MUNTIN, "import", "job.sql", "--output", "out.sql"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=folder,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("job.sql: 1 query carried over to out.sql, nothing lost\n")
    assert "CREATE STREAM trades" in (folder / "out.sql").read_text()


def test_what_was_written_passes_the_check(muntin: Muntin) -> None:
    code, shown, said = muntin("import", "lossy.sql", "--output", "out.sql")
    assert (code, shown) == (3, "")
    assert "lossy.sql:3:43: query q3: SESSION_WINDOW windows have no counterpart\n" in said
    assert said.endswith("1 query carried over to out.sql, 1 thing could not be\n")
    code, shown, _ = muntin("check", "out.sql")
    assert code == 0
    assert shown.startswith("out.sql: 1 stream, 1 query, nothing wrong\n")


def test_secrets_stay_where_they_are(muntin: Muntin, folder: Path) -> None:
    (folder / "secret.sql").write_text(
        "SET fs.s3a.access.key = HUSH;\n"
        "-- once at postgresql://me:HUSH@old/db\n"
        "CREATE TABLE t (ts TIMESTAMP(3), v INT, WATERMARK FOR ts AS ts) WITH ('path' = 'x',"
        " 'connector' = 'filesystem', 'format' = 'json', 'odd' = 'http://me:HUSH@h/x');\n"
        "CREATE TABLE o (a INT) WITH ('connector' = 'jdbc',"
        " 'url' = 'jdbc:postgresql://u:HUSH@h/db?password=HUSH&ssl=true');\n"
        "INSERT INTO o SELECT sum(v) AS s FROM t GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE);\n"
        "INSERT INTO o SELECT nope(v) AS s FROM t GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE);\n"
    )
    for form in ("text", "json"):
        code, shown, said = muntin("import", "secret.sql", "--format", form)
        assert code == 3
        assert "HUSH" not in shown + said
        assert "'http://me:****@h/x'" in said
        assert "-- once at postgresql://me:****@old/db" in shown


def test_the_text_goes_to_the_screen_and_the_report_beside_it(muntin: Muntin) -> None:
    code, shown, said = muntin("import", "lossy.sql", "--format", "json")
    assert code == 3
    assert shown.startswith("-- line 1: note: ")
    report = json.loads(said)
    assert (report["dialect"], report["ok"], report["queries"]) == ("spark", False, 1)
    assert [(note["line"], note["lost"]) for note in report["notes"]] == [(1, False), (3, True)]


def test_queries_over_rows_are_counted(muntin: Muntin, folder: Path) -> None:
    (folder / "joins.sql").write_text(
        JOB + "CREATE TABLE news (at TIMESTAMP, symbol STRING) USING parquet LOCATION '/news';"
        "SELECT t.vol FROM trades t JOIN news n ON n.symbol = t.symbol"
        " AND n.at BETWEEN t.ts AND t.ts + INTERVAL 1 HOUR;"
    )
    code, _, said = muntin("import", "joins.sql", "--output", "out.sql")
    assert code == 0
    assert said.endswith("joins.sql: 2 queries carried over to out.sql, nothing lost\n")
    assert json.loads(muntin("import", "joins.sql", "--format", "json")[2])["queries"] == 2


def test_the_dialect_may_be_said(muntin: Muntin, folder: Path) -> None:
    (folder / "t.sql").write_text(
        "CREATE TABLE t (ts TIMESTAMP(3), v INT) WITH ('connector' = 'filesystem', 'path' = 'x',"
        " 'format' = 'json'); SELECT sum(v) / 2 AS h FROM t GROUP BY window(ts, '1 minute');"
    )
    assert "sum(v) DIV 2" in muntin("import", "t.sql", "--dialect", "flink")[1]
    assert "sum(v) / 2" in muntin("import", "t.sql", "--dialect", "spark")[1]
    code, _, said = muntin("import", "t.sql", "--dialect", "oracle")
    assert code == 2
    assert "oracle" in said


def test_files_that_cannot_be_imported(muntin: Muntin, folder: Path) -> None:
    (folder / "job.py").write_text("spark.sql('SELECT 1')")
    (folder / "noise.sql").write_bytes(b"\xff\x00 'a")
    (folder / "session.sql").write_text("SET 'a' = 'b';")
    mistakes = {
        ("job.py",): "only SQL is imported",
        ("noise.sql",): "not UTF-8",
        ("none.sql",): "cannot read none.sql",
        ("session.sql",): "nothing in the file can be translated",
        ("job.sql", "--output", "job.sql"): "is the file to import",
        ("job.sql", "--output", "no/where.sql"): "cannot write no/where.sql",
    }
    for arguments, message in mistakes.items():
        code, shown, said = muntin("import", *arguments)
        assert (code, shown) == (1, ""), arguments
        assert said.startswith("error: ")
        assert message in said
        assert "Hint: " in said
        assert "Traceback" not in said
    assert (folder / "job.sql").read_text() == JOB
