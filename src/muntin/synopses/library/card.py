"""A card for each synopsis of the library: what it answers, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SynopsisCard:
    """What a synopsis answers and costs, over b parts, k buckets or w window sizes.

    Attributes:
        name: The one name it goes by.
        needs: What the aggregate must be able to do.
        answers: Which questions it answers, and how well.
        update: Steps of an insertion, or of a part that closes.
        probe: Steps of a question.
        space: Values that are kept.
        paper: Where it was published.
    """

    name: str
    needs: str
    answers: str
    update: str
    probe: str
    space: str
    paper: str


_THESIS = "Sliding Window Query Processing over Data Streams, 2006"
_REPORT = "Aggregate Sharing in Stream Databases, 2005"

CARDS = (
    SynopsisCard(
        "running",
        "an inverse",
        "any window of n <= b parts, exactly",
        "1",
        "1 subtraction",
        "b + 1",
        f"{_THESIS}, 2.3.4",
    ),
    SynopsisCard(
        "interval",
        "any aggregate",
        "any window of n <= b parts, exactly",
        "1, amortised",
        "about log b; at most 2 log b - 2",
        "2 b - 1",
        f"{_THESIS}, 2.3.4",
    ),
    SynopsisCard(
        "basic_interval",
        "any aggregate",
        "any windows of n <= b parts, exactly, in one pass",
        "1",
        "n for all windows together",
        "b",
        f"{_THESIS}, 2.3.4 and 8.3",
    ),
    SynopsisCard(
        "join_intervals",
        "any aggregate; an inverse for running totals",
        "joins of windows that differ by at most g parts, exactly",
        "b when a part closes; 1 to 2 g + 1 for a result",
        "n; log n; 1 subtraction",
        "b (2 g + 1)",
        f"{_THESIS}, 8.3.2",
    ),
    SynopsisCard(
        "timegram",
        "max, min, count, sum, avg of numbers",
        "bounds for any window up to the longest; counts exactly",
        "1",
        "k; k log n for counts and sums",
        "rows of the longest window + k",
        f"{_REPORT}, section 3",
    ),
    SynopsisCard(
        "ordered_sharing",
        "max or min",
        "w registered windows, exactly",
        "log w, amortised",
        "log w; the window where no answer is good any more",
        "rows of the largest window + w",
        f"{_REPORT}, section 6",
    ),
)
