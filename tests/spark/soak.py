"""Runs a stream of thousands of small batches, and checks that nothing grows with their number.

Run it with ``python tests/spark/soak.py BATCHES [FROM] [NAME=VALUE ...]``: what is held after
BATCHES batches is compared with what was held after FROM of them (a fifth of them unless said
otherwise), by which time everything is loaded, compiled and in use. Settings of Spark's may
follow. It takes a while: half an hour for 5,000 batches on a quiet machine.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent
BATCHES, STRETCHES = 5000, 20
ROWS, LATENESS = 20, "2 seconds"
START, STEP = 1_700_000_000_000, 1000  # milliseconds of event time: the first batch, and each
NAP = 1.0  # seconds between two samples
MEMORY = ("driver", "workers", "jvm")
MAY_GROW = 1.10
# Files and threads come and go with upkeep by the minute; what leaks grows with the batches.
COUNTS_MAY_GROW = 3.0
PAGES_PER_MEGABYTE = (1 << 20) // os.sysconf("SC_PAGE_SIZE")
QUERY = """
CREATE QUERY q{0} AS SELECT k, sum(v) AS total, count(*) AS n, max(v) AS largest
  FROM numbers [RANGE '{1} seconds' SLIDE '{2} seconds'] WHERE v > {0} GROUP BY k;
