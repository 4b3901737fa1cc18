"""What is not measured lies on a line through what is, within reason."""

from __future__ import annotations

import pytest

from muntin_bench.peers.growth import Growth


def grown(*points: tuple[float, float]) -> Growth:
    growth = Growth()
    for work, seconds in points:
        growth.add(work, seconds)
    return growth


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], 0.0),
        ([(2, 1.0)], 50.0),
        # A part that is the same for all sizes is counted once.
        ([(1, 3.0), (16, 6.0)], 6.0 + 84 * 0.2),
        # Sizes that took the same time, or less, are noise.
        ([(5, 10.0), (10, 10.0)], 10.0 + 90 * 0.5),
        ([(5, 10.0), (10, 9.0)], 9.0 + 90 * 0.45),
        ([(5, 1.0), (10, 10.0)], 100.0),
    ],
)
def test_beyond_what_was_measured(points: list[tuple[float, float]], expected: float) -> None:
    assert grown(*points).at(100) == pytest.approx(expected)


def test_how_much_is_done_in_a_minute() -> None:
    growth = grown((1, 3.0), (16, 6.0))
    assert growth.at(growth.within(60)) == pytest.approx(60)
    assert growth.last == 16
    assert Growth().last == 0
