"""The thesis's own forms of windowed operators, tuple by tuple: to study, compare and check with.

`muntin.run` and `muntin.stream` join rows in columns, whole batches at a time; nothing of theirs
uses these. They reproduce the thesis's figures.
"""

from muntin.operators.library.cards import CARDS, FormCard, info
from muntin.operators.library.processing import MODES, QUERIES, Processed, process
from muntin.operators.library.window_joins import ALGORITHMS, JoinRun, window_join

__all__ = [
    "ALGORITHMS",
    "CARDS",
    "MODES",
    "QUERIES",
    "FormCard",
    "JoinRun",
    "Processed",
    "info",
    "process",
    "window_join",
]
