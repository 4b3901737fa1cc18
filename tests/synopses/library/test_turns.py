"""Queries that take turns at a moving window: what each discipline guarantees shows in numbers."""

from __future__ import annotations

from typing import get_args

import pytest

from muntin.errors import DataError
from muntin.synopses.library.turns import Discipline, Load, simulate

LOAD = Load(parts=40, period=1.0, groups=8)
ASKED = Load(parts=40, period=5.0, groups=20, one_time=1.0)


@pytest.mark.parametrize("discipline", get_args(Discipline))
def test_all_work_is_done_and_nothing_is_fresher_than_its_end(discipline: Discipline) -> None:
    found = simulate(discipline, ASKED, 60)
    assert found.executions > 50
    assert 55 <= len(found.responses) <= 60
    assert min(found.staleness) >= 0
    assert min(found.one_time_staleness) >= 0
    # A one-time query goes first: it takes the time of its own scan, and of one that is under way.
    assert max(found.responses) < 0.5
    assert found.gaps == pytest.approx(found.gaps, rel=1)
    if discipline in ("ttu", "lws", "rescan"):
        # What is read is the window at the end: never a movement behind.
        assert max(found.staleness) < ASKED.period + 0.1


def test_only_reading_the_oldest_first_aborts() -> None:
    aborts = {each: simulate(each, LOAD, 60).aborts for each in get_args(Discipline)}
    assert aborts.pop("lws") > 10
    assert set(aborts.values()) == {0}


def test_what_aborts_executes_less_and_waiting_makes_stale() -> None:
    found = {each: simulate(each, LOAD, 60) for each in get_args(Discipline)}
    assert found["lws"].throughput < 0.95 * found["ttu"].throughput
    assert found["ttu"].throughput > 0.96 * found["serial"].throughput
    stale = {each: found[each].mean("staleness") for each in found}
    assert stale["ttu"] < stale["serial"] < stale["ws"]


def test_what_is_refused() -> None:
    with pytest.raises(DataError, match="there is no discipline 'cps'"):
        simulate("cps", LOAD, 1)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="above 0"):
        simulate("ttu", Load(1, 0.0, 1), 1)
    with pytest.raises(DataError, match="above 0"):
        simulate("ttu", Load(1, 1.0, 1, one_time=0.0), 1)
    with pytest.raises(DataError, match="1 group of queries or more"):
        simulate("ttu", Load(1, 1.0, 0), 1)
