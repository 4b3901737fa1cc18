"""Who is compared: Muntin in several ways, and the peers, each with what it is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from muntin_bench.peers.environments import InstallError, find, pinned, provide
from muntin_bench.peers.process import Engine, engine

_LIGHT = ("duckdb", "polars")


@dataclass(frozen=True)
class Side:
    """One side: its adapter, the mode it runs in, and how much it is asked.

    A side with a limit of `rows` answers the first rows only, and its time is multiplied; one
    with a limit of `queries` answers no more at once. One that `shares` is always asked all.
    """

    name: str
    adapter: str
    mode: str = ""
    peer: str = ""
    cores: int = 2
    rows: int | None = None
    queries: int | None = None
    shares: bool = False

    @property
    def process(self) -> str:
        """What tells its process: modes that start a JVM share one, others fail on their own."""
        if self.peer in _LIGHT:
            return f"{self.adapter}-{self.mode}"
        return self.adapter if self.cores > 1 else f"{self.adapter}-one-core"


OURS = Side("Muntin, local", "muntin_local", shares=True)
ON_ONE_CORE = Side("Muntin, local, on one core", "muntin_local", cores=1, shares=True)
PLANNING = Side("Muntin, local: planning alone", "muntin_local", "plan", shares=True)
OURS_ON_SPARK = Side("Muntin on Spark", "muntin_spark", shares=True)
SPARK = Side("Spark window()", "spark", peer="spark")
SPARK_UNION = Side("Spark window(), union of all", "spark", "union", "spark")
FLINK = Side("Flink HOP", "flink", "stream", "flink")
FLINK_BATCH = Side("Flink HOP, batch runtime", "flink", "batch", "flink")
FLINK_SCAN = Side("Flink, reading only", "flink", "scan", "flink", shares=True)
DUCKDB = Side("DuckDB", "duckdb", peer="duckdb")
DUCKDB_SLICES = Side("DuckDB, slices by hand", "duckdb", "slices", "duckdb")
POLARS = Side("polars", "polars", peer="polars")
POLARS_SLICES = Side("polars, slices by hand", "polars", "slices", "polars")
PANDAS = Side("pandas", "pandas", peer="pandas")
BYTEWAX = Side("Bytewax", "bytewax", peer="bytewax", rows=20_000, queries=16)
PATHWAY = Side("Pathway", "pathway", peer="pathway", rows=20_000, queries=16)

# Parts of what other sides do, to explain their times: they answer nothing.
PARTIAL = (PLANNING, FLINK_SCAN)
# What Muntin does for one query, written out in a peer's own terms.
BY_HAND = (DUCKDB_SLICES, POLARS_SLICES)
SIDES = (
    OURS,
    ON_ONE_CORE,
    PLANNING,
    OURS_ON_SPARK,
    SPARK,
    SPARK_UNION,
    FLINK,
    FLINK_BATCH,
    FLINK_SCAN,
    DUCKDB,
    DUCKDB_SLICES,
    POLARS,
    POLARS_SLICES,
    PANDAS,
    BYTEWAX,
    PATHWAY,
)
# What is there without an installation, and Flink where it has been installed.
QUICK_PEERS = ("duckdb", "polars", "pandas", "spark")


@dataclass(frozen=True)
class Line:
    """A side that runs, with its process."""

    side: Side
    engine: Engine


@contextmanager
def started(
    sides: tuple[Side, ...], *, install: bool, folder: Path, say: Callable[[str], None]
) -> Iterator[tuple[list[Line], dict[str, str]]]:
    """The processes of all sides that can be had, and why others cannot."""
    lines: list[Line] = []
    missing: dict[str, str] = {}
    engines: dict[str, Engine] = {}
    with ExitStack() as stack:
        for side in sides:
            try:
                python = _python(side, install=install, say=say)
            except InstallError as error:
                missing[side.name] = error.message
                continue
            if side.process not in engines:
                log = folder / f"{side.process}.log"
                running = engine(side.adapter, python, cores=side.cores, log=log)
                engines[side.process] = stack.enter_context(running)
            lines.append(Line(side, engines[side.process]))
        yield lines, missing


def _python(side: Side, *, install: bool, say: Callable[[str], None]) -> Path:
    if not side.peer:
        return Path(sys.executable)
    found = find(side.peer)
    if found is not None:
        return found
    if not install:
        raise InstallError(
            f"{'=='.join(pinned(side.peer))} is not installed, and the quick run installs nothing",
            hint="run without --quick",
        )
    return provide(side.peer, say)
