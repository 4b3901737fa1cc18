"""The comparison with peers, from installing them to the report."""

from __future__ import annotations

import tempfile
from pathlib import Path

from muntin_bench.peers.environments import PINS, find
from muntin_bench.peers.measuring import PATIENCE, Measuring
from muntin_bench.peers.questions import FULL, QUICK, Scale, questions
from muntin_bench.peers.sides import QUICK_PEERS, SIDES, Side, started
from muntin_bench.peers.stream import FULL_STREAM, QUICK_STREAM, StreamScale, stream_section
from muntin_bench.peers.tables import Found, cores, left_out, plot, promises, table, ways
from muntin_bench.progress import step
from muntin_bench.report import Report

_REPEATS = 3
_ABOUT = (
    "from a Parquet file to all answers; engines started and warm, plans made in the time that "
    "is measured; on two cores unless said otherwise"
)


def run(quick: bool = False) -> Report:
    """Compare all answers, then time them; the quick run installs nothing."""
    return compare(
        QUICK if quick else FULL,
        chosen(quick=quick),
        QUICK_STREAM if quick else FULL_STREAM,
        install=not quick,
    )


def chosen(*, quick: bool) -> tuple[Side, ...]:
    """All sides; in a quick run those that need no installation, or have been installed."""
    if not quick:
        return SIDES
    return tuple(
        side
        for side in SIDES
        if not side.peer
        or side.peer in QUICK_PEERS
        or (side.peer == "flink" and find("flink") is not None)
    )


def compare(
    scale: Scale,
    sides: tuple[Side, ...],
    stream: StreamScale | None = None,
    *,
    install: bool,
    repeats: int = _REPEATS,
    patience: float = PATIENCE,
) -> Report:
    """Put all questions to all sides, and then the one about streams to Muntin and Spark."""
    found: list[Found] = []
    with tempfile.TemporaryDirectory(prefix="muntin-peers-") as name:
        folder = Path(name)
        with started(sides, install=install, folder=folder, say=step) as (lines, missing):
            for question in questions(scale):
                measuring = Measuring(question, lines, folder, repeats, patience)
                found.append(Found(question, measuring.run()))
    lacking = left_out(found, missing)
    versions = ", ".join(PINS[peer][0].replace("==", " ") for peer in PINS)
    return Report(
        "peers",
        f"{_ABOUT}; {versions}",
        sections=(
            *(section for each in found for section in (table(each), cores(each))),
            *([stream_section(stream)] if stream is not None else []),
            ways(found),
            *([lacking] if lacking else []),
        ),
        checks=tuple(promises(found)),
        plots=tuple(plot(each) for each in found if len(each.question.sizes) > 1),
        seeds=(0,),
        uses=("duckdb", "pyspark", "pandas"),
    )
