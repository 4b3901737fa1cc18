from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from muntin.engine.rows.stage_a import StageA
from muntin.errors import WindowError
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.windows import (
    SLICINGS,
    SliceManager,
    Window,
    compose,
    edge_after,
    edge_until,
    pairs,
)
from windows.strategies import brute_edges, is_edge, slicings, windows


def test_edges_of_two_windows_come_in_order_and_once() -> None:
    # "On-the-Fly Sharing for Streamed Aggregation", Figure 3, on the fly
    #  W[18, 15]  |------------|--|------------|--|------------|--|
    #  W[12, 9]   |------|--|------|--|------|--|------|--|------|--|
    manager = SliceManager([Window(18, 15), Window(12, 9)])
    assert [manager.advance() for _ in range(12)] == [6, 9, 12, 15, 18, 24, 27, 30, 33, 36, 42, 45]
    assert manager.position == 45


def test_a_window_added_on_the_way_is_aligned_to_the_epoch() -> None:
    #  W[10, 10]  0---------10--------20--------30
    #  W[4, 4]         added ^ ,12--16--20--24
    manager = SliceManager([Window(10, 10)])
    assert manager.advance() == 10
    manager.add(Window(4, 4))
    assert [manager.advance() for _ in range(4)] == [12, 16, 20, 24]


def test_a_window_added_at_its_own_edge_waits_for_the_next() -> None:
    manager = SliceManager([Window(10, 10)])
    assert manager.advance() == 10
    manager.add(Window(5, 5))
    assert manager.advance() == 15


def test_a_window_that_leaves_takes_only_its_own_edges() -> None:
    #  W[10, 10]           10        20        30
    #  W[5, 5]        5    10   15   20  gone
    manager = SliceManager([Window(10, 10), Window(5, 5)])
    assert [manager.advance() for _ in range(2)] == [5, 10]
    manager.remove(Window(5, 5))
    assert [manager.advance() for _ in range(2)] == [20, 30]


def test_equal_windows_count() -> None:
    manager = SliceManager([Window(5, 5), Window(5, 5)])
    manager.remove(Window(5, 5))
    assert manager.advance() == 5
    assert manager.windows == (Window(5, 5),)


def test_windows_with_equal_edges_share_them() -> None:
    manager = SliceManager(Window(18 + 15 * i, 15, offset=30 * i) for i in range(100))
    assert len(manager) == 100
    assert manager.classes == ((15, 0), (15, 12))


def test_seek_gives_the_first_edge_at_or_after() -> None:
    manager = SliceManager([Window(18, 15)])
    manager.seek(12)
    assert (manager.peek(), manager.advance(), manager.advance()) == (12, 12, 15)
    manager.seek(13)
    assert manager.advance() == 15
    manager.seek(-4)
    assert (manager.advance(), manager.advance(), manager.advance()) == (-3, 0, 12)


def test_seek_over_a_thousand_years() -> None:
    manager = SliceManager(Window(f"{i + 7} ms", f"{i + 1} ms") for i in range(50))
    manager.seek(1000 * 365 * 86_400_000_000)
    assert manager.advance() == 1000 * 365 * 86_400_000_000


def test_windows_that_never_share_a_short_period() -> None:
    primes = (9973, 9967, 9949, 9941, 9931, 9929, 9923)
    manager = SliceManager(Window(prime + 5, prime) for prime in primes)
    assert [manager.advance() for _ in range(3)] == [9918, 9923, 9924]
    assert len(manager.edges(10**15, 10**15 + 10_000)) == pytest.approx(2 * len(primes), abs=2)


def test_windows_that_come_and_go_leave_nothing_behind() -> None:
    manager = SliceManager([Window(10, 10)])
    for i in range(1000):
        manager.add(Window(3, 10**9, offset=i))
        manager.remove(Window(3, 10**9, offset=i))
    assert manager.classes == ((10, 0),)
    assert len(pickle.dumps(manager)) < 1000


def test_it_cuts_by_the_edge_classes_of_plans() -> None:
    # The same classes as a plan's, and rows cut by them as stage A cuts rows.
    text = "SELECT sum(v) FROM s [RANGE 18 SLIDE 15]; SELECT max(v) FROM s [RANGE 12 SLIDE 9]"
    schema = pa.schema({"ts": pa.int64(), "v": pa.int64()})
    for slicing in ("panes", "pairs"):
        plan = build_plan(queries(text), schema, "ts", slicing=slicing)
        manager = SliceManager([final.window for final in plan.finals], slicing)
        assert plan.slicings[0].classes == manager.classes
        rows = pa.table({"ts": range(-40, 90), "v": range(130)}, schema)
        (made,) = StageA(plan)(rows).partials
        assert np.unique(made.starts).tolist() == sorted(set(manager.cut(np.arange(-40, 90))))


