"""Processes that are killed while they write, commit and compact, and readers beside them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from muntin import sinks
from sinks import stream_of_results as stream

BATCHES = 20
VICTIM = Path(__file__).with_name("victim.py")
# Each of its processes is started and killed several times.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_or_twice_after_kills(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "out"
    command = [sys.executable, VICTIM, folder, str(seed), str(BATCHES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 3
    assert stream.assert_whole(folder) == BATCHES - 1
    sink = sinks.parquet(folder)
    sink.recover(BATCHES - 1, run="the run")
    written = {path.relative_to(folder).as_posix() for path in folder.glob("*/*.parquet")}
    assert written == sink._log.referenced()
    assert not list(folder.glob("**/.tmp-*"))


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
import stream_of_results as stream
from muntin.sinks import parquet
sink = parquet(sys.argv[1], compact_every=None)
print("ready", flush=True)
for batch in range(60):
    stream.run_batch(sink, batch)
    if batch % 2:
        sink.compact()
"""


def test_readers_beside_a_compaction_see_each_row_once(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    sinks.parquet(folder).writer()
    command = [sys.executable, "-c", WRITER, folder, str(VICTIM.parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        seen, looks = -1, 0
        while process.poll() is None:
            for query in stream.QUERIES:
                seen = max(seen, _check(folder, query))
            looks += 1
        assert process.returncode == 0
    assert looks > 3
    assert stream.assert_whole(folder) == 59


def _check(folder: Path, query: str) -> int:
    """Each look at a query is its rows up to some batch, each once."""
    output = sinks.read(folder)
    if query not in output:
        return -1
    rows = stream.rows_of(output[query])
    last = rows[-1][0]
    assert rows == stream.expected(query, last)
    return last
