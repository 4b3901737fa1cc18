"""The benchmark of streams, at a size that takes no time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muntin_bench import runner
from muntin_bench.report import Report
from muntin_bench.streaming import predicates, slides
from muntin_bench.streaming.benchmark import FULL, PARTS, QUICK, Scale, run_at
from muntin_bench.streaming.carriers import CARRIED_QUICK, Head, Sizes, move_on
from muntin_bench.streaming.checkpoints import Written
from muntin_bench.streaming.own import registered
from muntin_bench.streaming.predicates import WORKLOADS, Asked
from muntin_bench.streaming.slides import KINDS, Windows, slide_costs

TINY = Scale(
    Windows(6, 5, 20),
    Windows(1, 20, 40, ticks=2),
    6,
    Asked(3, 8, rows=5_000, repeats=1),
    None,
    CARRIED_QUICK,
)


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slides, "LATENCY", False)
        yield run_at(TINY)


def test_it_reports_every_promise(report: Report) -> None:
    slid, alone, ranges, asked = report.sections
    assert (len(slid.rows), len(alone.rows)) == (2 * len(KINDS), 2)
    assert len(ranges.rows) == len(KINDS)
    assert len(asked.rows) == 4 * len(WORKLOADS)
    sides = {row[0].split(": ")[1].split(",")[0] for row in asked.rows}
    assert sides == {"polars", "DuckDB", "Muntin"}
    assert len(report.checks) == 2 * (len(KINDS) + 1) + len(KINDS) + 3
    assert all(check.value > 0 for check in report.checks)


def test_parts_are_measured_one_by_one() -> None:
    assert tuple(PARTS) == runner.PARTS["streaming"]
    (section,) = run_at(TINY, "alone").sections
    assert "1 group" in section.title


def test_aggregations_along_time_keep_their_promise(report: Report) -> None:
    counted = [check for check in report.checks if "aggregations along time" in check.promise]
    assert len(counted) == 2 * len(KINDS) + 1
    assert all(check.met for check in counted), counted


def test_both_sides_slide_through_whole_windows() -> None:
    with registered():
        costs, ratio, _ = slide_costs(KINDS[0], Windows(3, 4, 20))
    assert [cost.slides for cost in costs] == [20, 20]
    assert [cost.entries for cost in costs] == [60, 60]
    assert [cost.answers for cost in costs] == [60, 60]
    assert ratio.low <= ratio.value <= ratio.high


def test_windows_of_all_questions_differ() -> None:
    for scale in (FULL, QUICK):
        rows = predicates.load(Asked(1, 1, rows=1_000))[1]
        for workload in WORKLOADS:
            asked = workload.questions(scale.asked.many, rows)
            assert len({(each.range, each.slide) for each in asked}) == len(asked)
            assert asked[: scale.asked.few] == workload.questions(scale.asked.few, rows)


def test_bytes_are_counted_when_a_file_is_written_again_or_gone(tmp_path: Path) -> None:
    written = Written(tmp_path)
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "b").write_bytes(b"123")
    assert written.look() == 8
    assert written.look() == 8
    (tmp_path / "a").unlink()
    (tmp_path / "inner" / "b").write_bytes(b"4567")
    assert written.look() == 12


class Held(dict[str, bytes]):
    """Pieces in memory, and how many bytes were put there."""

    written = 0

    def put(self, name: str, data: bytes) -> None:
        self[name] = data
        self.written += len(data)

    def get(self, name: str) -> bytes:  # type: ignore[override]  # of a piece that is there
        return self[name]

    def drop(self, name: str) -> None:
        del self[name]


@pytest.mark.parametrize("cached", [True, False])
def test_carriers_are_given_what_a_stream_writes(cached: bool) -> None:
    sizes = Sizes.of(groups=100_000, slices=10)
    held, head = Held(), None
    for _ in range(101):
        head = move_on(held, head, sizes, cached)
    assert isinstance(head, Head)
    first = sizes.base + 32 * (sizes.sealed // 32)
    # A base is written when news outweigh it, so they are written twice at most.
    assert held.written - first <= 100 * 2 * sizes.news
    assert sum(map(len, held.values())) <= first + sizes.base + sizes.news
