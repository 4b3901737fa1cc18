"""The cards of the thesis's own forms: what each needs, what it costs, and what it keeps.

``python -m muntin.operators.library.cards`` prints the tables of docs/synopses.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal

from muntin.errors import DataError

Family = Literal["join", "mode", "store"]


@dataclass(frozen=True)
class FormCard:
    """One algorithm, mode or store.

    Attributes:
        name: What it is called.
        family: What kind of thing it is: an algorithm of `window_join`, a mode of `process`, or a
            store that modes keep tuples and results in.
        needs: What it asks of its input, or of the update pattern of what it keeps.
        cost: What is looked at. S is what is kept, C the tuples of a window, b the number of hash
            buckets or lists, P that of partitions, and Δ the interval between two runs.
        space: What it keeps.
        source: The section of *Sliding Window Query Processing over Data Streams* (2006).
    """

    name: str
    family: Family
    needs: str
    cost: str
    space: str
    source: str


_ORDERED = "tuples in order of time"
CARDS = (
    FormCard("eager", "join", _ORDERED, "per tuple C / b of every window that it meets, "
             "and the oldest tuple of every bucket", "windows", "5.2, Algorithm 2"),
    FormCard("eager_lazy_expiry", "join", _ORDERED, "the same with windows that are up to Δ longer,"
             " buckets once every Δ", "windows, and what ended since the last expiry",
             "5.2, Algorithm 3"),
    FormCard("lazy", "join", f"{_ORDERED}; windows longer than Δ; results that live only between "
             "two runs are lost", "as eager, once every Δ for all tuples that are alive then",
             "windows", "5.2, Algorithm 4"),
    FormCard("lazy_restore", "join", f"{_ORDERED}; windows longer than Δ",
             "as lazy, with tuples that have ended since the last run",
             "windows, and what ended since the last run", "5.2, Algorithm 5, corrected"),
    FormCard("nt", "mode", "any query", "every tuple twice, as it comes and as a negative tuple "
             "when it ends; S / b of results per negative tuple",
             "windows, and results in `hash`", "2.3.3, 3.5"),
    FormCard("direct", "mode", "no early ends: `join` and `distinct`",
             "every tuple once; S per expiry", "windows, and results in `list`",
             "2.3.3, 3.5"),
    FormCard("upa", "mode", "any query", "every tuple once; negative tuples for early ends only",
             "windows in `queue`, results in `calendar`", "3.5"),
    FormCard("queue", "store", "ends in the order of arrival (WKS)", "1 per tuple", "S", "3.5.2"),
    FormCard("list", "store", "ends that are known (WK)", "1 to insert, S per expiry", "S",
             "3.5.2"),
    FormCard("hash", "store", "any", "1 to insert, S / b for an end", "S, and b lists", "3.5.2"),
    FormCard("calendar", "store", "ends that are known (WK), early ones too: results are numbered",
             "1 to insert or to end early, S / P per expiry", "S, and P lists", "3.5.2"),
    FormCard("scanning calendar", "store", "the same, partitions sorted as the thesis has them",
             "up to S / P to insert, 1 per end, up to S for an early one", "S, and P lists",
             "3.5.2, 3.6"),
)  # fmt: skip
_HEADS: dict[Family, str] = {
    "join": "algorithm of `window_join`",
    "mode": "mode of `process`",
    "store": "store of the modes",
}


def info(name: str) -> FormCard:
    """The card of a form.

    >>> info("direct").needs
    'no early ends: `join` and `distinct`'
    """
    for card in CARDS:
        if card.name == name:
            return card
    raise DataError(
        f"there is no form {name!r}", hint=f"known are {', '.join(card.name for card in CARDS)}"
    )


def tables() -> str:
    """All cards in Markdown, one table for each family."""
    found = []
    for family, head in _HEADS.items():
        lines = [f"| {head} | needs | looks at | keeps | thesis |", "|---|---|---|---|---|"]
        lines += [
            f"| `{card.name}` | {card.needs} | {card.cost} | {card.space} | {card.source} |"
            for card in CARDS
            if card.family == family
        ]
        found.append("\n".join(lines) + "\n")
    return "\n".join(found)


if __name__ == "__main__":
    sys.stdout.write(tables())
