"""The thesis's own forms of windowed operators, tuple by tuple: to study, compare and check with.

`muntin.run` and `muntin.stream` join rows in columns, whole batches at a time; nothing of theirs
uses these. They reproduce the thesis's figures, and are a second oracle.
"""

from muntin.operators.library.window_joins import ALGORITHMS, JoinRun, window_join

__all__ = ["ALGORITHMS", "JoinRun", "window_join"]
