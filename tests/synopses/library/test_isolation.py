"""Isolation: the histories of chapter 7, and what reading by time to update survives."""

from __future__ import annotations

import random
from itertools import product

import pytest

from muntin.errors import DataError
from muntin.synopses.library.isolation import Window, classify, is_aborted, must_abort

HISTORIES = {
    "a": ("r0 w5 c5 w6 c6 r1 r2 r3 r4 cQ", (0, 2, 3, 4, 6), False, False, False),
    "b": ("r0 w5 c5 r1 w6 c6 r2 r3 r4 cQ", (0, 1, 2, 3, 4), True, False, False),
    "c": ("w5 c5 r0 r1 r2 r3 w6 c6 r4 cQ", (1, 2, 3, 4, 5), True, False, False),
    "d": ("w5 c5 r0 w6 c6 r1 r2 r3 r4 cQ", (2, 3, 4, 5, 6), True, True, True),
    "e": ("r4 w5 c5 r0 r3 r2 w6 c6 r1 cQ", (2, 3, 4, 5, 6), True, True, True),
    "f": ("r0 w5 c5 r1 r2 r3 w6 c6 r4 cQ", (0, 1, 2, 3, 4), True, False, False),
    "g": ("r0 w5 w6 c6 r1 r2 r3 r4 cQ c5", (0, 2, 3, 4, 6), False, False, True),
    "h": ("r0 r1 r2 r3 w9 r4 cQ c9", (5, 6, 7, 8, 9), True, True, False),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_histories_of_the_thesis(name):
    history, reads, ws, lws, cps = HISTORIES[name]
    found = classify(history, parts=5)

    assert (found.reads, found.ws, found.lws, found.cps) == (reads, ws, lws, cps)
    assert found.dirty == (name == "h")


def test_edges_of_the_serialisation_graph():
    assert (classify(HISTORIES["a"][0], 5).before, classify(HISTORIES["a"][0], 5).after) == (
        (6,),
        (5,),
    )
    assert classify(HISTORIES["d"][0], 5).before == (5, 6)


def small_schedules():
    for parts in (2, 3, 4, 5):
        for size in range(1, parts + 1):
            for length in range(size, size + 5):
                for steps in product("RW", repeat=length):
                    if steps.count("R") == size and steps[0] == steps[-1] == "R":
                        yield parts, size, steps


def test_reading_what_stays_longest_aborts_only_where_every_order_must():
    found = [
        (is_aborted(steps, parts, size, "ttu"), is_aborted(steps, parts, size, "oldest"), must)
        for parts, size, steps in small_schedules()
        for must in (must_abort(steps, size),)
    ]

    assert all(ttu == must for ttu, _, must in found)
    assert (len(found), sum(f[0] for f in found), sum(f[1] for f in found)) == (209, 112, 195)


@pytest.mark.parametrize("order", ["oldest", "ttu"])
@pytest.mark.parametrize("rescans", [False, True])
def test_what_a_scan_returns_is_the_window_at_its_end(order, rescans):
    draw = random.Random(7)
    window = Window(9, order, rescans=rescans)
    scans, ended = [], 0
    for _ in range(4000):
        if draw.random() < 0.04:
            window.move()
        elif draw.random() < 0.2 or not scans:
            scans.append(window.begin(draw.randint(1, 9)))
        else:
            scan = draw.choice(scans)
            window.step(scan)
            if scan.is_done:
                scans.remove(scan)
                ended += 1
                newest = window.newest
                assert sorted(scan.read) == list(range(newest - scan.size + 1, newest + 1))
    assert ended > 50
    assert rescans == (window.aborts == 0)


def test_what_is_refused():
    with pytest.raises(DataError, match="'x1' is not a step"):
        classify("x1 cQ", 1)
    with pytest.raises(DataError, match="does not read each of 2 parts once"):
        classify("r0 cQ", 2)
    with pytest.raises(DataError, match="1 to 3 parts, not 4"):
        Window(3).begin(4)
    with pytest.raises(DataError, match="1 part or more, not 0"):
        classify("w1 c1 cQ", 0)
