"""Whatever a file holds: a pipeline, or problems with places and hints; nothing else, and soon."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muntin.errors import Problem
from muntin.pipelines import PipelineError, read

W = "[RANGE '1 minute' SLIDE '1 minute']"
STREAM = "CREATE STREAM trades WITH (format = 'rate');"
FILE = f"""\
-- a comment
CREATE STREAM trades (ts TIMESTAMP, `größe` DECIMAL(10, 2), vol BIGINT, symbol STRING)
  WITH (format = 'csv', path = '${{dir}}/in', time = 'ts', lateness = '5 seconds', header = TRUE);
CREATE TABLE close (symbol STRING, cp DOUBLE) WITH (format = 'json', path = 'c', refresh = 'never');
CREATE SINK out FOR a, b WITH (format = 'parquet', path = 'out');
CREATE SINK db WITH (format = 'postgres', url_env = 'URL', prefix = 'm_');
CREATE QUERY a AS SELECT symbol, sum(vol * cp) AS v FROM trades {W} JOIN close USING (symbol)
  WHERE vol BETWEEN 1 AND 5 OR symbol LIKE 'A%' GROUP BY symbol HAVING v > 10;
CREATE OR REPLACE QUERY b AS SELECT count(*) AS n FROM trades {W} EMIT EMPTY;
INSERT INTO db SELECT max(`größe`) AS g FROM trades {W};
DROP QUERY a;
SELECT count(*) AS n FROM trades {W}
"""
WORDS = """
CREATE STREAM TABLE SINK QUERY INSERT INTO DROP WITH FOR AS SELECT FROM WHERE REPLACE OR IF NOT
EXISTS ( ) [ ] , ; = . ${ } $ - + * 'csv' 'parquet' 'rate' "path" `name` format path time lateness
ts vol trades close BIGINT DOUBLE STRING TIMESTAMP DECIMAL(5,2) ARRAY<INT> STRUCT< > WATERMARK
PRIMARY KEY TRUE FALSE NULL 5 1.5 1e9 count(*) sum(vol) RANGE SLIDE '1m' JOIN USING ON
"""


def reads_or_refuses(text: str | Path) -> None:
    problems: tuple[Problem, ...] = ()
    try:
        read(text, {"dir": "/data"})
    except PipelineError as error:
        problems = error.problems
        str(error).encode("utf-8", errors="strict")
    for problem in problems:
        assert problem.hint, problem
        assert problem.line >= 1 or isinstance(text, Path), problem


def test_the_file_itself_is_sound() -> None:
    pipeline = read(FILE.replace("FOR a, b", "FOR b"), {"dir": "/data"})
    assert [query.name for query in pipeline.queries["trades"]] == ["b", "db", "q9"]


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.text(max_size=80), st.binary(max_size=80).map(lambda b: b.decode("latin-1"))))
def test_any_text(text: str) -> None:
    reads_or_refuses(text + " ")
    reads_or_refuses(f"CREATE STREAM s WITH (format = 'rate', {text})")
    reads_or_refuses(f"{STREAM} SELECT {text} FROM trades {W}")


@settings(max_examples=50, deadline=None)
@given(content=st.binary(max_size=200))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.sql"
    path.write_bytes(content)
    reads_or_refuses(path)


@settings(max_examples=120, deadline=None)
@given(st.lists(st.sampled_from(WORDS.split()), max_size=25).map(" ".join))
def test_any_words(text: str) -> None:
    reads_or_refuses(text)
    reads_or_refuses(f"CREATE STREAM s ({text}")
    reads_or_refuses(f"CREATE SINK s WITH ({text}")


def test_a_file_that_breaks_off() -> None:
    for end in range(0, len(FILE), 11):
        reads_or_refuses(FILE[:end])


def test_a_file_with_parts_exchanged_doubled_and_lost() -> None:
    rng = random.Random(7)
    words = FILE.split(" ")
    for _ in range(50):
        changed = list(words)
        for _ in range(rng.randrange(1, 4)):
            i, j = rng.randrange(len(changed)), rng.randrange(len(changed))
            changed[i], changed[j] = changed[j], changed[i]
            changed.insert(rng.randrange(len(changed)), rng.choice(WORDS.split()))
            del changed[rng.randrange(len(changed))]
        reads_or_refuses(" ".join(changed))


def test_a_file_with_letters_changed() -> None:
    rng = random.Random(11)
    letters = "'\"`()[]{}$;,.=-*/\\\x00\n\t\u2028é\U0001f600aZ09_"
    for _ in range(60):
        place = rng.randrange(len(FILE))
        reads_or_refuses(FILE[:place] + rng.choice(letters) + FILE[place + rng.randrange(3) :])


HOSTILE = [
    "CREATE STREAM s (" + "x ARRAY<" * 5000,
    "CREATE STREAM s (x " + "STRUCT<a: " * 300 + "INT" + ">" * 300 + ") WITH (a = 1)",
    "CREATE STREAM s WITH (a = " + "(" * 10_000,
    "CREATE STREAM s WITH (" + "a = 1, " * 4000 + "b = 2)",
    "CREATE STREAM s WITH (" + ", ".join(f"a{i} = 1" for i in range(2000)) + ")",
    "CREATE STREAM s (" + ", ".join(f"c{i} INT" for i in range(3000)) + ") WITH (format = 'rate')",
    "CREATE STREAM s WITH (" + "a." * 20_000 + "b = 2)",
    "CREATE STREAM s WITH (format = 'rate', rows_per_second = " + "9" * 10_000 + ")",
    "CREATE STREAM s WITH (format = 'rate', lateness = '" + "9" * 10_000 + " seconds')",
    "CREATE STREAM s WITH (format = 'csv', path = '" + "x" * 1_000_000 + "')",
    "CREATE STREAM s WITH (format = 'csv', path = 'a\x00b')",
    "CREATE STREAM s WITH (format = 'csv', path = '" + "*" * 60 + "/[')",
    "CREATE STREAM s WITH (format = '" + "${" * 5000 + "')",
    "CREATE STREAM s WITH (format = '${dir" + "}" * 5000 + "')",
    "CREATE STREAM " + "s" * 100_000 + " WITH (format = 'rate')",
    "CREATE STREAM `\U0001f600` WITH (format = 'rate')",
    "CREATE STREAM `select` WITH (format = 'rate'); SELECT count(*) FROM `select` " + W,
    "CREATE STREAM s (`from` TIMESTAMP) WITH (format = 'csv', path = 'x', time = 'from')",
    "CREATE STREAM s (x DECIMAL('a', b, 3)) WITH (format = 'csv', path = 'x')",
    "CREATE STREAM s (x DECIMAL(99999999999999999999)) WITH (format = 'csv', path = 'x')",
    f"{STREAM} SELECT max(CAST(vol AS DECIMAL(99999999999999999999, 5))) AS m FROM trades {W}",
    f"{STREAM} SELECT sum({'(' * 5000}vol{')' * 5000}) FROM trades {W}",
    f"{STREAM} SELECT sum({' + '.join(['vol'] * 5000)}) FROM trades {W}",
    f"{STREAM} SELECT sum({'9' * 5000}) AS n FROM trades {W}",
    f"{STREAM} SELECT count(*) AS n FROM trades {W} WHERE symbol = '{'x' * 500_000}'",
    f"{STREAM} SELECT count(*) AS n FROM trades {W} WHERE vol IN ({', '.join(['1'] * 4000)})",
    f"{STREAM} SELECT count(*) AS `{'é' * 5000}` FROM trades {W}",
    f"{STREAM} SELECT count(*) AS n FROM {'`x`.' * 500}y {W}",
    ";" * 20_000,
    "DROP QUERY a;" * 1000,
    "CREATE SINK s FOR " + ", ".join(f"q{i}" for i in range(1000)) + " WITH (format = 'console')",
    "INSERT INTO " * 5000,
    "\ufeff" * 10,
    "'" * 9999,
    "--" * 50_000,
    "/*" * 20_000,
    "\\" * 10_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:40]))
def test_hostile_text(text: str) -> None:
    reads_or_refuses(text)
