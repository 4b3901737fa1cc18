"""The synopses of the papers as a library: to be compared, studied, and fed by hand.

Keeps and questions (`muntin.synopses`) use what these taught; nothing here is in their way.
"""

from muntin.synopses.library.card import CARDS, SynopsisCard
from muntin.synopses.library.join_intervals import JoinIntervals
from muntin.synopses.library.ordered_sharing import OrderedSharing
from muntin.synopses.library.time_gram import (
    Bounds,
    EdgeBuckets,
    EqualBuckets,
    GeometricBuckets,
    TimeGram,
)
from muntin.synopses.library.windows import BasicIntervals, Intervals, Running

__all__ = [
    "CARDS",
    "BasicIntervals",
    "Bounds",
    "EdgeBuckets",
    "EqualBuckets",
    "GeometricBuckets",
    "Intervals",
    "JoinIntervals",
    "OrderedSharing",
    "Running",
    "SynopsisCard",
    "TimeGram",
]
