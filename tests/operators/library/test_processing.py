"""Negative tuples, direct and by update pattern: the same answers as recomputation."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from muntin.errors import DataError, WindowError
from muntin.operators.library import MODES, process

LEGAL = [
    (query, mode)
    for query in ("join", "distinct", "absence")
    for mode in MODES
    if (query, mode) != ("absence", "direct")
]


def random_tuples(seed):
    random = np.random.default_rng(seed)
    count = random.integers(1, 60)
    times = np.sort(random.integers(0, 100, count))
    links, keys = random.integers(0, 2, count), random.integers(0, 4, count)
    return times, links, keys, int(random.integers(1, 40)), int(random.integers(1, 12))


def answers(query, times, links, keys, window):
    """What is shown at every instant, from the definition."""
    found = Counter()
    for instant in range(200):
        alive = (times <= instant) & (instant < times + window)
        left = np.flatnonzero(alive & (links == 0)).tolist()
        right = np.flatnonzero(alive & (links == 1)).tolist()
        if query == "join":
            shown = [(a, b) for a in left for b in right if keys[a] == keys[b]]
        elif query == "distinct":
            shown = sorted(set(keys[alive].tolist()))
        else:
            present = set(keys[right].tolist())
            shown = [(a, -1) for a in left if keys[a] not in present]
        found.update((instant, each) for each in shown)
    return found


@pytest.mark.parametrize(("query", "mode"), LEGAL)
def test_the_answer_at_every_instant(query, mode):
    for seed in range(12):
        times, links, keys, window, partitions = random_tuples(seed)
        for scanning, hash_lists in itertools.product((False, True), (None, 1, 3)):
            run = process(
                query, mode, times, links, keys, window,
                partitions=partitions, scanning=scanning, hash_lists=hash_lists,
                eager=seed % 2 == 0, most=5000,
            )  # fmt: skip
            found = Counter(
                (instant, int(keys[left]) if query == "distinct" else (left, right))
                for left, right, start, end in run.rows.tolist()
                for instant in range(start, end)
            )
            assert found == answers(query, times, links, keys, window)


@pytest.mark.parametrize("mode", ["nt", "upa"])
@pytest.mark.parametrize("absence_up", [True, False])
def test_pairs_while_a_third_window_has_none_of_their_key(mode, absence_up):
    for seed in range(12):
        times, _, keys, window, partitions = random_tuples(seed)
        links = np.random.default_rng(seed).integers(0, 3, len(times))
        expected = Counter()
        for instant in range(200):
            alive = (times <= instant) & (instant < times + window)
            left, hiding, right = (np.flatnonzero(alive & (links == i)).tolist() for i in range(3))
            hidden = {keys[each] for each in hiding}
            expected.update(
                (instant, (a, b))
                for a in left
                for b in right
                if keys[a] == keys[b] and keys[a] not in hidden
            )
        for scanning in (False, True):
            run = process(
                "absence_join", mode, times, links, keys, window,
                partitions=partitions, scanning=scanning, absence_up=absence_up, most=5000,
            )  # fmt: skip
            found = Counter(
                (instant, (left, right))
                for left, right, start, end in run.rows.tolist()
                for instant in range(start, end)
            )
            assert found == expected


def test_only_negative_tuples_announce_what_everybody_knows():
    times, links, keys, window, _ = random_tuples(3)
    runs = {mode: process("join", mode, times, links, keys, window) for mode in MODES}

    assert runs["nt"].negatives > 0
    assert runs["direct"].negatives == runs["upa"].negatives == 0


def test_a_distinct_by_update_pattern_keeps_at_most_twice_its_output():
    random = np.random.default_rng(5)
    times, keys = np.arange(5000), random.integers(0, 50, 5000)
    links = np.zeros(5000, dtype=np.int64)
    upa = process("distinct", "upa", times, links, keys, 1000)
    nt = process("distinct", "nt", times, links, keys, 1000)

    assert upa.peak <= 2 * 50
    assert nt.peak >= 1000


@pytest.mark.parametrize("partitions", [1, 2, 10, 500])
def test_distinct_over_pauses_longer_than_its_calendar(partitions):
    random = np.random.default_rng(11)
    # Pauses of a part of a window, of nearly two and of many, and tuples of one instant.
    times = np.cumsum(random.choice([0, 1, 3, 19, 40, 1000], 400))
    keys, links = random.integers(0, 6, 400), np.zeros(400, dtype=np.int64)
    runs = {
        mode: process("distinct", mode, times, links, keys, 20, partitions=partitions).rows
        for mode in MODES
    }
    pieces = {mode: sorted(map(tuple, rows.tolist())) for mode, rows in runs.items()}

    assert pieces["upa"] == pieces["nt"] == pieces["direct"]
    for key in range(6):
        lived = sorted((start, end) for at, _, start, end in pieces["upa"] if keys[at] == key)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(lived))


def test_a_tuple_with_which_nothing_ends_costs_one_look():
    random = np.random.default_rng(5)
    times, keys = np.arange(60_000), random.integers(0, 50, 60_000)
    links = np.zeros(60_000, dtype=np.int64)
    upa = process("distinct", "upa", times, links, keys, 20_000, partitions=100)

    # One per tuple, one per partition that begins, and a few per piece: put in, and taken out.
    assert 60_000 <= upa.looked <= 60_000 + 300 + 10 * len(upa.rows)


def test_a_distinct_by_negative_tuples_announces_every_end():
    random = np.random.default_rng(5)
    times, keys = np.arange(3000), random.integers(0, 50, 3000)
    run = process("distinct", "nt", times, np.zeros(3000, dtype=np.int64), keys, 1000)
    ended = np.count_nonzero(run.rows[:, 3] <= times[-1])

    # Of the window for each tuple, and of the operator for each piece.
    assert run.negatives == 2000 + ended


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("absence", "direct"), DataError, "direct cannot process absence"),
        (("absence_join", "direct"), DataError, "direct cannot process absence_join"),
        (("union", "nt"), DataError, "'union' is not a query"),
        (("join", "lazy"), DataError, "'lazy' is not a mode"),
    ],
)
def test_what_is_refused(arguments, error, message):
    one = np.array([0])
    with pytest.raises(error, match=message):
        process(*arguments, one, one, one, 5)


def test_input_that_is_refused():
    one = np.array([0, 0])
    with pytest.raises(WindowError, match="1 or more"):
        process("join", "nt", one, one, one, 0)
    with pytest.raises(DataError, match="in order of time"):
        process("join", "nt", np.array([2, 1]), one, one, 5)
    with pytest.raises(DataError, match="links 0 or 1"):
        process("join", "nt", one, np.array([0, 2]), one, 5)
    with pytest.raises(DataError, match="links 0, 1 or 2"):
        process("absence_join", "nt", one, np.array([0, 3]), one, 5)
    links = np.array([0, 2] * 4)
    with pytest.raises(DataError, match="more than 3 results"):
        process("absence_join", "nt", np.zeros(8, int), links, np.zeros(8, int), 5, most=3)
    with pytest.raises(DataError, match="more than 3 results"):
        process("join", "upa", np.zeros(8, int), np.array([0, 1] * 4), np.zeros(8, int), 5, most=3)
    with pytest.raises(DataError, match="more than 3 results"):
        process("absence", "upa", np.zeros(8, int), np.zeros(8, int), np.zeros(8, int), 5, most=3)
    assert not len(process("join", "upa", one[:0], one[:0], one[:0], 5).rows)
    assert not len(process("distinct", "upa", one[:0], one[:0], one[:0], 5).rows)
    assert not len(process("absence", "nt", one[:0], one[:0], one[:0], 5).rows)
