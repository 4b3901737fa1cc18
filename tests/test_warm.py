"""Kernels compiled ahead: after it, fresh processes compile nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from muntin import _cache, _compiled

TESTS = Path(__file__).parent


def run(script: str, **environment: str) -> str:
    """What a fresh process prints."""
    paths = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


WARM = """
from muntin.warm import warm
list(warm(1))
"""
# Not what `warm` runs: queries of benchmarks, the demo and README, random ones of every kind.
CALLS = """
import json, random
import muntin
import numpy as np
import pyarrow as pa
from numba.core import event
from muntin import _compiled as compiled
from muntin_bench.planning import cold, workloads
from muntin.cli.demo_measure import draw
from muntin.testing import trades
from oracle.random_queries import queries
from oracle.random_streams import stream
from operators.test_random_plans import check

class Names(event.Listener):
    found = []
    def on_start(self, event):
        if id(event.data["dispatcher"]) in compiled._watch.kernels:
            self.found.append(f"{event.data['dispatcher'].py_func.__name__}{event.data['args']}")
    def on_end(self, event):
        pass

event.register("numba:compile", Names())
for start in cold.STARTS[:2]:
    muntin.aggregate(workloads.rows(start.rows), start.queries(), time="ts")
data = trades(20_000)
muntin.aggregate(data, ";".join(each.sql() for each in draw(256, 1)), time="ts")
muntin.aggregate(data.to_pandas(), "SELECT symbol, sum(price * vol) / sum(vol) AS v FROM t "
    "[RANGE '20 minutes' SLIDE '20 minutes'] GROUP BY symbol", time="ts")
values = pa.table({"ts": np.arange(150_000), "v": np.random.default_rng(0).random(150_000)})
muntin.aggregate(values, "SELECT mode(v) AS m, count(DISTINCT v) AS n FROM t "
    "[RANGE 160000 SLIDE 80000]", time="ts")
for seed in range(6):
    rng = random.Random(seed)
    rows = stream(rng)
    muntin.aggregate(rows, ";".join(query.sql for query in queries(rng)), time="ts")
    check(seed, plans=1)
print(json.dumps(Names.found))
assert compiled.compilations() == len(Names.found)
"""


def compiled_by_calls(folder: Path) -> list[str]:
    """The kernels that these calls compile beside those that are there; none of them is kept."""
    given = folder / "given"
    given.mkdir(parents=True)
    for path in _compiled.kernel_files():
        if not (given / path.name).exists():
            (given / path.name).symlink_to(path.absolute())
    own = {_compiled.VARIABLE: str(given), "NUMBA_CACHE_DIR": str(folder / "own")}
    # What is compiled is also told, after what is printed.
    printed = next(line for line in run(CALLS, **own).splitlines() if line.startswith("["))
    found: list[str] = json.loads(printed)
    return found


def test_nothing_is_compiled_after_it(tmp_path: Path) -> None:
    if compiled_by_calls(tmp_path / "as set up"):
        # Sources may have changed since then.
        run(WARM)
        assert compiled_by_calls(tmp_path / "after it") == []


KERNEL = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(message)s")
from muntin import _compiled as compiled
compiled._PATIENCE = 0.0
sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else "")
@compiled.compiled
def inner(x):
    return x + 1
@compiled.compiled
def outer(x):
    return inner(x) * 2
assert compiled.compilations() == 0
assert outer(1) == 4
assert compiled.compilations() == 2
assert outer(2) == 6
assert compiled.compilations() == 2
outer(1.5)
assert compiled.compilations() == 4
"""


def test_compiling_is_counted_and_told_once(tmp_path: Path) -> None:
    """Where a kernel calls another, both are compiled; the types of its arguments tell them."""
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    printed = run(f"exec(compile(open({str(path)!r}).read(), {str(path)!r}, 'exec'))")
    assert printed.count("compiling kernels for their first use") == 1
    assert "muntin doctor --warm" in printed


def test_a_package_that_cannot_be_written_has_one_folder_for_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The driver keeps kernels where workers are told to look."""
    from muntin.spark.environment.settings import kernel_cache

    monkeypatch.setenv("MUNTIN_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(_cache, "_is_package_writable", lambda: False)
    kernel = _compiled.compiled(_increment)
    assert kernel(1) == 2
    files = list(tmp_path.rglob("*.nbc"))
    assert [file.name.split("-")[0] for file in files] == ["test_warm._increment"]
    folder = kernel_cache(is_local=True)
    assert folder == str(tmp_path / "kernels")
    assert files[0].is_relative_to(folder)


def _increment(x: int) -> int:
    return x + 1