@given(st.lists(windows(), min_size=1, max_size=5), slicings, st.integers(-200, 200))
def test_a_slice_starts_at_the_last_edge_and_ends_at_the_next(
    chosen: list[Window], slicing: str, t: int
) -> None:
    manager = SliceManager(chosen, slicing, position=t)
    starts = manager.cut(np.array([t, manager.peek() - 1, manager.peek()]))
    until = edge_until(manager.classes, t)
    assert starts.tolist() == [until, until, edge_after(manager.classes, t)]


@given(st.lists(windows(), min_size=1, max_size=5), slicings, st.integers(-200, 200))
def test_edges_and_advance_agree_with_the_definition(
    chosen: list[Window], slicing: str, lo: int
) -> None:
    manager = SliceManager(chosen, slicing)
    expected = brute_edges(chosen, slicing, lo, lo + 100)
    assert manager.edges(lo, lo + 100).tolist() == expected
    manager.seek(lo)
    assert [manager.advance() for _ in expected] == expected


@given(st.lists(windows(9), min_size=1, max_size=3))
def test_on_the_fly_equals_explicit_composition(chosen: list[Window]) -> None:
    composed = compose(*map(pairs, chosen))
    manager = SliceManager(chosen, position=composed.phase)
    expected = [composed.phase + edge for edge in composed.edges]
    assert [manager.advance() for _ in expected] == expected


class ManagerMachine(RuleBasedStateMachine):
    """Any order of calls, against a list of windows and a position."""

    def __init__(self) -> None:
        super().__init__()
        self.manager = SliceManager()
        self.windows: list[Window] = []
        self.position = 0

    @rule(window=windows(15))
    def add(self, window: Window) -> None:
        self.manager.add(window)
        self.windows.append(window)

    @precondition(lambda self: self.windows)
    @rule(data=st.data())
    def add_again(self, data: st.DataObject) -> None:
        self.add(data.draw(st.sampled_from(self.windows)))

    @precondition(lambda self: self.windows)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        window = data.draw(st.sampled_from(self.windows))
        self.manager.remove(window)
        self.windows.remove(window)

    @rule(t=st.integers(-100, 100))
    def seek(self, t: int) -> None:
        self.manager.seek(t)
        self.position = t - 1

    @precondition(lambda self: self.windows)
    @rule()
    def advance(self) -> None:
        expected = self.position + 1
        while not any(is_edge(window, "pairs", expected) for window in self.windows):
            expected += 1
        assert self.manager.peek() == expected
        assert self.manager.advance() == expected
        self.position = expected

    @rule()
    def pickle(self) -> None:
        self.manager = pickle.loads(pickle.dumps(self.manager))

    @invariant()
    def position_and_windows_agree(self) -> None:
        assert self.manager.position == self.position
        assert len(self.manager) == len(self.windows)


TestManagerMachine = ManagerMachine.TestCase


def test_golden_messages() -> None:
    manager = SliceManager([Window(18, 15)])
    cases = [
        (
            lambda: SliceManager().peek(),
            "there are no windows, so no edges\nHint: add a window first",
        ),
        (
            lambda: manager.remove(Window(18, 10)),
            "Window(18, 10) is not among the windows\nHint: remove a window once per add",
        ),
        (
            lambda: manager.add(Window("18 s", "15 s")),
            (
                "Window('18 seconds', '15 seconds') does not measure what Window(18, 15) does\n"
                "Hint: windows over one stream all use durations, plain numbers, or rows"
            ),
        ),
        (
            lambda: manager.add(Window(18)),
            "Window(18) has no periodic edges\nHint: give it a slide in its own measure",
        ),
        (
            lambda: SliceManager(slicing="pair"),
            "unknown slicing 'pair'\nHint: did you mean pairs?",
        ),
    ]
    for refused, message in cases:
        with pytest.raises(WindowError) as error:
            refused()
        assert str(error.value) == message
    assert manager.windows == (Window(18, 15),)


def test_every_slicing_has_a_name_that_stays() -> None:
    assert SLICINGS == ("panes", "pairs", "cutty")