"""
QUERIES = "".join(QUERY.format(n, 10 * (n + 2), 5 * (1 + n % 4)) for n in range(12))


@dataclass(frozen=True)
class Sample:
    """What the processes and folders of a run hold: megabytes in memory, and counts.

    ``heap`` is what the JVM has taken for objects, a part of ``jvm``; ``workers`` adds up the
    processes that Spark forks, so what they share is counted for each.
    """

    driver: float
    workers: float
    jvm: float
    heap: float
    descriptors: float
    threads: float
    checkpoint: float
    sink: float
    state: float


HEADINGS = {
    "driver": "driver MB",
    "workers": "workers MB",
    "jvm": "JVM MB",
    "heap": "heap MB",
    "descriptors": "open files",
    "threads": "threads",
    "checkpoint": "checkpoint files",
    "sink": "sink files",
    "state": "state kB",
}
# The heap is part of the JVM's memory, and may be anything within that.
JUDGED = [name for name in HEADINGS if name != "heap"]


@dataclass(frozen=True)
class Stretch:
    """Some batches on end: the medians of their samples, and the time that each batch took."""

    batches: int
    sample: Sample
    seconds: float

    @classmethod
    def of(cls, batches: int, samples: list[Sample], seconds: float) -> Stretch:
        medians = {
            field.name: statistics.median(getattr(each, field.name) for each in samples)
            for field in fields(Sample)
        }
        return cls(batches, Sample(**medians), seconds)


class Watch:
    """Takes samples of a run on a local session: its driver is this process."""

    def __init__(self, spark: Any, run: Any, folder: Path) -> None:
        self._run, self._folder = run, folder
        self._jvm = spark.sparkContext._jvm
        self._java = int(self._jvm.java.lang.ProcessHandle.current().pid())

    def sample(self) -> Sample:
        workers = list(descendants(self._java))
        everyone = [os.getpid(), self._java, *workers]
        return Sample(
            resident(os.getpid()),
            sum(map(resident, workers)),
            resident(self._java),
            self._jvm.java.lang.Runtime.getRuntime().totalMemory() / (1 << 20),
            sum(entries(each, "fd") for each in everyone),
            sum(entries(each, "task") for each in everyone),
            files_in(self._folder / "ck"),
            files_in(self._folder / "out"),
            self._run.progress().state_bytes / 1000,
        )

    def stretches(self, batches: int, size: int) -> Iterator[Stretch]:
        """One stretch after the other, as their batches come to their end."""
        done, begun = self._run.progress().batches, time.monotonic()
        samples: list[Sample] = []
        while done < batches:
            if self._run.await_termination(NAP):
                raise AssertionError(f"the run ended: {self._run.progress()}")
            samples.append(self.sample())
            now, count = time.monotonic(), self._run.progress().batches
            if count // size > done // size:
                yield Stretch.of(count, samples, (now - begun) / (count - done))
                done, begun, samples = count, now, []


def descendants(number: int) -> Iterator[int]:
    """The processes that a process has started, and those that they have."""
    with suppress(OSError):
        for path in Path(f"/proc/{number}/task").glob("*/children"):
            for child in map(int, path.read_text().split()):
                yield child
                yield from descendants(child)


def resident(number: int) -> float:
    """The megabytes that a process has in memory."""
    with suppress(OSError):
        return int(Path(f"/proc/{number}/statm").read_text().split()[1]) / PAGES_PER_MEGABYTE
    return 0.0


def entries(number: int, kind: str) -> int:
    """How many threads (task) or open files (fd) a process has."""
    with suppress(OSError):
        return len(os.listdir(f"/proc/{number}/{kind}"))
    return 0


def files_in(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


def stream(spark: Any) -> Any:
    """A few rows in every batch, and a batch as soon as the last one has ended."""
    source = spark.readStream.format("rate-micro-batch").options(
        rowsPerBatch=ROWS, numPartitions=1, startTimestamp=START, advanceMillisPerBatch=STEP
    )
    numbers = source.load()
    return numbers.selectExpr(
        "timestamp AS ts", "value % 10 AS k", "CAST(value % 1000 AS DOUBLE) AS v"
    )


def soak(folder: Path, batches: int, size: int, config: Mapping[str, str]) -> Iterator[Stretch]:
    from muntin import sinks
    from muntin.api import run
    from muntin.spark import session, stop

    spark = session("soak", master="local[2]", config=config)
    try:
        with run(
            stream(spark),
            QUERIES,
            lateness=LATENESS,
            sink=sinks.parquet(folder / "out"),
            checkpoint=folder / "ck",
        ) as started:
            yield from Watch(spark, started, folder).stretches(batches, size)
    finally:
        stop(spark)


def table_line(*values: object) -> str:
    widths = (len(text) for text in ("batches", *HEADINGS.values(), "ms per batch"))
    return "  ".join(f"{value:>{width}}" for value, width in zip(values, widths, strict=True))


def verdict(before: Stretch, after: Stretch) -> list[str]:
    """What grew by more than it may; says how everything went."""
    grown = []
    for name in JUDGED:
        then, now = getattr(before.sample, name), getattr(after.sample, name)
        is_grown = now > then * (MAY_GROW if name in MEMORY else COUNTS_MAY_GROW)
        grown += [name] if is_grown else []
        print(
            f"{HEADINGS[name]}: {then:,.0f} after {before.batches:,} batches, {now:,.0f} after "
            f"{after.batches:,}, {now / max(then, 1) - 1:+.1%}{' TOO MUCH' if is_grown else ''}"
        )
    return grown


def main(batches: int = BATCHES, first: int | None = None, **config: str) -> int:
    """Run the batches; 1 if anything grew by more than it may after the first of them."""
    first = first or batches // 5
    found = []
    print(table_line("batches", *HEADINGS.values(), "ms per batch"), flush=True)
    with tempfile.TemporaryDirectory(prefix="muntin-soak-") as name:
        for stretch in soak(Path(name), batches, max(batches // STRETCHES, 1), config):
            values = (round(getattr(stretch.sample, name)) for name in HEADINGS)
            print(table_line(stretch.batches, *values, round(1000 * stretch.seconds)), flush=True)
            found.append(stretch)
    before = next(each for each in found if each.batches >= first)
    grown = verdict(before, found[-1])
    print(
        f"these grew by more than they may: {', '.join(grown)}"
        if grown
        else "nothing grew with the batches"
    )
    return 1 if grown else 0


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    numbers = [int(each) for each in sys.argv[1:] if each.isdigit()]
    settings = dict(each.split("=", 1) for each in sys.argv[1:] if not each.isdigit())
    sys.exit(main(*numbers, **settings))
