"""The page of cards, made from what the techniques say about themselves.

``python -m muntin.aggregators.cards > docs/techniques.md`` writes it anew.
"""

from __future__ import annotations

import sys

from muntin.aggregators.card import Card
from muntin.aggregators.registry import info, names

_HEAD = """\
# Techniques

A window's answer is made of the partials of its slices. These are the ways to make it, one card \
each. Operations are combines and inverses (comparisons, where a technique only compares) per \
slide over a window of n partials; space counts partials, or indices of the same size. All take \
partials in order, oldest out first, and keep that order for aggregates that are not commutative.

Which to take is on the page [which technique when](which-technique.md). In Python, \
`muntin.aggregators.info(name)` gives a card and `create(name, aggregate, ranges)` an aggregator.
"""
_NEEDS = {
    "any": "any aggregate",
    "invertible": "an aggregate with an inverse, such as sum, avg, count, variance",
    "distinct": "an aggregate of different values, such as count(DISTINCT x)",
    "selective": "an aggregate that selects one of its values, such as min and max",
}


def page() -> str:
    """All cards, in Markdown."""
    cards = [info(name) for name in names()]
    return "\n".join([_HEAD, _overview(cards), *map(_card, cards)])


def _overview(cards: list[Card]) -> str:
    lines = [
        "| technique | needs | one range | at worst | every range from 1 to n |",
        "|---" * 5 + "|",
    ]
    lines += [
        f"| [`{card.name}`](#{card.name}) | {card.needs} | {card.amortised} | {card.worst} |"
        f" {card.multi} |"
        for card in cards
    ]
    return "\n".join([*lines, ""])


def _card(card: Card) -> str:
    rows = (
        ("Order", "in order, oldest out first"),
        ("Needs", _NEEDS[card.needs]),
        ("Time, amortised", card.amortised),
        ("Time, at worst", card.worst),
        ("Several ranges", f"yes; {card.multi} with every range" if card.several_ranges else "no"),
        ("Space", card.space),
        ("Paper", card.paper),
    )
    table = [f"| {name} | {value} |" for name, value in rows]
    return "\n".join([f"## {card.name}", "", "| | |", "|---|---|", *table, ""])


if __name__ == "__main__":
    sys.stdout.write(page())
