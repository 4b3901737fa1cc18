"""Queries that read a window while it moves, under four disciplines: Figures 7.8 to 7.14.

The thesis runs 40 queries over parts of a second and 100 over parts of five, in groups of five that
read together. Ours simulates its algorithms (`muntin.synopses.library.turns`), with parts that
differ in size by up to ten times. Reading one takes so long that a scan of 100 parts, beside all
others, takes most of a second, as abort rates of the thesis suggest; so only shapes compare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import get_args

from muntin.synopses.library.turns import Discipline, Load, Outcome, simulate
from muntin_bench.papers.claims import Claim, Part, at_least, at_most, near
from muntin_bench.report import Plot, Section

NAMES: dict[Discipline, str] = {
    "serial": "Serial",
    "ws": "WS",
    "lws": "LWS",
    "ttu": "TTU",
    "rescan": "LWS that reads again",
}
SHORT = Load(parts=100, period=1.0, groups=8)
LONG = Load(parts=100, period=5.0, groups=20)
ASKED = replace(LONG, one_time=1.0)

# Means that differ by less say nothing about an order.
_ALIKE = 1.02

Outcomes = Mapping[tuple[Discipline, int], Outcome]


def figures(parts: Sequence[int], periods: int) -> Part:
    """All of them, over windows of so many parts, each for so many movements."""
    short, long, asked = (_run(load, parts, periods) for load in (SHORT, LONG, ASKED))
    sections: list[Section] = []
    plots: list[Plot] = []
    shown: list[tuple[str, str, Outcomes, Callable[[Outcome], float]]] = []
    for about, found in (("parts of 1 s, 40 queries", short), ("of 5 s, 100 queries", long)):
        shown += [
            ("Figure 7.8: aborted, %", about, found, lambda each: 100 * each.abort_share),
            ("Figure 7.9: staleness, s", about, found, lambda each: each.mean("staleness")),
            ("Figure 7.10: between executions, s", about, found, lambda each: each.mean("gaps")),
            ("Figure 7.11: executions a second", about, found, lambda each: each.throughput),
        ]
    one_time = "5 one-time queries a part"
    shown += [
        ("Figure 7.12: response, s", one_time, asked, lambda each: each.mean("responses")),
        (
            "Figure 7.13: staleness of one-time queries, s", one_time, asked,
            lambda each: each.mean("one_time_staleness"),
        ),
        (
            "Figure 7.14: staleness of periodic queries, s", one_time, asked,
            lambda each: each.mean("staleness"),
        ),
    ]  # fmt: skip
    for title, about, found, of in shown:
        lines = {
            name: tuple((float(n), of(found[each, n])) for n in parts)
            for each, name in NAMES.items()
        }
        sections.append(_section(f"{title}, {about}", parts, lines))
        key = f"{title.partition(':')[0]} {about.partition(',')[0]}".lower()
        name = key.replace(" ", "-").replace(".", "-")
        drawn = {each: line for each, line in lines.items() if all(y > 0 for _, y in line)}
        plots.append(Plot(name, f"{title}, {about}", "parts", title.partition(": ")[2], drawn))
    return Part(tuple(sections), _claims(parts, short, long, asked), tuple(plots))


def _run(load: Load, parts: Sequence[int], periods: int) -> Outcomes:
    return {
        (each, n): simulate(each, replace(load, parts=n), periods * load.period)
        for each in get_args(Discipline)
        for n in parts
    }


def _section(
    title: str, parts: Sequence[int], lines: Mapping[str, Sequence[tuple[float, float]]]
) -> Section:
    rows = tuple(
        (f"{n}", *(f"{line[place][1]:,.3g}" for line in lines.values()))
        for place, n in enumerate(parts)
    )
    return Section(title, ("parts", *lines), rows)


def _claims(
    parts: Sequence[int], short: Outcomes, long: Outcomes, asked: Outcomes
) -> tuple[Claim, ...]:
    few, many = parts[0], parts[-1]
    aborts = {
        (each, n): 100 * found["lws", n].abort_share
        for each, found in (("short", short), ("long", long))
        for n in parts
    }
    claims = [
        near("Figure 7.8", "aborts of LWS, parts of 1 s, most parts, %: more than", 50,
             aborts["short", many], within=1.5),
        Claim("Figure 7.8", "aborts of LWS grow with the parts", "yes",
              f"{aborts['short', few]:.3g} to {aborts['short', many]:.3g}%",
              aborts["short", few] < aborts["short", many]),
        Claim("Figure 7.8", "and as parts get shorter", "yes",
              f"{aborts['long', many]:.3g} to {aborts['short', many]:.3g}%",
              aborts["long", many] < aborts["short", many]),
        at_most("Figure 7.8", "aborts of TTU", 0,
                sum(found["ttu", n].aborts for found in (short, long) for n in parts)),
    ]  # fmt: skip
    for about, found in (("1 s", short), ("5 s", long)):
        stale = [found[each, many].mean("staleness") for each in ("ttu", "lws", "serial", "ws")]
        claims.append(
            Claim(
                "Figure 7.9",
                f"staleness of TTU, LWS, Serial, WS, parts of {about}: best and worst",
                "TTU, WS",
                ", ".join(f"{each:.3g}" for each in stale),
                stale[0] <= _ALIKE * min(stale) and stale[-1] == max(stale),
            )
        )
        claims.append(
            at_most("Figure 7.9", f"LWS over Serial, parts of {about}", 1, stale[1] / stale[2])
        )
        gaps = {each: found[each, many].mean("gaps") for each in NAMES}
        claims += [
            at_most("Figure 7.10", f"TTU over WS, parts of {about}", 1.05,
                    gaps["ttu"] / gaps["ws"]),
            at_most("Figure 7.10", f"Serial over WS, parts of {about}", 1.0,
                    gaps["serial"] / gaps["ws"], slack=1.01),
            at_least("Figure 7.11", f"throughput of TTU over Serial, parts of {about}", 0.96,
                     found["ttu", many].throughput / found["serial", many].throughput),
            at_most("Figure 7.11", f"throughput of LWS over TTU, parts of {about}", 0.9,
                    found["lws", many].throughput / found["ttu", many].throughput),
        ]  # fmt: skip
    claims.append(
        at_least("Figure 7.10", "LWS over TTU, parts of 1 s: much longer", 1.2,
                 short["lws", many].mean("gaps") / short["ttu", many].mean("gaps"))
    )  # fmt: skip
    return (*claims, *_one_time(asked, many))


def _one_time(asked: Outcomes, parts: int) -> list[Claim]:
    responses = {each: asked[each, parts].mean("responses") for each in NAMES}
    own = {each: asked[each, parts].mean("one_time_staleness") for each in NAMES}
    others = {each: asked[each, parts].mean("staleness") for each in NAMES}
    order = [responses[each] for each in ("ttu", "lws", "serial")]
    named: tuple[Discipline, ...] = ("ttu", "lws", "serial", "ws")
    return [
        at_most("Figure 7.12", "response of TTU over WS", 1.1, responses["ttu"] / responses["ws"]),
        Claim("Figure 7.12", "response of TTU, LWS, Serial", "in this order",
              ", ".join(f"{each:.3g}" for each in order),
              all(a <= _ALIKE * b for a, b in pairwise(order))),
        Claim("Figure 7.13", "staleness of one-time queries: TTU, LWS, Serial, WS", "TTU is best",
              ", ".join(f"{own[each]:.3g}" for each in named),
              own["ttu"] <= _ALIKE * min(own[each] for each in named)),
        Claim("Figure 7.14", "staleness of periodic queries: TTU, LWS, Serial, WS", "TTU is best",
              ", ".join(f"{others[each]:.3g}" for each in named),
              others["ttu"] <= _ALIKE * min(others[each] for each in named)),
    ]  # fmt: skip
