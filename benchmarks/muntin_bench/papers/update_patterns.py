"""Queries 1 to 4 of the 2006 thesis in three ways to process: Figures 3.8 to 3.15.

The thesis has a trace of connections, split into links, with one tuple per link and unit of time.
Ours is drawn so that what the text says of it holds at every window: the ftp join gives as many
results as tuples, the telnet join ten times as many, 2,000 sources or ten times as many pairs for
distinct, and 40% of the results of an absence end early. Query 4 joins what an absence leaves with
a third link, of which every fourth tuple is taken.

In queries 1 and 2 hash tables and calendar queues have ten lists each, as in the thesis, and
results are brought up to date with every tuple. Where keys are *apart*, every key has a list of its
own: what is left is the cost of compiled loops that hardly ever search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np

from muntin._typing import Ints
from muntin.operators.library import Processed, process
from muntin_bench.papers.claims import Claim, Part, at_least, at_most, near
from muntin_bench.report import Plot, Section


@dataclass(frozen=True)
class Way:
    """One line of a figure."""

    name: str
    mode: str
    partitions: int = 10
    scanning: bool = False
    absence_up: bool = True
    hash_lists: int | None = None
    eager: bool = False


# As the thesis sets them: ten lists, sorted partitions, results up to date with every tuple.
_LISTS = 10
NT = Way("NT", "nt", hash_lists=_LISTS)
DIRECT = Way("DIRECT", "direct", hash_lists=_LISTS, eager=True)
UPA10 = Way("UPA(10)", "upa", scanning=True, hash_lists=_LISTS, eager=True)
UPA50 = Way("UPA(50)", "upa", 50, scanning=True, hash_lists=_LISTS, eager=True)
# Keys apart; partitions that are looked through as they end, every twentieth of a window.
APART_NT, APART_DIRECT = Way("NT, keys apart", "nt"), Way("DIRECT, keys apart", "direct")
APART_UPA = Way("UPA(50), keys apart", "upa", 50)
# Partitions of a few results each, so that keeping them sorted costs nothing.
APART_FINE = Way("UPA(1000), keys apart", "upa", 1000)
SCANNING = Way("UPA(10), scanned for early ends", "upa", scanning=True)
INDEXED = Way("UPA(10), early ends by an index", "upa")
# Query 4: the absence above the join, or the join above the absence.
NT_UP, NT_DOWN = Way("NT", "nt"), Way("NT(join up)", "nt", absence_up=False)
ABSENCE_NT = Way("NT", "nt")
UPA_UP = Way("UPA(absence up)", "upa")
UPA_SCANNING = Way("UPA(absence up), scanned", "upa", scanning=True)

Times = Mapping[str, Sequence[float]]
_LINKS = 3
# Units of time that a trace spans at least, so that small windows are full most of the time.
_LEAST = 10_000
# Windows of queries 3 and 4 beside the others: compiled loops cross, if at all, far below 500.
_SMALL = (20, 100)
# Distinct values are few beside a window only in large ones: the thesis goes to 200,000 units.
# With ten lists such a window would take minutes, and a fifth of it is enough.
_LARGE, _APART = 5, 25


@dataclass(frozen=True)
class Trace:
    """Tuples in order of time."""

    times: Ints
    links: Ints
    keys: Ints


def trace(window: int, keys: int, links: int) -> Trace:
    """One tuple per link and unit, with uniform keys, for three windows or more."""
    count = links * max(3 * window, _LEAST)
    random = np.random.default_rng(window)
    times = np.arange(count, dtype=np.int64) // links
    found = Trace(times, np.arange(count, dtype=np.int64) % links, random.integers(0, keys, count))
    if links < _LINKS:
        return found
    # Of a third link, every fourth tuple.
    taken = (found.links < _LINKS - 1) | (found.times % 4 == 0)
    return Trace(found.times[taken], found.links[taken], found.keys[taken])


def figures(windows: Sequence[int], repeats: int) -> Part:
    """All of them, each with milliseconds per 1,000 tuples by window."""
    joins = [NT, DIRECT, UPA10, UPA50, APART_NT, APART_DIRECT, APART_UPA]
    ftp = _measure("join", windows, joins, lambda t: (t, 2), repeats)
    telnet = _measure("join", windows, joins, lambda t: (max(t // 10, 1), 2), repeats)
    every = [NT, DIRECT, UPA10, APART_NT, APART_FINE]
    # Without DIRECT, which would look at all results for each of many tuples.
    large, few_ways = [_LARGE * windows[-1]], [NT, UPA10, APART_NT, APART_FINE]
    largest, apart = [_APART * windows[-1]], [APART_NT, APART_FINE]
    sources, pairs, large_sources, large_pairs, many_sources, many_pairs = (
        _measure("distinct", spans, ways, shape, repeats)
        for spans, ways in ((windows, every), (large, few_ways), (largest, apart))
        for shape in (_sources, _pairs)
    )
    few = (*_SMALL, *windows)
    absent = _measure(
        "absence", few, [ABSENCE_NT, SCANNING, INDEXED], lambda t: (int(1.96 * t), 2), repeats
    )
    both = _measure(
        "absence_join",
        few,
        [NT_UP, NT_DOWN, UPA_UP, UPA_SCANNING],
        lambda t: (int(1.96 * t), 3),
        repeats,
    )
    shown = {
        "Figure 3.8: ftp, as many results as tuples": ftp,
        "Figure 3.9: telnet, ten times as many results": telnet,
        "Figure 3.10: distinct over 2,000 sources": sources,
        "Figure 3.11: distinct over 20,000 pairs": pairs,
        "Figure 3.10, large window: distinct over 2,000 sources": large_sources,
        "Figure 3.11, large window: distinct over 20,000 pairs": large_pairs,
        "Figure 3.10, largest window: distinct over 2,000 sources": many_sources,
        "Figure 3.11, largest window: distinct over 20,000 pairs": many_pairs,
        "Figure 3.14: absence with 40% of early ends": absent,
        "Figure 3.15: absence joined with a third link": both,
    }
    spans: dict[str, Sequence[int]] = dict.fromkeys(shown, windows)
    for title, times in shown.items():
        if "large window" in title:
            spans[title] = large
        elif "largest window" in title:
            spans[title] = largest
        elif times in (absent, both):
            spans[title] = few
    sections = [_section(title, spans[title], times) for title, times in shown.items()]
    space = _space(windows)
    sections.append(_section("Figures 3.12, 3.13: tuples and results kept", windows, space, ",.0f"))
    plots = tuple(
        Plot(
            title.split(":")[0].lower().replace(" ", "-").replace(".", "-").replace(",", ""),
            title,
            "window",
            "ms per 1,000 tuples",
            {
                name: tuple(zip(map(float, spans[title]), line, strict=True))
                for name, line in each.items()
            },
        )
        for title, each in shown.items()
    )
    claims = (
        *_join_claims(ftp, telnet),
        *_distinct_claims(sources, pairs, large_sources, large_pairs, space),
        *_apart_claims(ftp, telnet, many_sources, many_pairs),
        *_absence_claims(absent, both),
    )
    return Part(tuple(sections), claims, plots)


def _ratio(times: Times, slow: str, fast: str, at: int = -1) -> float:
    return times[slow][at] / times[fast][at]


def _join_claims(ftp: Times, telnet: Times) -> tuple[Claim, ...]:
    return (
        near("Figure 3.8", "NT over UPA(10), largest window", 2, _ratio(ftp, "NT", "UPA(10)"), 1.5),
        at_least("Figure 3.8", "DIRECT over UPA(10)", 1, _ratio(ftp, "DIRECT", "UPA(10)")),
        at_most("Figure 3.8", "DIRECT over NT", 1, _ratio(ftp, "DIRECT", "NT")),
        at_least("Figure 3.9", "NT over UPA(50), best window; theirs go up to 10", 2,
                 max(_ratio(telnet, "NT", "UPA(50)", at) for at in range(len(telnet["NT"])))),
        at_least("Figure 3.9", "UPA(10) over UPA(50), largest window", 2,
                 _ratio(telnet, "UPA(10)", "UPA(50)")),
        at_most("Figure 3.9", "UPA(10) over NT, smallest window", 1,
                _ratio(telnet, "UPA(10)", "NT", 0)),
        at_least("Figure 3.9", "DIRECT over NT", 1, _ratio(telnet, "DIRECT", "NT")),
        at_least("Figure 3.9", "DIRECT over UPA(50)", 2, _ratio(telnet, "DIRECT", "UPA(50)")),
    )  # fmt: skip


def _distinct_claims(
    sources: Times, pairs: Times, large_sources: Times, large_pairs: Times, space: Times
) -> tuple[Claim, ...]:
    return (
        near("Figure 3.10", "NT over UPA, window of 8,000 at full scale", 10,
             _ratio(sources, "NT", "UPA(10)"), 2.5),
        at_least("Figure 3.10", "NT over UPA, window of 40,000 at full scale", 10,
                 _ratio(large_sources, "NT", "UPA(10)")),
        at_least("Figure 3.10", "DIRECT over UPA", 10, _ratio(sources, "DIRECT", "UPA(10)")),
        near("Figure 3.11", "NT over UPA, window of 8,000 at full scale", 2,
             _ratio(pairs, "NT", "UPA(10)"), 1.5),
        at_least("Figure 3.11", "NT over UPA, window of 40,000 at full scale", 2,
                 _ratio(large_pairs, "NT", "UPA(10)")),
        at_least("Figure 3.11", "DIRECT over UPA", 2, _ratio(pairs, "DIRECT", "UPA(10)")),
        at_least("Figure 3.12", "NT's space over UPA's", 2, _ratio(space, "NT", "UPA")),
    )  # fmt: skip


def _apart_claims(
    ftp: Times, telnet: Times, many_sources: Times, many_pairs: Times
) -> tuple[Claim, ...]:
    """What is left of it where nothing is looked for; the thesis has no such numbers."""
    beyond = "Figures 3.8 to 3.11, keys apart"
    joins = APART_NT.name, APART_UPA.name
    values = APART_NT.name, APART_FINE.name
    return (
        at_least(beyond, "ftp: NT over UPA(50), largest window", 1, _ratio(ftp, *joins)),
        at_least(beyond, "telnet: NT over UPA(50), largest window", 1, _ratio(telnet, *joins)),
        at_least(beyond, "sources: NT over UPA(1000), window of 200,000 at full scale", 1,
                 _ratio(many_sources, *values)),
        at_least(beyond, "pairs: NT over UPA(1000), window of 200,000 at full scale", 1,
                 _ratio(many_pairs, *values)),
    )  # fmt: skip


def _absence_claims(absent: Times, both: Times) -> tuple[Claim, ...]:
    crossing = "Figure 3.14"
    return (
        at_most(
            crossing, "UPA that scans over NT at a window of 100", 1.1,
            _ratio(absent, SCANNING.name, "NT", 1),
        ),
        at_least(
            crossing, "UPA that scans over NT at the largest window", 1,
            _ratio(absent, SCANNING.name, "NT"),
        ),
        at_least(
            "Figure 3.15", "NT over NT(join up) at the largest window", 1,
            _ratio(both, NT_UP.name, NT_DOWN.name),
        ),
        at_least(
            "Figure 3.15", "UPA(absence up) over NT(join up) at the smallest window", 1,
            _ratio(both, UPA_UP.name, NT_DOWN.name, 0),
        ),
        at_least(
            "Figure 3.15", "NT(join up) over UPA(absence up) at the largest window", 1,
            _ratio(both, NT_DOWN.name, UPA_UP.name),
        ),
        at_most(
            "beyond the thesis", "UPA with an index over NT at the largest window", 1,
            _ratio(absent, INDEXED.name, "NT"),
        ),
    )  # fmt: skip


def _sources(_: int) -> tuple[int, int]:
    return 2000, 1


def _pairs(_: int) -> tuple[int, int]:
    return 20_000, 1


def _measure(
    query: str,
    windows: Sequence[int],
    ways: Sequence[Way],
    shape: Callable[[int], tuple[int, int]],
    repeats: int,
) -> dict[str, list[float]]:
    """Milliseconds per 1,000 tuples by way, once windows are full; answers are compared.

    As in the thesis: what the first window takes, in which nothing ends, is taken off. Ways take
    turns, so that what else the machine does falls on all of them.
    """
    found: dict[str, list[float]] = {way.name: [] for way in ways}
    for window in windows:
        keys, links = shape(window)
        rows = trace(window, keys, links)
        filling = _until(rows, window)
        expected: Ints | None = None
        rooms = {}
        for way in ways:
            # Compiles what is not yet compiled, and says how much room results take: to make more
            # room than that would cost more than the queries do.
            run = _run(query, way, rows, window, 20 * len(rows.times))
            answer = np.sort(run.rows[:, 3] * len(rows.times) + run.rows[:, 0])
            expected = answer if expected is None else expected
            assert np.array_equal(answer, expected), f"{query} by {way.name}"
            first = _run(query, way, filling, window, 20 * len(rows.times))
            # The pairs that query 4 keeps are more than its results, and fewer than tuples.
            of_pairs = query == "absence_join"
            rooms[way.name] = (
                1 + max(len(run.rows), of_pairs * len(rows.times)),
                1 + max(len(first.rows), of_pairs * len(filling.times)),
            )
        best = {way.name: (np.inf, np.inf) for way in ways}
        for _ in range(repeats):
            for way in ways:
                all_of, first_of = best[way.name]
                room, first_room = rooms[way.name]
                best[way.name] = (
                    min(all_of, _seconds(query, way, rows, window, room)),
                    min(first_of, _seconds(query, way, filling, window, first_room)),
                )
        for name, (all_of, first_of) in best.items():
            found[name].append(1e6 * (all_of - first_of) / (len(rows.times) - len(filling.times)))
    return found


def _until(rows: Trace, instant: int) -> Trace:
    taken = rows.times < instant
    return Trace(rows.times[taken], rows.links[taken], rows.keys[taken])


def _seconds(query: str, way: Way, rows: Trace, window: int, room: int) -> float:
    before = process_time()
    _run(query, way, rows, window, room)
    return process_time() - before


def _run(query: str, way: Way, rows: Trace, window: int, room: int) -> Processed:
    return process(
        query, way.mode, rows.times, rows.links, rows.keys, window,
        partitions=way.partitions, scanning=way.scanning, absence_up=way.absence_up,
        hash_lists=way.hash_lists, eager=way.eager, most=room,
    )  # fmt: skip


def _space(windows: Sequence[int]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"NT": [], "UPA": []}
    for window in windows:
        rows = trace(window, 2000, 1)
        found["NT"].append(float(_run("distinct", NT, rows, window, len(rows.times)).peak))
        found["UPA"].append(float(_run("distinct", UPA10, rows, window, len(rows.times)).peak))
    return found


def _section(title: str, windows: Sequence[int], times: Times, form: str = ",.3g") -> Section:
    columns = ("window", *times)
    lines = tuple(
        (f"{window:,}", *(f"{line[at]:{form}}" for line in times.values()))
        for at, window in enumerate(windows)
    )
    return Section(title, columns, lines)
